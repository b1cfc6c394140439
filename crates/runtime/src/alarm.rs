//! Interrupts an executor's wait in the kernel.

use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A descriptor that is readable while the alarm sounds.
pub(crate) struct Alarm(OwnedFd);

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub fn sound(&self) {
        // Fails only if the counter is full, and then the alarm sounds already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    pub fn silence(&self) {
        // If it is not readable, no alarm was sounded.
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }

    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
