//! Orders of admission: which tenant of a shared resource (a domain, a die) is served next.

#[cfg(test)]
mod tests;
mod weighted_fair;

pub use weighted_fair::{StartTag, WeightedFair};
