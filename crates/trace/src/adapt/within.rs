//! A check that a trace fits onto its device.

use super::error::AdaptError;
use super::item::Item;

/// See [`TraceExt::within`](super::TraceExt::within).
#[derive(Debug, Clone)]
pub struct Within<I> {
    trace: I,
    device_bytes: u64,
    ended: bool,
}

impl<I> Within<I> {
    pub(super) fn new(trace: I, device_bytes: u64) -> Within<I> {
        Within { trace, device_bytes, ended: false }
    }
}

impl<I: Iterator<Item = Item>> Iterator for Within<I> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        if self.ended {
            return None;
        }
        let request = match self.trace.next()? {
            Ok(request) if request.end_bytes() > self.device_bytes => request,
            item => return Some(item),
        };
        self.ended = true;
        let beyond = AdaptError::BeyondDevice {
            at_ns: request.at_ns,
            device: request.device,
            offset_bytes: request.offset_bytes,
            bytes: request.bytes,
            device_bytes: self.device_bytes,
        };
        Some(Err(beyond.into()))
    }
}
