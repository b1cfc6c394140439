//! Creation of a ring with the best flags that the kernel accepts, and of the descriptor that
//! signals completions.

use io_uring::IoUring;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The most requests of one queue pair that are in the kernel at a time.
pub(super) const MAX_ENTRIES: u32 = 4096;

/// A ring, and the descriptor that wakes a waiting thread.
pub(super) struct NewRing {
    pub(super) ring: IoUring,
    /// Signalled when completions are available; without it, the ring's own descriptor is.
    pub(super) signal: Option<OwnedFd>,
}

/// Creates a ring with room for `entries` requests on `file`, which becomes its registered file 0.
///
/// With deferred task work, completions are posted only when this thread asks for them, so they
/// never interrupt it. The ring's own descriptor then does not wake a waiting thread reliably
/// (observed on Linux 6.18: `poll` kept sleeping despite pending task work), so an eventfd does.
/// Kernels before 6.1 get a plain ring, whose descriptor works.
///
/// # Errors
/// The plain ring's error: io_uring is missing, forbidden, or out of memory.
pub(super) fn make_ring(entries: usize, file: RawFd) -> io::Result<NewRing> {
    let entries = u32::try_from(entries).unwrap_or(MAX_ENTRIES).clamp(8, MAX_ENTRIES);
    let entries = entries.next_power_of_two();
    let made = deferred(entries).or_else(|_| plain(entries))?;
    made.ring.submitter().register_files(&[file])?;
    Ok(made)
}

fn deferred(entries: u32) -> io::Result<NewRing> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .dontfork()
        .build(entries)?;
    let signal = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    ring.submitter().register_eventfd(signal.as_raw_fd())?;
    Ok(NewRing { ring, signal: Some(signal) })
}

fn plain(entries: u32) -> io::Result<NewRing> {
    Ok(NewRing { ring: IoUring::builder().dontfork().build(entries)?, signal: None })
}
