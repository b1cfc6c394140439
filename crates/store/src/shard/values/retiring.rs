//! The state of the collector: empty blocks on their way to deletion.

use super::ledger::Empty;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// The collector's state.
#[derive(Default)]
pub struct Collector {
    /// Blocks to delete, each with the last sequence number before it was empty.
    pub(super) retiring: RefCell<VecDeque<(u64, Empty)>>,
    /// It has no work.
    pub(crate) is_idle: Cell<bool>,
}
