//! Whether written data can still become durable.
//!
//! When a flush fails, the operating system may drop the dirty data, and later flushes do not
//! report that: an error is reported once, to the next flush, regardless of whose data were lost.
//! So the first such error is final: from then on no data written to the device counts as durable.
//! The contents of the device are read again when it is opened.

use crate::command::DeviceError;
use crate::sync::{AtomicI32, Ordering};

/// The first error of a flush or a durable write, for all queue pairs of a device.
#[derive(Debug, Default)]
pub(super) struct Settled {
    /// 0 as long as there is none.
    errno: AtomicI32,
}

impl Settled {
    /// Records the result of a flush or durable write; returns the result to report.
    pub(super) fn judge(&self, result: Result<(), DeviceError>) -> Result<(), DeviceError> {
        if let Err(DeviceError::Io { errno }) = result {
            let first = self.errno.compare_exchange(0, errno, Ordering::SeqCst, Ordering::SeqCst);
            if first.is_ok() {
                tracing::error!(
                    errno,
                    "a flush of the device failed: written data may be lost, and nothing is acknowledged until the \
                     device is opened again"
                );
            }
        }
        self.check().and(result)
    }

    /// Whether data can still be made durable.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        match self.errno.load(Ordering::SeqCst) {
            0 => Ok(()),
            errno => Err(DeviceError::Unsettled { errno }),
        }
    }
}
