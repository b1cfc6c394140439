//! Room for a device on its file system.

use rustix::fs::{FallocateFlags, fallocate, fstatvfs, syncfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::time::Duration;

/// Attempts to find the space of a device on its file system, and the pause between them.
const ROOM_ATTEMPTS: usize = 60;
const ROOM_WAIT: Duration = Duration::from_millis(50);

/// Why a file has not the room that was asked for.
#[derive(Debug)]
pub(super) enum NoRoom {
    /// The file system is full.
    Full,
    /// The operating system refused.
    Io(io::Error),
}

impl From<Errno> for NoRoom {
    fn from(errno: Errno) -> NoRoom {
        match errno {
            Errno::NOSPC | Errno::FBIG => NoRoom::Full,
            errno => NoRoom::Io(errno.into()),
        }
    }
}

/// Allocates these bytes of a file, so that later programs cannot run out of space. The file is
/// extended where it is shorter.
pub(super) fn reserve(file: &File, bytes: Range<u64>) -> Result<(), NoRoom> {
    let more = bytes.end.saturating_sub(bytes.start);
    if more == 0 {
        return Ok(());
    }
    wait_for(file, more)?;
    Ok(fallocate(file, FallocateFlags::empty(), bytes.start, more)?)
}

/// Waits a few seconds at most until the file system has so many `bytes`: the space of a file that
/// was deleted is free once the kernel has closed it for a process that has ended, and once the
/// journal is written. Checked before the allocation, because one that fails half-way fills the
/// file system meanwhile.
#[expect(clippy::disallowed_methods, reason = "a device gets its room outside every runtime")]
fn wait_for(file: &File, bytes: u64) -> Result<(), NoRoom> {
    for attempt in 0..ROOM_ATTEMPTS {
        let space = fstatvfs(file)?;
        if space.f_bavail.saturating_mul(space.f_frsize) >= bytes {
            return Ok(());
        }
        if attempt == 0 {
            syncfs(file)?;
        }
        std::thread::sleep(ROOM_WAIT);
    }
    Err(NoRoom::Full)
}
