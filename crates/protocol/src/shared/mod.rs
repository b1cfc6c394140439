//! State that all connections share, one file for each part, and small helpers. Nothing here
//! depends on handlers or sessions.

pub mod clients;
pub mod command_stats;
pub(crate) mod cursors;
pub(crate) mod error_stats;
pub(crate) mod forgery;
pub(crate) mod glob;
pub(crate) mod kept;
mod kill;
pub mod latency_buckets;
pub(crate) mod lock;
pub(crate) mod loss_log;
pub(crate) mod poll;
pub(crate) mod rate;
pub mod recording;
pub mod slowlog;
mod sync;
