//! Adaptors that change a trace: iterators over iterators of requests.

mod copies;
mod error;
mod item;
mod speed;
mod within;
mod wrap;

pub use copies::Copies;
pub use error::AdaptError;
pub use item::Item;
pub use speed::Speed;
pub use within::Within;
pub use wrap::Wrap;

/// Adaptors of any iterator over a trace: a [`Reader`](crate::Reader) or another adaptor.
pub trait TraceExt: Iterator<Item = Item> + Sized {
    /// Replays `factor` times as fast: all times are divided by `factor`.
    fn speed(self, factor: f64) -> Result<Speed<Self>, AdaptError> {
        Speed::new(self, factor)
    }

    /// Multiplies the load: every request is repeated `copies` times at its time; copy `i` (from 0)
    /// has an offset that is larger by `i * stride_bytes`.
    fn copies(self, copies: u32, stride_bytes: u64) -> Result<Copies<Self>, AdaptError> {
        Copies::new(self, copies, stride_bytes)
    }

    /// Folds all addresses onto a device of `device_bytes`.
    fn wrap(self, device_bytes: u64) -> Result<Wrap<Self>, AdaptError> {
        Wrap::new(self, device_bytes)
    }

    /// Ends with [`AdaptError::BeyondDevice`] at the first request that ends beyond a device of
    /// `device_bytes`.
    fn within(self, device_bytes: u64) -> Within<Self> {
        Within::new(self, device_bytes)
    }
}

impl<I: Iterator<Item = Item>> TraceExt for I {}
