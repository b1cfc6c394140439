//! Maintenance: the tasks that rewrite data in the background, and the changes of the trees that
//! they make.

mod background;
mod compact;
mod flush;
pub(super) mod log_refresh;
pub(super) mod manifest;
pub(super) mod merging;
pub(super) mod parity;
pub(super) mod pending_outputs;
mod rebuild;
mod refresh;
pub(super) mod repair_edits;
mod scrub;
pub(super) mod tasks;
