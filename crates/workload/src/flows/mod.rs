//! Workloads of several flows at once: tenants of one device.

mod mix;
mod spec;
mod split;

pub use mix::Mix;
pub use spec::{Flow, FlowWorkload, WriteSeeds};
