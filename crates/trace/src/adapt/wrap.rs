//! All addresses folded onto a smaller device.

use super::error::AdaptError;
use super::item::Item;
use crate::request::Request;

/// See [`TraceExt::wrap`](super::TraceExt::wrap). An address is taken modulo the device's size. A
/// request that crosses the end continues at the beginning as a second request with the same time;
/// a request longer than the device is cut to the device's size.
#[derive(Debug, Clone)]
pub struct Wrap<I> {
    trace: I,
    device_bytes: u64,
    /// The part of a request beyond the end.
    rest: Option<Request>,
}

impl<I> Wrap<I> {
    pub(super) fn new(trace: I, device_bytes: u64) -> Result<Wrap<I>, AdaptError> {
        match device_bytes {
            0 => Err(AdaptError::EmptyDevice),
            _ => Ok(Wrap { trace, device_bytes, rest: None }),
        }
    }

    #[inline]
    fn fold(&mut self, mut request: Request) -> Request {
        request.offset_bytes %= self.device_bytes;
        request.bytes = request.bytes.min(self.device_bytes);
        let room = self.device_bytes - request.offset_bytes;
        if request.bytes > room {
            self.rest = Some(Request { offset_bytes: 0, bytes: request.bytes - room, ..request });
            request.bytes = room;
        }
        request
    }
}

impl<I: Iterator<Item = Item>> Iterator for Wrap<I> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        match self.rest.take() {
            Some(rest) => Some(Ok(rest)),
            None => Some(self.trace.next()?.map(|request| self.fold(request))),
        }
    }
}
