//! The lock on the file of a device, against other processes and other handles of this one.

use crate::queue_pair::OpenError;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

/// A file with its exclusive lock, which ends with this value.
///
/// Closing the file would not always end the lock: a child process that another thread is about to
/// start has the handle too, until it runs its program.
#[derive(Debug)]
pub(crate) struct LockedFile(File);

impl LockedFile {
    /// Locks an open file.
    pub(crate) fn lock(file: File, path: &Path) -> Result<LockedFile, OpenError> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(LockedFile(file)),
            Err(errno) => Err(busy_or_io(path, errno.into())),
        }
    }
}

/// The error of a device that could not be opened or locked.
pub(super) fn busy_or_io(path: &Path, source: io::Error) -> OpenError {
    let path = path.to_owned();
    match source.raw_os_error() {
        Some(libc::EBUSY | libc::EWOULDBLOCK) => OpenError::Busy { path },
        _ => OpenError::Io { path, source },
    }
}

impl Deref for LockedFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl AsFd for LockedFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        // Fails for no valid handle; the lock then ends when the file is closed everywhere.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}
