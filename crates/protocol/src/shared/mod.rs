//! State that all connections share, one file for each part, and small helpers. Nothing here
//! depends on handlers or sessions.

pub mod clients;
pub(crate) mod command_counts;
pub(crate) mod cursors;
pub(crate) mod glob;
mod kill;
pub(crate) mod lock;
pub(crate) mod poll;
pub mod recording;
pub mod slowlog;
