//! Buffered reads through the page cache of an operating system, instead of direct I/O: a decorator
//! around a device, in virtual time.
//!
//! A store that keeps its blocks in files without direct I/O reads like this. The model is the
//! read-ahead of Linux (`mm/readahead.c`):
//!
//! - A read that is not larger than a window goes to the device unchanged, unless it begins where
//!   the last read of its blocks ended.
//! - Any other read goes to the device in windows. Two windows are under way at first; each further
//!   one is submitted when the reader reaches the window before it, after the arrival of all
//!   windows before that.
//! - The window after the last is read as well, up to the end of the written data. It is useful
//!   only if the next read begins where this one ended: that read then uses the window, and
//!   continues the stream.
//!
//! Windows have their full size at once. For sequential small reads, Linux begins with smaller ones
//! and doubles them.
//!
//! The page cache is not modelled otherwise: data are not cached for later reads, as if memory were
//! small compared with the data. Copies between cache and application take no time. Programs and
//! erases pass unchanged; a change of a block discards its read-ahead.

mod queue_pair;
mod stream;

use queue_pair::ReadAheadQueuePair;
use softflash_base::UnitSet;
use softflash_device::DeviceInfo;
use softflash_device::{Device, OpenError, QueuePair};
use std::sync::Arc;

/// The default size of a window: `read_ahead_kb` is 128 on Linux (`VM_MAX_READAHEAD`).
pub const LINUX_WINDOW_BYTES: u32 = 128 << 10;

/// A device that is read through a page cache.
pub struct ReadAhead {
    inner: Arc<dyn Device>,
    window_bytes: u32,
}

impl ReadAhead {
    /// Puts `inner`, which must know the times of its completions
    /// ([`Wake::At`](softflash_device::Wake::At)), behind a page cache that reads in windows of
    /// `window_bytes`.
    pub fn new(inner: Arc<dyn Device>, window_bytes: u32) -> ReadAhead {
        ReadAhead { inner, window_bytes }
    }
}

impl Device for ReadAhead {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        let inner = self.inner.open_queue_pair(units)?;
        Ok(Box::new(ReadAheadQueuePair::new(inner, self.window_bytes)))
    }
}
