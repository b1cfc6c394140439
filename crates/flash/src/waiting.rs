//! Waits for a device.

use futures_util::future::{Either, select};
use softflash_device::Wake;
use softflash_runtime::{Notify, RuntimeHandle, yield_now};
use std::cell::Cell;
use std::os::fd::RawFd;
use std::pin::pin;

/// Waits for one device. It must be dropped before the device is: the runtime forgets the device's
/// descriptor then, whose number may be another one's afterwards.
pub(crate) struct DeviceWaits {
    runtime: RuntimeHandle,
    descriptor: Cell<Option<RawFd>>,
}

impl DeviceWaits {
    pub(crate) fn new(runtime: RuntimeHandle) -> DeviceWaits {
        DeviceWaits { runtime, descriptor: Cell::new(None) }
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    /// Waits until the device may have completions, or for a submission.
    pub(crate) async fn wait(&self, wake: Wake, submitted: Option<&Notify>) {
        let device = match wake {
            Wake::Now => return yield_now().await,
            Wake::At(time) => Some(self.runtime.sleep_until(time)),
            Wake::Readable(descriptor) => {
                self.descriptor.set(Some(descriptor));
                Some(self.runtime.readable(descriptor))
            }
            Wake::Idle => None,
        };
        match (device, submitted) {
            (Some(device), Some(submitted)) => {
                match select(device, pin!(submitted.notified())).await {
                    Either::Left(_) | Either::Right(_) => {}
                }
            }
            (Some(device), None) => device.await,
            (None, Some(submitted)) => submitted.notified().await,
            (None, None) => yield_now().await,
        }
    }
}

impl Drop for DeviceWaits {
    fn drop(&mut self) {
        if let Some(descriptor) = self.descriptor.get() {
            self.runtime.forget(descriptor);
        }
    }
}
