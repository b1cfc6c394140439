//! The unit pools of a shard, and its count of free blocks.

use crate::error::Result;
use crate::pool::UnitPool;
use crate::redundancy::Redundancy;
use crate::tag::BlockKind;
use softflash_base::UnitSet;
use softflash_flash::Flash;
use softflash_ftl::Superblock;
use softflash_policy::PlacementPolicy;
use std::cell::Cell;

/// The units that blocks are placed on.
pub(crate) struct Pools {
    main: UnitPool,
    /// The units of log blocks, where the log has a device of its own.
    log: Option<UnitPool>,
    /// The cached number of blocks that can be written. `None` after a change.
    free: Cell<Option<u32>>,
}

impl Pools {
    pub(crate) fn new(main: UnitPool, log: Option<UnitPool>) -> Pools {
        Pools { main, log, free: Cell::new(None) }
    }

    /// The units of all blocks, except log blocks that have units of their own.
    pub(crate) fn main(&self) -> &UnitPool {
        &self.main
    }

    pub(crate) fn of(&self, on_log: bool) -> &UnitPool {
        match &self.log {
            Some(log) if on_log => log,
            _ => &self.main,
        }
    }

    /// The flash of the main units.
    pub(crate) fn flash(&self) -> &Flash {
        self.main.flash()
    }

    /// Bytes per page.
    pub(crate) fn page_bytes(&self) -> usize {
        self.flash().page_bytes()
    }

    /// Whether blocks of this kind go to the log's own flash.
    pub(crate) fn is_on_log(&self, kind: BlockKind) -> bool {
        self.log.is_some() && matches!(kind, BlockKind::Log { .. })
    }

    pub(crate) fn redundancy(&self) -> Redundancy {
        self.main.redundancy()
    }

    /// Whether a new block survives the loss of a unit.
    pub(crate) fn are_redundant(&self) -> bool {
        self.main.is_redundant()
    }

    pub(crate) fn place_by(&self, policy: PlacementPolicy) {
        [&self.main].into_iter().chain(&self.log).for_each(|pool| pool.place_by(policy));
    }

    /// The units of `other` are main units from now on.
    pub(crate) fn join(&self, other: Flash) -> Result<()> {
        let joined = self.main.join(other);
        self.note_change();
        joined
    }

    /// Whether these main units take blocks.
    pub(crate) fn set_draining(&self, units: &UnitSet, is_draining: bool) {
        self.main.set_draining(units, is_draining);
        self.note_change();
    }

    /// Drained units are main units no more.
    pub(crate) async fn leave(&self, units: &UnitSet) -> Result<()> {
        for unit in units {
            let left = self.main.leave(unit).await;
            self.note_change();
            left?;
        }
        Ok(())
    }

    /// Releases superblocks, which changes the count.
    pub(crate) fn release(&self, superblocks: &[Superblock], on_log: bool) {
        self.of(on_log).release(superblocks);
        self.note_change();
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
