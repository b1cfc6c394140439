//! File descriptors that tasks wait to read from, with `poll(2)`.

#![expect(unsafe_code, reason = "the device layer gives descriptors by number")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{BorrowedFd, RawFd};
use std::task::Waker;
use std::time::Duration;

struct Waiter {
    fd: RawFd,
    waker: Waker,
    ready: bool,
}

/// The waits of all tasks, each in a slot that its future remembers.
#[derive(Default)]
pub(crate) struct Descriptors {
    waiters: Vec<Option<Waiter>>,
    /// Buffer for the kernel; kept to reuse its memory.
    watched: Vec<PollFd<'static>>,
    /// The slot of each descriptor in the buffer.
    places: Vec<usize>,
}

impl Descriptors {
    /// Adds a wait and returns its slot.
    pub fn add(&mut self, fd: RawFd, waker: Waker) -> usize {
        let waiter = Some(Waiter { fd, waker, ready: false });
        match self.waiters.iter().position(Option::is_none) {
            Some(place) => {
                self.waiters[place] = waiter;
                place
            }
            None => {
                self.waiters.push(waiter);
                self.waiters.len() - 1
            }
        }
    }

    /// Whether the wait in the slot is over; otherwise `waker` is to be woken.
    pub fn check(&mut self, place: usize, waker: &Waker) -> bool {
        match self.waiters.get_mut(place).and_then(Option::as_mut) {
            Some(waiter) if !waiter.ready => {
                waiter.waker.clone_from(waker);
                false
            }
            _ => true,
        }
    }

    /// Removes a wait.
    pub fn remove(&mut self, place: usize) {
        if let Some(waiter) = self.waiters.get_mut(place) {
            *waiter = None;
        }
    }

    /// Whether no task waits for a descriptor.
    pub fn is_empty(&self) -> bool {
        !self.waiters.iter().flatten().any(|waiter| !waiter.ready)
    }

    /// Blocks in the kernel until a descriptor or the alarm is readable or `timeout` has passed
    /// (none: no limit), and wakes the tasks whose descriptors are readable. A descriptor that is
    /// closed or in error counts as readable; the read returns the error.
    pub fn wait(&mut self, alarm: Option<BorrowedFd<'_>>, timeout: Option<Duration>) {
        self.watched.clear();
        self.places.clear();
        for (place, waiter) in self.waiters.iter().enumerate() {
            if let Some(waiter) = waiter
                && !waiter.ready
            {
                self.places.push(place);
                self.watched.push(watch(waiter.fd));
            }
        }
        if let Some(alarm) = alarm {
            use std::os::fd::AsRawFd;
            self.watched.push(watch(alarm.as_raw_fd()));
        }
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        // An interrupted or failed wait wakes no task; the executor checks its state and waits
        // again.
        if poll(&mut self.watched, timeout.as_ref()).is_err() {
            return;
        }
        for (watched, place) in self.watched.iter().zip(&self.places) {
            if !watched.revents().is_empty()
                && let Some(waiter) = self.waiters.get_mut(*place).and_then(Option::as_mut)
            {
                waiter.ready = true;
                waiter.waker.wake_by_ref();
            }
        }
    }

    /// Removes all waits.
    pub fn close(&mut self) -> Descriptors {
        std::mem::take(self)
    }
}

fn watch(fd: RawFd) -> PollFd<'static> {
    // SAFETY: the number is passed to poll(2) only, which reports a closed descriptor as POLLNVAL;
    // a number reused for another file at worst wakes a task that then finds nothing to read.
    // Negative numbers, which poll(2) would ignore, are refused in `Readable`.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}
