//! Orders: which of the operations that wait for a die goes next, and which tenant of a shared
//! resource (a domain, a die) is served next.

pub mod arrival;
mod deadline;
pub mod reads_first;
mod schedule;
#[cfg(test)]
mod tests;
mod waiting;
mod weighted_fair;

pub use schedule::{Schedule, Shares};
pub use waiting::Waiting;
pub use weighted_fair::{StartTag, WeightedFair};
