//! The lock of a data directory.

use crate::directory::LOCK_NAME;
use crate::error::DataDirError;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// The lock of a directory, which ends with this value.
///
/// Closing the lock file would not always end it: a child process that another thread is about to
/// start has the handle too, until it runs its program.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Fails for no valid handle; the lock then ends when the file is closed everywhere.
        let _ = self.0.unlock();
    }
}

/// Locks the directory and records this process in the lock file.
pub(crate) fn acquire_lock(directory: &Path) -> Result<Lock, DataDirError> {
    let path = directory.join(LOCK_NAME);
    let io_error = |source| match is_unwritable(&source) {
        true => DataDirError::Unwritable { path: directory.to_owned(), source },
        false => DataDirError::Io { path: path.clone(), source },
    };
    let mut options = fs::OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let file = options.open(&path).map_err(io_error)?;
    let mut lock = lock(directory, file)?.map_err(io_error)?;
    let mut note_holder = || {
        lock.0.set_len(0)?;
        lock.0.rewind()?;
        writeln!(lock.0, "{}", std::process::id())
    };
    match note_holder() {
        // The lock holds on a full file system, too; its holder is only for messages.
        Err(error) if error.kind() == io::ErrorKind::StorageFull => Ok(lock),
        noted => noted.map(|()| lock).map_err(io_error),
    }
}

/// Locks the directory for a reader. On a file system that cannot be written there may be no lock
/// file, and no process that writes.
pub(crate) fn lock_to_look(directory: &Path) -> Result<Option<Lock>, DataDirError> {
    match acquire_lock(directory) {
        Err(DataDirError::Unwritable { .. }) => {
            let Ok(file) = File::open(directory.join(LOCK_NAME)) else { return Ok(None) };
            // Some file systems lock only what is open for writing.
            lock(directory, file).map(Result::ok)
        }
        locked => locked.map(Some),
    }
}

fn is_unwritable(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Locks the file; the inner error is one of the file system.
fn lock(directory: &Path, mut file: File) -> Result<io::Result<Lock>, DataDirError> {
    match file.try_lock() {
        Ok(()) => Ok(Ok(Lock(file))),
        Err(TryLockError::WouldBlock) => {
            let holder = holder(&mut file);
            Err(DataDirError::Busy { path: directory.to_owned(), holder })
        }
        Err(TryLockError::Error(source)) => Ok(Err(source)),
    }
}

/// The process that a lock file names.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
