//! The system calls of a device, one method each. Tests replace them with a failing file system.

use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The calls, on the file or on its replacement in tests.
pub trait FileCalls: Send + Sync {
    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    /// Those of the operating system.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes`; they are durable after the next [`sync`](FileCalls::sync).
    ///
    /// # Errors
    /// Those of the operating system.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes`, durably; earlier writes need not be durable.
    ///
    /// # Errors
    /// Those of the operating system.
    fn write_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Those of the operating system.
    fn sync(&self) -> io::Result<()>;

    /// Frees or zeroes an extent, as `fallocate(2)` with this mode.
    ///
    /// # Errors
    /// Those of the operating system.
    fn allocate(&self, mode: i32, offset: u64, len: u64) -> io::Result<()>;
}

impl FileCalls for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn write_durable_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset).and_then(|()| self.sync_data())
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn allocate(&self, mode: i32, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fallocate(self, flags, offset, len).map_err(io::Error::from)
    }
}
