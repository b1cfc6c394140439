//! Block workloads.

mod begin;
mod pattern;
mod place;
mod scatter;
mod share;
mod size;
mod source;
mod span;
mod spec;

pub use begin::Begin;
pub use pattern::Pattern;
pub use scatter::Scatter;
pub use size::{RequestSize, SizeShare};
pub use source::BlockSource;
pub use span::Span;
pub use spec::BlockWorkload;
