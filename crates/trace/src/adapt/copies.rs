//! Copies of the load, each in its own address range.

use super::error::AdaptError;
use super::item::Item;
use crate::request::{Kind, Request};

/// See [`TraceExt::copies`](super::TraceExt::copies).
#[derive(Debug, Clone)]
pub struct Copies<I> {
    trace: I,
    copies: u32,
    stride_bytes: u64,
    /// The request that is copied, and the number of its next copy.
    current: Option<(Request, u32)>,
}

impl<I> Copies<I> {
    pub(super) fn new(trace: I, copies: u32, stride_bytes: u64) -> Result<Copies<I>, AdaptError> {
        match copies {
            0 => Err(AdaptError::NoCopies),
            _ => Ok(Copies { trace, copies, stride_bytes, current: None }),
        }
    }

    /// Makes a copy of a request. All copies have its time, so returning them together keeps the
    /// order of times.
    fn copy(&self, mut request: Request, copy: u32) -> Result<Request, AdaptError> {
        if request.kind == Kind::Flush {
            return Ok(request);
        }
        let offset_bytes = request.offset_bytes;
        let moved = u64::from(copy)
            .checked_mul(self.stride_bytes)
            .and_then(|distance| offset_bytes.checked_add(distance))
            .filter(|offset| offset.checked_add(request.bytes).is_some());
        let stride_bytes = self.stride_bytes;
        request.offset_bytes =
            moved.ok_or(AdaptError::CopyTooFar { copy, offset_bytes, stride_bytes })?;
        Ok(request)
    }
}

impl<I: Iterator<Item = Item>> Iterator for Copies<I> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        let (request, copy) = match self.current {
            Some(current) => current,
            None => match self.trace.next()? {
                Ok(request) => (request, 0),
                error => return Some(error),
            },
        };
        self.current = (copy + 1 < self.copies).then_some((request, copy + 1));
        Some(self.copy(request, copy).map_err(Into::into))
    }
}
