//! When requests are made.

mod arrivals;
mod rate_cap;
mod spec;

pub use arrivals::{ArrivalPattern, Arrivals};
pub use rate_cap::{RateCap, RateCaps};
pub use spec::Load;
pub(crate) use spec::MAX_OUTSTANDING;
