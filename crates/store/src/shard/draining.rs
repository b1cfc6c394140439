//! Units leave a shard while it is in use: their blocks are rewritten on its other units, by the
//! mechanisms that rewrite blocks which are hard to read. Sizes that follow the flash, of
//! memtables, log and runs, stay until the next start: they are those of more flash, so that more
//! is kept free.

use super::Shard;
use super::maintenance::log_refresh::LogRefresh;
use crate::error::{Result, StoreError};
use softflash_base::{UnitSet, cast};
use softflash_blocks::BlockId;
use std::time::Duration;

/// The time between two looks at the blocks that are left.
const LOOK: Duration = Duration::from_millis(50);

/// Looks after which a drain without space for any rewrite ends: compaction may make some
/// meanwhile.
const PATIENT_LOOKS: u32 = 600;

impl Shard {
    /// Empties units: no block is on them, and no recovery needs one that was. They take no blocks
    /// from here on, also after the return; where it fails, or is dropped before, they do.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] where the blocks do not fit the other units, or something else
    /// takes that space before; [`StoreError::Closed`], and errors of the log.
    pub(crate) async fn drain_units(&self, units: &UnitSet) -> Result<()> {
        let mut draining = Draining::begin(self, units)?;
        draining.check_room()?;
        let (mut least, mut looks) = (usize::MAX, 0);
        loop {
            let left = self.blocks.ids_on(units);
            if left.is_empty() {
                break;
            }
            (least, looks) = match left.len() < least || self.space().allows_rebuild() {
                true => (left.len().min(least), 0),
                false => (least, looks + 1),
            };
            if looks == PATIENT_LOOKS {
                return Err(draining.lack_of_room(left.len()));
            }
            self.move_blocks(&left).await?;
            self.runtime.sleep_until(self.runtime.now() + LOOK).await;
        }
        draining.is_complete = true;
        Ok(())
    }

    /// Requests that these blocks are rewritten, each by the mechanism for its kind.
    async fn move_blocks(&self, blocks: &[BlockId]) -> Result<()> {
        if self.tasks.is_closing() {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = self.tasks.failure() {
            return Err(failure);
        }
        blocks.iter().for_each(|id| self.blocks.note_moving(*id));
        self.values.end_blocks(blocks);
        self.tasks.request_compaction();
        self.tasks.request_collection();
        LogRefresh::of(self).refresh_log().await;
        Ok(())
    }

    /// Drained units leave the shard.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] for a unit with blocks, and errors of the flash.
    pub(crate) async fn leave_units(&self, units: &UnitSet) -> Result<()> {
        let left = self.blocks.ids_on(units).len();
        if left > 0 {
            let reason = format!("{left} of their blocks are still there; drain them first");
            return Err(StoreError::NotDrained { units: units.clone(), reason });
        }
        Ok(self.blocks.leave(units).await?)
    }

    /// Drained units stay: they take blocks again.
    pub(crate) fn keep_units(&self, units: &UnitSet) {
        self.blocks.set_draining(units, false);
        self.tasks.announce_room();
    }

    /// Bytes of the blocks that are on these units.
    pub(crate) fn bytes_on(&self, units: &UnitSet) -> u64 {
        cast::wide(self.blocks.ids_on(units).len()) * cast::wide(self.blocks.capacity_bytes())
    }
}

/// A drain: without a complete end, its units take blocks again.
struct Draining<'a> {
    shard: &'a Shard,
    units: &'a UnitSet,
    is_complete: bool,
}

impl<'a> Draining<'a> {
    fn begin(shard: &'a Shard, units: &'a UnitSet) -> Result<Draining<'a>> {
        let has = shard.blocks.flash().units();
        if units.iter().any(|unit| !has.contains(unit)) {
            let reason = format!("the keys of shard {} have the units {has}", shard.id.0);
            return Err(StoreError::NotDrained { units: units.clone(), reason });
        }
        shard.blocks.set_draining(units, true);
        Ok(Draining { shard, units, is_complete: false })
    }

    /// Fails unless the other units have room for the blocks, beside the room that is kept for
    /// flushes, the log and merges.
    fn check_room(&self) -> Result<()> {
        let moving = self.shard.blocks.ids_on(self.units).len();
        let free = cast::index(self.shard.blocks.free_blocks());
        match free >= moving + cast::index(self.shard.space().reserve()) {
            true => Ok(()),
            false => Err(self.lack_of_room(moving)),
        }
    }

    fn lack_of_room(&self, moving: usize) -> StoreError {
        let (free, kept) = (self.shard.blocks.free_blocks(), self.shard.space().reserve());
        let reason = format!(
            "{moving} superblocks with data do not fit the {free} free ones of the other units, of \
             which {kept} are kept for flushes, the log and merges; delete keys first"
        );
        StoreError::NotDrained { units: self.units.clone(), reason }
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.shard.keep_units(self.units);
        }
    }
}
