//! Requests in progress in io_uring, and the buffers that the kernel reads and writes.
//!
//! The slots own every buffer from submission to completion. Dropping the ring waits for the
//! requests in the kernel; if waiting fails, the buffers are leaked, never freed.

#![expect(unsafe_code, reason = "handing buffers to the kernel")]

use super::plan::{Done, Job, Kind};
use super::setup::NewRing;
use super::sqe::{Memory, Registered, build};
use crate::command::DeviceError;
use io_uring::IoUring;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// `IORING_ENTER_GETEVENTS`: post the completions that are ready.
const GET_EVENTS: u32 = 1;

/// A request and its progress.
#[derive(Debug)]
struct Slot {
    job: Job,
    transferred: u64,
}

/// An io_uring with its requests.
pub(super) struct Ring {
    ring: IoUring,
    /// As [`NewRing::signal`].
    signal: Option<OwnedFd>,
    registered: Registered,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    /// Slots whose entries the kernel has not consumed yet, oldest first.
    queued: VecDeque<u32>,
    /// Requests that the kernel has consumed and not completed.
    in_kernel: usize,
    /// The error after which the kernel takes no more requests, if any.
    broken: Option<i32>,
    /// Requests that failed without the kernel.
    failed: Vec<Done>,
    /// The last poll left work in the kernel that the kernel will not signal again.
    unfinished: bool,
}

impl Ring {
    /// Creates the slots for the requests of a new ring.
    pub(super) fn new(NewRing { ring, signal }: NewRing, registered: Registered) -> Ring {
        let entries = ring.params().sq_entries();
        Ring {
            ring,
            signal,
            registered,
            slots: (0..entries).map(|_| None).collect(),
            free: (0..entries).rev().collect(),
            queued: VecDeque::with_capacity(entries as usize),
            in_kernel: 0,
            broken: None,
            failed: Vec::new(),
            unfinished: false,
        }
    }

    /// Requests accepted and not yet returned.
    pub(super) fn pending(&self) -> usize {
        self.queued.len() + self.in_kernel + self.failed.len()
    }

    /// Whether a request waits for the next poll, to be started or returned.
    pub(super) fn must_poll(&self) -> bool {
        self.unfinished || !self.queued.is_empty() || !self.failed.is_empty()
    }

    /// The descriptor that becomes readable when a completion is ready.
    pub(super) fn descriptor(&self) -> RawFd {
        self.signal.as_ref().map_or(self.ring.as_raw_fd(), AsRawFd::as_raw_fd)
    }

    /// Queues a request for the next poll. The caller keeps [`Ring::pending`] below the number of
    /// slots.
    pub(super) fn start(&mut self, job: Job) {
        let (None, Some(index)) = (self.broken, self.free.pop()) else {
            let errno = self.broken.unwrap_or(libc::EBUSY);
            self.failed.push(failed(job, errno));
            return;
        };
        self.slots[index as usize] = Some(Slot { job, transferred: 0 });
        self.enqueue(index);
    }

    /// Adds an entry for the rest of a slot's request to the submission queue.
    fn enqueue(&mut self, index: u32) {
        let Some(Slot { job, transferred }) = &mut self.slots[index as usize] else {
            unreachable!("slot {index} is empty");
        };
        let transferred = *transferred;
        let memory = match &mut job.buffer {
            Some(buffer) => {
                let registration = buffer.registration();
                let rest = &mut buffer[transferred as usize..];
                let start = rest.as_mut_ptr();
                let registration = self.registered.find(registration, start.addr(), rest.len());
                // Superblocks, and so requests, are at most 1 GiB.
                Memory { start, len: rest.len() as u32, registration }
            }
            None => Memory { start: std::ptr::null_mut(), len: 0, registration: None },
        };
        let entry = build(job.kind, job.offset + transferred, job.len, memory);
        let entry = entry.user_data(u64::from(index));
        // SAFETY: the buffer lives in the slot, untouched, until the completion is reaped.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the submission queue has an entry for every slot");
        self.queued.push_back(index);
    }

    /// Submits the queued requests to the kernel in one call and returns the completed ones.
    pub(super) fn poll(&mut self, done: &mut Vec<Done>) {
        done.append(&mut self.failed);
        // A second round submits the rests of short transfers, and finds completions that arrived
        // before the signal was reset and would not be signalled again.
        for _ in 0..2 {
            if self.kernel_has_work() {
                self.enter();
                self.reset_signal();
            }
            self.reap(done);
        }
        self.unfinished = self.kernel_has_work();
    }

    /// Whether entering the kernel can submit requests or post completions.
    fn kernel_has_work(&mut self) -> bool {
        if !self.queued.is_empty() {
            return true;
        }
        let queue = self.ring.submission();
        queue.taskrun() || queue.cq_overflow()
    }

    fn reset_signal(&self) {
        if let Some(signal) = &self.signal {
            // The read does not block; it is not an error if the descriptor was not signalled.
            let _ = rustix::io::read(signal, &mut [0; 8]);
        }
    }

    /// Enters the kernel: submits all queued requests, unless the ring is broken, and lets the
    /// kernel post completions.
    fn enter(&mut self) {
        let submit = if self.broken.is_some() { 0 } else { self.queued.len() as u32 };
        // SAFETY: plain arguments, no signal mask.
        let entered =
            unsafe { self.ring.submitter().enter::<libc::sigset_t>(submit, 0, GET_EVENTS, None) };
        let taken = self.queued.len() - self.ring.submission().len().min(self.queued.len());
        self.queued.drain(..taken);
        self.in_kernel += taken;
        let Err(error) = entered else { return };
        match error.raw_os_error() {
            // Out of memory, a full completion queue, or a signal: the next poll tries again.
            Some(libc::EAGAIN | libc::EBUSY | libc::EINTR) => {}
            errno => self.give_up(errno.unwrap_or(libc::EIO)),
        }
    }

    /// The kernel takes no more requests: those that it has not consumed fail, as do all later
    /// ones.
    fn give_up(&mut self, errno: i32) {
        tracing::error!(errno, "io_uring stopped taking requests");
        self.broken = Some(errno);
        while let Some(index) = self.queued.pop_front() {
            if let Some(slot) = self.slots[index as usize].take() {
                self.failed.push(failed(slot.job, errno));
            }
        }
    }

    fn reap(&mut self, done: &mut Vec<Done>) {
        loop {
            let Some((index, result)) =
                self.ring.completion().next().map(|entry| (entry.user_data(), entry.result()))
            else {
                return;
            };
            self.in_kernel -= 1;
            self.finish(index as u32, result, done);
        }
    }

    /// Handles one completion of the kernel: the end of a request, or a part of its transfer.
    fn finish(&mut self, index: u32, result: i32, done: &mut Vec<Done>) {
        let Some(slot) = &mut self.slots[index as usize] else {
            unreachable!("completion of a request that was never made");
        };
        match progress(slot, result) {
            Progress::Again if self.broken.is_none() => self.enqueue(index),
            Progress::Again => self.release(index, Err(io(libc::EIO)), done),
            Progress::Ended(result) => self.release(index, result, done),
        }
    }

    fn release(&mut self, index: u32, result: Result<(), DeviceError>, done: &mut Vec<Done>) {
        if let Some(Slot { job, .. }) = self.slots[index as usize].take() {
            let settles = job.kind.settles();
            done.push(Done { ticket: job.ticket, buffer: job.buffer, result, settles });
        }
        self.free.push(index);
    }
}

/// Whether a request has ended.
enum Progress {
    /// A part is left to do.
    Again,
    Ended(Result<(), DeviceError>),
}

/// Applies one completion to a request.
fn progress(slot: &mut Slot, result: i32) -> Progress {
    match (result, slot.job.kind) {
        (failure, _) if -failure == libc::EAGAIN || -failure == libc::EINTR => Progress::Again,
        (failure, _) if failure < 0 => Progress::Ended(Err(io(-failure))),
        (_, Kind::Discard { .. } | Kind::Sync) => Progress::Ended(Ok(())),
        // The file is shorter than the device.
        (0, _) => Progress::Ended(Err(io(libc::EIO))),
        (bytes, _) => {
            slot.transferred += u64::from(bytes.unsigned_abs());
            match slot.transferred < slot.job.len {
                true => Progress::Again,
                false => Progress::Ended(Ok(())),
            }
        }
    }
}

fn io(errno: i32) -> DeviceError {
    DeviceError::Io { errno }
}

fn failed(job: Job, errno: i32) -> Done {
    let settles = job.kind.settles();
    Done { ticket: job.ticket, buffer: job.buffer, result: Err(io(errno)), settles }
}

impl Drop for Ring {
    /// Waits until the kernel has released every buffer. Requests that it has not consumed are
    /// never started.
    fn drop(&mut self) {
        while self.in_kernel > 0 {
            // SAFETY: plain arguments, no signal mask.
            let waited =
                unsafe { self.ring.submitter().enter::<libc::sigset_t>(0, 1, GET_EVENTS, None) };
            if let Err(error) = waited
                && error.kind() != io::ErrorKind::Interrupted
            {
                tracing::error!(%error, requests = self.in_kernel, "buffers leaked");
                std::mem::forget(std::mem::take(&mut self.slots));
                return;
            }
            while self.ring.completion().next().is_some() {
                self.in_kernel -= 1;
            }
        }
    }
}
