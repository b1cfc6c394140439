//! What all connections share, each a thing of its own, and small helpers: nothing here knows a command's handler.

pub mod clients;
pub(crate) mod cursors;
pub(crate) mod glob;
mod kill;
pub(crate) mod lock;
pub(crate) mod poll;
pub(crate) mod recording;
pub mod slowlog;
