//! A queue pair that reads in windows.

use super::stream::Stream;
use softflash_base::{Time, UnitId};
use softflash_device::backend::Accepted;
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{Command, Completion, Operation, Tag, Target};
use softflash_device::{Decorator, QueuePair, Submit, Wake};
use std::collections::{BTreeMap, VecDeque};

/// Blocks whose last window is kept for a possible next read.
const KEPT_STREAMS: usize = 512;

/// The origin of a command to the device below.
enum UnderWay {
    /// A window of a stream.
    Window { stream: u64, window: usize, unit: UnitId },
    /// Another command, submitted under a new tag.
    Other(Tag),
}

/// The blocks that a command works on.
type Blocks = (u16, u8, u8, u8, [u32; MAX_PLANES]);

fn blocks_of(target: &Target) -> Blocks {
    (target.unit.0, target.die, target.plane, target.planes, target.blocks)
}

/// A queue pair behind a page cache.
pub(super) struct ReadAheadQueuePair {
    inner: Box<dyn QueuePair>,
    window_bytes: u32,
    streams: BTreeMap<u64, Stream>,
    /// The streams that a next read may continue, by block; the least recently read first.
    kept: VecDeque<(Blocks, u64)>,
    /// The end of the programmed rows of each block that was programmed here.
    ends: BTreeMap<Blocks, u32>,
    under_way: BTreeMap<u64, UnderWay>,
    /// Reads under way in each unit.
    reads: BTreeMap<u16, u16>,
    /// Windows that the device had no room for yet.
    waiting: VecDeque<Command>,
    /// Units that are given up once the device has no window of them under way.
    leaving: Vec<UnitId>,
    /// Completions for the next poll.
    ended: Vec<Completion>,
    serial: u64,
    /// Reused by every poll.
    scratch: Vec<Completion>,
}

impl ReadAheadQueuePair {
    pub(super) fn new(inner: Box<dyn QueuePair>, window_bytes: u32) -> ReadAheadQueuePair {
        ReadAheadQueuePair {
            inner,
            window_bytes,
            streams: BTreeMap::new(),
            kept: VecDeque::new(),
            ends: BTreeMap::new(),
            under_way: BTreeMap::new(),
            reads: BTreeMap::new(),
            waiting: VecDeque::new(),
            leaving: Vec::new(),
            ended: Vec::new(),
            serial: 0,
            scratch: Vec::new(),
        }
    }

    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// The stream that a read continues, or a new one.
    fn stream_for(&mut self, target: &Target) -> u64 {
        let blocks = blocks_of(target);
        let known = self.kept.iter().position(|(known, _)| *known == blocks);
        let mut goes_on = false;
        if let Some((_, stream)) = known.and_then(|place| self.kept.remove(place)) {
            if self.streams.get(&stream).is_some_and(|stream| stream.meets(target)) {
                self.kept.push_back((blocks, stream));
                return stream;
            }
            goes_on = self.streams.get(&stream).is_some_and(|stream| stream.ended_at(target.page));
            self.forget(stream);
        }
        if self.kept.len() >= KEPT_STREAMS
            && let Some((_, oldest)) = self.kept.pop_front()
        {
            self.forget(oldest);
        }
        let geometry = self.inner.geometry();
        let row_bytes = usize::from(target.planes) * geometry.page_bytes as usize;
        let window_rows = (self.window_bytes / row_bytes as u32).max(1);
        let end = self.ends.get(&blocks).copied().unwrap_or(geometry.pages_per_block);
        let stream = if target.rows > window_rows || goes_on {
            Stream::new(*target, window_rows, row_bytes, end)
        } else {
            Stream::new(*target, target.rows, row_bytes, target.page + target.rows)
        };
        let serial = self.next_serial();
        self.streams.insert(serial, stream);
        self.kept.push_back((blocks, serial));
        serial
    }

    /// No later read continues the stream; the current one completes.
    fn forget(&mut self, stream: u64) {
        if self.streams.get(&stream).is_some_and(Stream::is_idle) {
            self.streams.remove(&stream);
        }
    }

    /// Handles a change of the contents of blocks.
    fn changed(&mut self, target: &Target, end: Option<u32>) {
        let blocks = blocks_of(target);
        match end {
            Some(end) => drop(self.ends.insert(blocks, end)),
            None => drop(self.ends.remove(&blocks)),
        }
        while let Some(place) = self.kept.iter().position(|(known, _)| *known == blocks) {
            if let Some((_, stream)) = self.kept.remove(place) {
                self.forget(stream);
            }
        }
    }

    /// Advances the reader of a stream, and submits the windows that this requires.
    fn advance(&mut self, now: Time, number: u64) {
        let Some(mut stream) = self.streams.remove(&number) else { return };
        let mut asked = Vec::new();
        let ended = stream.advance(now, |window, target| asked.push((window, target)));
        for (window, target) in asked {
            let serial = self.next_serial();
            let (unit, page) = (target.unit, self.inner.geometry().page_bytes as usize);
            let bytes = target.rows as usize * usize::from(target.planes) * page;
            self.under_way.insert(serial, UnderWay::Window { stream: number, window, unit });
            let operation = Operation::Read(self.inner.buffers().take(bytes));
            let hint = stream.hint();
            self.waiting.push_back(Command { tag: Tag(serial), target, operation, hint });
        }
        if let (Some(_), Some(reads)) = (&ended, self.reads.get_mut(&stream.unit())) {
            *reads -= 1;
        }
        // A stream without a reader that no later read can continue is dropped.
        if !stream.is_idle() || self.kept.iter().any(|(_, kept)| *kept == number) {
            self.streams.insert(number, stream);
        }
        self.ended.extend(ended);
        self.hand_over(now);
    }

    /// Submits the waiting windows in order, except those of units without room.
    fn hand_over(&mut self, now: Time) {
        let mut full: Vec<UnitId> = Vec::new();
        for _ in 0..self.waiting.len() {
            let Some(command) = self.waiting.pop_front() else { break };
            let unit = command.target.unit;
            if full.contains(&unit) {
                self.waiting.push_back(command);
            } else if let Submit::Full(command) = self.inner.submit(now, command) {
                full.push(unit);
                self.waiting.push_back(command);
            }
        }
    }

    /// Gives up the leaving units of which the device has no window under way.
    fn give_up_idle(&mut self) {
        let ReadAheadQueuePair { inner, leaving, under_way, .. } = self;
        let has_window = |unit: UnitId| {
            let is_of =
                |of: &UnderWay| matches!(of, UnderWay::Window { unit: of, .. } if *of == unit);
            under_way.values().any(is_of)
        };
        for unit in leaving.extract_if(.., |unit| !has_window(*unit)) {
            inner.give_up(unit);
        }
    }

    /// Submits a command other than a read to the device.
    fn pass_on(&mut self, now: Time, mut command: Command) -> Submit {
        let (tag, serial) = (command.tag, self.next_serial());
        command.tag = Tag(serial);
        let (target, end) = (command.target, command.target.page + command.target.rows);
        let changes = match &command.operation {
            Operation::Program { .. } => Some(Some(end)),
            Operation::Erase => Some(None),
            _ => None,
        };
        match self.inner.submit(now, command) {
            Submit::Accepted => {
                if let Some(end) = changes {
                    self.changed(&target, end);
                }
                self.under_way.insert(serial, UnderWay::Other(tag));
                Submit::Accepted
            }
            Submit::Full(mut command) => {
                command.tag = tag;
                Submit::Full(command)
            }
        }
    }

    /// Handles a completion of the device.
    fn take(&mut self, completion: Completion) {
        match self.under_way.remove(&completion.tag.0) {
            Some(UnderWay::Other(tag)) => self.ended.push(Completion { tag, ..completion }),
            Some(UnderWay::Window { stream, window, .. }) => {
                let Completion { buffer, result, finished_at, .. } = completion;
                if let Some(reading) = self.streams.get_mut(&stream) {
                    reading.arrived(window, buffer, result);
                    self.advance(finished_at, stream);
                }
            }
            None => {}
        }
    }
}

impl Decorator for ReadAheadQueuePair {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for ReadAheadQueuePair {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let Command { tag, target, operation, hint } = command;
        let Operation::Read(buffer) = operation else {
            return self.pass_on(now, Command { tag, target, operation, hint });
        };
        let depth = self.inner.geometry().die_queue_depth;
        let reads = self.reads.entry(target.unit.0).or_default();
        if *reads >= depth {
            let operation = Operation::Read(buffer);
            return Submit::Full(Command { tag, target, operation, hint });
        }
        let accepted = Accepted::new(tag, now, *reads);
        *reads += 1;
        let stream = self.stream_for(&target);
        if let Some(reading) = self.streams.get_mut(&stream) {
            reading.read(accepted, &target, hint, buffer);
        }
        self.advance(now, stream);
        Submit::Accepted
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        let mut ended = std::mem::take(&mut self.scratch);
        self.inner.poll(now, &mut ended);
        let any = !ended.is_empty();
        for completion in ended.drain(..) {
            self.take(completion);
        }
        self.scratch = ended;
        if any {
            self.hand_over(now);
            self.give_up_idle();
        }
        completions.append(&mut self.ended);
    }

    fn wake(&self) -> Wake {
        match self.ended.is_empty() {
            true => self.inner.wake(),
            false => Wake::Now,
        }
    }

    /// Windows that were read ahead may be under way: then the unit follows them.
    fn give_up(&mut self, unit: UnitId) {
        self.leaving.push(unit);
        self.give_up_idle();
    }
}
