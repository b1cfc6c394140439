//! Recovery: the way from the contents of the flash to a shard, for service or for examination.

pub(crate) mod decisions;
pub(crate) mod examination;
mod log_start;
pub(crate) mod open;
mod replay;
pub(super) mod run;

pub(crate) use run::Recovered;
pub use run::{LogLoss, OnLogLoss};
