//! The unit pools of a shard, and its count of free blocks.

use crate::pool::UnitPool;
use std::cell::Cell;

/// The units that blocks are placed on.
pub(crate) struct Pools {
    pub(crate) main: UnitPool,
    /// The units of log blocks, where the log has a device of its own.
    log: Option<UnitPool>,
    /// The cached number of blocks that can be written. `None` after a change.
    free: Cell<Option<u32>>,
}

impl Pools {
    pub(crate) fn new(main: UnitPool, log: Option<UnitPool>) -> Pools {
        Pools { main, log, free: Cell::new(None) }
    }

    pub(crate) fn has_log(&self) -> bool {
        self.log.is_some()
    }

    pub(crate) fn of(&self, on_log: bool) -> &UnitPool {
        match &self.log {
            Some(log) if on_log => log,
            _ => &self.main,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UnitPool> {
        [&self.main].into_iter().chain(&self.log)
    }

    /// Invalidates the count: blocks were written or deleted, or a unit was lost.
    pub(crate) fn note_change(&self) {
        self.free.set(None);
    }

    pub(crate) fn free_blocks(&self) -> u32 {
        let free = self.free.get().unwrap_or_else(|| self.main.free_blocks());
        self.free.set(Some(free));
        free
    }
}
