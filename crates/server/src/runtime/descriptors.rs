//! Readiness of file descriptors that the device layer gives by number.

#![expect(unsafe_code, reason = "the device layer gives descriptors by number")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The descriptors of a thread that were waited for. A duplicate of each is registered with the
/// kernel once, and kept until it is forgotten. So a number must mean the same file for as long.
#[derive(Default)]
pub(super) struct Descriptors {
    known: RefCell<HashMap<RawFd, Rc<AsyncFd<OwnedFd>>>>,
}

impl Descriptors {
    /// Completes when `fd` is readable, closed or in error; the following read returns the error.
    pub async fn readable(this: Rc<Descriptors>, fd: RawFd) {
        let mut looked_again = false;
        while !is_readable(fd) {
            let Some(registered) = this.registered(fd) else { return };
            match registered.readable().await {
                // The readiness may be stale, so the loop checks.
                Ok(mut guard) => guard.clear_ready(),
                // The runtime ends.
                Err(_) if looked_again => return std::future::pending().await,
                Err(_) => looked_again = true,
            }
        }
    }

    /// The number may mean another file from now on.
    pub fn forget(&self, fd: RawFd) {
        self.known.borrow_mut().remove(&fd);
    }

    fn registered(&self, fd: RawFd) -> Option<Rc<AsyncFd<OwnedFd>>> {
        if let Some(registered) = self.known.borrow().get(&fd) {
            return Some(Rc::clone(registered));
        }
        match register(fd) {
            Ok(registered) => {
                let registered = Rc::new(registered);
                self.known.borrow_mut().insert(fd, Rc::clone(&registered));
                Some(registered)
            }
            Err(error) => {
                // For example, regular files are always readable.
                tracing::debug!(fd, %error, "descriptor cannot be watched; it counts as readable");
                None
            }
        }
    }
}

fn register(fd: RawFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `is_readable` has just seen the descriptor open, and it is only duplicated.
    let duplicate = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
    // SAFETY: the `AsyncFd` owns the duplicate and nothing closes or replaces it.
    Ok(unsafe { AsyncFd::register_with_interest(duplicate, Interest::READABLE) }?)
}

/// Whether a read would return data or an error immediately.
fn is_readable(fd: RawFd) -> bool {
    if fd < 0 {
        return true;
    }
    // SAFETY: the number is passed to poll(2) only, which reports a closed descriptor as POLLNVAL.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let mut watched = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut watched, Some(&at_once)) {
        Ok(_) => !watched[0].revents().is_empty(),
        Err(_) => false,
    }
}
