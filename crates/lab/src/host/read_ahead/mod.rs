//! Reads through an operating system's page cache instead of past it: a decorator around a device,
//! in virtual time.
//!
//! This is how a store reads that keeps its blocks as files and does not ask for direct I/O. What
//! it shows is the read-ahead of Linux (`mm/readahead.c`):
//!
//! - A read that is not larger than a window goes to the device as it is, unless it begins where
//!   the last one of its blocks ended.
//! - Any other goes to the device in windows, not as a whole. Two of them are under way at first;
//!   each further one is asked for when the reader reaches the window before it, which is when all
//!   before that have arrived.
//! - The window behind the last is read as well, up to the end of what was written: in vain, unless
//!   the next read begins where this one ended. Then it finds what was read ahead, and goes on as
//!   if it were the same.
//!
//! Windows have their full size at once. Linux begins with smaller ones where small reads come one
//! behind the other, and doubles them.
//!
//! Of the page cache itself there is no more than that: what was read once is not kept for later
//! reads, as if memory were small beside the data. Copying between cache and application takes no
//! time. Programs and erases pass as they are; what was read ahead of a block is forgotten when it
//! changes.

mod queue_pair;
mod stream;

use queue_pair::ReadAheadQueuePair;
use softflash_device::DeviceInfo;
use softflash_device::{Device, OpenError, QueuePair};
use std::ops::Range;
use std::sync::Arc;

/// The default size of a window: `read_ahead_kb` is 128 on Linux (`VM_MAX_READAHEAD`).
pub const LINUX_WINDOW_BYTES: u32 = 128 << 10;

/// A device that is read through a page cache.
pub struct ReadAhead {
    inner: Arc<dyn Device>,
    window_bytes: u32,
}

impl ReadAhead {
    /// Puts `inner`, which must know its times ([`Wake::At`](softflash_device::Wake::At)), behind a
    /// page cache that reads in windows of `window_bytes`.
    pub fn new(inner: Arc<dyn Device>, window_bytes: u32) -> ReadAhead {
        ReadAhead { inner, window_bytes }
    }
}

impl Device for ReadAhead {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn open_queue_pair(&self, units: Range<u16>) -> Result<Box<dyn QueuePair>, OpenError> {
        let inner = self.inner.open_queue_pair(units)?;
        Ok(Box::new(ReadAheadQueuePair::new(inner, self.window_bytes)))
    }
}
