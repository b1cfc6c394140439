//! Whether what was written can still become durable.
//!
//! After a flush that failed, the operating system may have dropped what was waiting to be written,
//! and the next flush says nothing of it: it reports an error once, to the next flush, whosever
//! data were lost. So the first such error is the last word: from then on nothing that is written
//! to the device counts as durable. Its contents are read again when it is opened.

use crate::command::DeviceError;
#[cfg(feature = "loom")]
use loom::sync::atomic::{AtomicI32, Ordering};
#[cfg(not(feature = "loom"))]
use std::sync::atomic::{AtomicI32, Ordering};

#[cfg(all(test, feature = "loom"))]
mod model;

/// The first error of a flush or a durable write, for all queue pairs of a device.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// 0 as long as there is none.
    errno: AtomicI32,
}

impl Settled {
    /// Takes note of the end of a flush or durable write; what is to be said of it.
    pub(super) fn judge(&self, result: Result<(), DeviceError>) -> Result<(), DeviceError> {
        if let Err(DeviceError::Io { errno }) = result {
            let first = self.errno.compare_exchange(0, errno, Ordering::SeqCst, Ordering::SeqCst);
            if first.is_ok() {
                tracing::error!(
                    errno,
                    "a flush of the device failed: what was written may be lost, and nothing is acknowledged until the \
                     device is opened again"
                );
            }
        }
        self.check().and(result)
    }

    /// Whether anything can be made durable.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        match self.errno.load(Ordering::SeqCst) {
            0 => Ok(()),
            errno => Err(DeviceError::Unsettled { errno }),
        }
    }
}
