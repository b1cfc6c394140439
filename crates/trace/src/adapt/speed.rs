//! The speed of a replay.

use super::error::AdaptError;
use super::item::Item;

/// The latest time, 146 years, which leaves room after the last request.
const LATEST_NS: f64 = (1_u64 << 62) as f64;

/// See [`TraceExt::speed`](super::TraceExt::speed).
#[derive(Debug, Clone)]
pub struct Speed<I> {
    trace: I,
    factor: f64,
}

impl<I> Speed<I> {
    pub(super) fn new(trace: I, factor: f64) -> Result<Speed<I>, AdaptError> {
        if factor.is_finite() && factor > 0.0 {
            Ok(Speed { trace, factor })
        } else {
            Err(AdaptError::Speed(factor))
        }
    }
}

impl<I: Iterator<Item = Item>> Iterator for Speed<I> {
    type Item = Item;

    #[inline]
    fn next(&mut self) -> Option<Item> {
        Some(self.trace.next()?.and_then(|mut request| {
            // Division keeps the order; times beyond 104 days (53 bits) are rounded. At speed 1
            // none is.
            if self.factor != 1.0 {
                let at_ns = request.at_ns as f64 / self.factor;
                if at_ns > LATEST_NS {
                    return Err(AdaptError::TooSlow(self.factor).into());
                }
                request.at_ns = at_ns as u64;
            }
            Ok(request)
        }))
    }
}
