//! Drives a queue pair one command or one batch at a time, waiting the way its `wake` asks for.

#![expect(unsafe_code, reason = "waiting on a descriptor that the queue pair names")]
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use softflash_base::random::Rng;
use softflash_base::{BufferPool, IoBuf, Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{
    Command, Completion, DeviceError, Hint, Operation, QueuePair, Submit, Tag, Target,
    UnitGeometry, Wake,
};
use std::os::fd::BorrowedFd;

/// A queue pair and its clock: virtual time where the device knows when it wants to be polled.
pub struct Driver {
    /// The queue pair.
    pub queue: Box<dyn QueuePair>,
    /// The time of the next submission.
    pub now: Time,
    /// The hint of the next commands.
    pub hint: Hint,
    /// Waits for a descriptor so far.
    pub waits: u64,
    next_tag: u64,
    /// What completed while a full queue was waited for.
    early: Vec<Completion>,
}

impl Driver {
    /// A driver at time 0.
    pub fn new(queue: Box<dyn QueuePair>) -> Driver {
        Driver {
            queue,
            now: Time::ZERO,
            hint: Hint::FOREGROUND,
            waits: 0,
            next_tag: 0,
            early: Vec::new(),
        }
    }

    /// The geometry of a unit.
    pub fn geometry(&self) -> UnitGeometry {
        *self.queue.geometry()
    }

    /// The queue pair's buffers.
    pub fn pool(&self) -> BufferPool {
        self.queue.buffers().clone()
    }

    /// Submits, waiting for room where the queue is full, and gives the tag.
    pub fn submit(&mut self, target: Target, operation: Operation) -> Tag {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let mut command = Command { tag, target, operation, hint: self.hint };
        while let Submit::Full(back) = self.queue.submit(self.now, command) {
            command = back;
            let mut early = std::mem::take(&mut self.early);
            self.step(&mut early);
            self.early = early;
        }
        tag
    }

    /// Waits as `wake` asks and polls once.
    pub fn step(&mut self, completions: &mut Vec<Completion>) {
        match self.queue.wake() {
            Wake::Idle => panic!("nothing is under way"),
            Wake::Now => {}
            Wake::At(time) => self.now = self.now.max(time),
            Wake::Readable(fd) => {
                self.waits += 1;
                wait_readable(fd);
            }
        }
        self.queue.poll(self.now, completions);
    }

    /// Runs until nothing is under way.
    pub fn drain(&mut self) -> Vec<Completion> {
        let mut completions = std::mem::take(&mut self.early);
        while self.queue.wake() != Wake::Idle {
            self.step(&mut completions);
        }
        completions
    }

    /// One command to its end.
    pub fn run(&mut self, target: Target, operation: Operation) -> Completion {
        let tag = self.submit(target, operation);
        let mut all = self.drain();
        assert_eq!(all.len(), 1, "one completion for one command");
        let completion = all.remove(0);
        assert_eq!(completion.tag, tag);
        completion
    }

    /// Programs `bytes` and waits.
    pub fn program(&mut self, target: Target, bytes: &[u8]) -> Result<(), DeviceError> {
        let mut data = self.pool().take(bytes.len());
        data.copy_from_slice(bytes);
        self.run(target, Operation::Program { data, durable: false }).result
    }

    /// Reads all pages of a target.
    pub fn read(&mut self, target: Target) -> Result<Vec<u8>, DeviceError> {
        let buffer = self.pool().take(self.target_bytes(&target));
        let Completion { buffer, result, .. } = self.run(target, Operation::Read(buffer));
        result.map(|()| buffer.expect("a read gives its buffer back").to_vec())
    }

    /// Erases the blocks of a target.
    pub fn erase(&mut self, target: Target) -> Result<(), DeviceError> {
        self.run(target, Operation::Erase).result
    }

    /// Marks the blocks of a target bad.
    pub fn mark_bad(&mut self, target: Target) -> Result<(), DeviceError> {
        self.run(target, Operation::MarkBad).result
    }

    /// Bytes of all pages of a target.
    pub fn target_bytes(&self, target: &Target) -> usize {
        let pages = target.rows * u32::from(target.planes);
        (pages * self.geometry().page_bytes) as usize
    }
}

fn wait_readable(fd: i32) {
    // SAFETY: the queue pair that named the descriptor is alive.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut fds = [PollFd::new(&fd, PollFlags::IN)];
    let timeout = Timespec { tv_sec: 20, tv_nsec: 0 };
    let ready = poll(&mut fds, Some(&timeout)).unwrap();
    assert_eq!(ready, 1, "the descriptor becomes readable when a command completes");
}

/// One plane of one die.
pub fn target(unit: u16, block: u32, page: u32, rows: u32) -> Target {
    Target {
        unit: UnitId(unit),
        die: 0,
        plane: 0,
        planes: 1,
        blocks: [block; MAX_PLANES],
        page,
        rows,
    }
}

/// All planes of a die: what a full row covers.
pub fn rows_of(geometry: &UnitGeometry, place: (u16, u8, u32), page: u32, rows: u32) -> Target {
    let (unit, die, block) = place;
    Target { die, planes: geometry.planes, ..target(unit, block, page, rows) }
}

/// Bytes that depend on their seed and place.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = Rng::seeded(seed);
    (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_le_bytes()).take(len).collect()
}

/// The buffer of a completed read or program.
pub fn buffer_of(completion: Completion) -> IoBuf {
    completion.buffer.expect("a read or program gives its buffer back")
}
