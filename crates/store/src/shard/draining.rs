//! Units leave a shard while it is in use: their blocks are rewritten on its other units, by the
//! mechanisms that rewrite blocks which are hard to read. Sizes that follow the flash, of
//! memtables, log and runs, stay until the next start: they are those of more flash, so that more
//! is kept free.

use super::Shard;
use super::maintenance::log_refresh::LogRefresh;
use crate::error::{Result, StoreError};
use softflash_base::{UnitSet, cast};
use softflash_blocks::BlockId;
use std::collections::BTreeSet;
use std::time::Duration;

/// The time between two looks at the blocks that are left.
const LOOK: Duration = Duration::from_millis(50);

/// Looks after which all blocks that are left are asked for again: the rewrite of some may have
/// failed. Not earlier: others get their turn meanwhile.
const LOOKS_OF_A_REQUEST: u32 = 100;

/// The time after which a drain ends that has emptied no superblock: the space is taken, a block is
/// being read all the time, or cannot be read.
const PATIENCE: Duration = Duration::from_secs(60);

impl Shard {
    /// Empties units: no superblock of them is in use, and no recovery needs one that was. They
    /// take no blocks from here on, also after the return; where it fails, or is dropped before,
    /// they do.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] where the blocks do not fit the other units, or some of them do
    /// not move; [`StoreError::Closed`], and errors of the log.
    pub(crate) async fn drain_units(&self, units: &UnitSet) -> Result<()> {
        let mut draining = Draining::begin(self, units)?;
        draining.check_patches()?;
        draining.check_room()?;
        let (mut least, mut since) = (u32::MAX, self.runtime.now());
        loop {
            let left = self.superblocks_on(units);
            match left {
                0 => break,
                _ if left < least => (least, since) = (left, self.runtime.now()),
                _ if self.runtime.now() > since + PATIENCE => return Err(draining.standstill(left)),
                _ => {}
            }
            draining.move_blocks().await?;
            self.runtime.sleep_until(self.runtime.now() + LOOK).await;
        }
        draining.is_complete = true;
        Ok(())
    }

    /// Drained units leave the shard.
    ///
    /// # Errors
    /// [`StoreError::NotDrained`] for units with superblocks in use, and errors of the flash.
    pub(crate) async fn leave_units(&self, units: &UnitSet) -> Result<()> {
        let left = self.superblocks_on(units);
        if left > 0 {
            let reason = format!("{left} of their superblocks are in use: they were not drained");
            return Err(self.not_drained(units, reason));
        }
        Ok(self.blocks.leave(units).await?)
    }

    /// Drained units stay: they take blocks again.
    pub(crate) fn keep_units(&self, units: &UnitSet) {
        self.blocks.ids_on(units).into_iter().for_each(|id| self.blocks.note_staying(id));
        self.blocks.set_draining(units, false);
        self.tasks.announce_room();
    }

    /// Bytes of the superblocks of these units that are in use.
    pub(crate) fn bytes_on(&self, units: &UnitSet) -> u64 {
        u64::from(self.superblocks_on(units)) * cast::wide(self.blocks.capacity_bytes())
    }

    fn superblocks_on(&self, units: &UnitSet) -> u32 {
        let own = self.blocks.flash().units();
        let spaces = units.iter().filter(|unit| own.contains(*unit));
        let spaces = spaces.map(|unit| self.blocks.flash().space(unit));
        spaces.map(|space| space.open + space.live).sum()
    }

    fn not_drained(&self, units: &UnitSet, reason: String) -> StoreError {
        StoreError::NotDrained { units: units.clone(), shard: self.id, reason }
    }
}

/// A drain: without a complete end, its units take blocks again.
struct Draining<'a> {
    shard: &'a Shard,
    units: &'a UnitSet,
    /// Blocks that have been asked to move.
    asked: BTreeSet<BlockId>,
    looks: u32,
    is_complete: bool,
}

impl<'a> Draining<'a> {
    fn begin(shard: &'a Shard, units: &'a UnitSet) -> Result<Draining<'a>> {
        let blocks = &shard.blocks;
        let has = blocks.flash().units();
        if units.iter().any(|unit| !has.contains(unit)) {
            return Err(shard.not_drained(units, format!("the shard has the units {has}")));
        }
        let (was_redundant, width) = (blocks.is_redundant(), blocks.group_width());
        blocks.set_draining(units, true);
        let (asked, looks, is_complete) = (BTreeSet::new(), 0, false);
        let draining = Draining { shard, units, asked, looks, is_complete };
        // Units that are lost or worn out count in the layout, and take no blocks.
        let has_groups = width < 2 || blocks.group_width() >= 2;
        match !was_redundant || blocks.is_redundant() && has_groups {
            true => Ok(draining),
            false => Err(draining.refused(
                "two copies or parity need them, as others of the shard are lost or worn out; \
                 replace those first"
                    .to_owned(),
            )),
        }
    }

    /// Fails if one of the blocks is a patch that nobody can read.
    fn check_patches(&self) -> Result<()> {
        let moving = self.shard.blocks.ids_on(self.units);
        for slice in self.shard.slices.iter() {
            let tree = slice.tree();
            let mut patches = tree.patches().map(|(.., patch)| patch);
            let lost = patches.find(|patch| {
                patch.damage().is_some() && moving.binary_search(&patch.id()).is_ok()
            });
            if let Some(patch) = lost {
                let (id, damage) = (patch.id(), patch.damage().unwrap_or_default());
                return Err(self.refused(format!(
                    "{id} on them cannot be read ({damage}); stop the server and run \
                     `softflash check --repair`, or wait until it can be read"
                )));
            }
        }
        Ok(())
    }

    /// Fails unless the other units have room for the blocks, beside the room that is kept for
    /// flushes, the log and merges.
    fn check_room(&self) -> Result<()> {
        let moving = cast::saturating_u32(self.shard.blocks.ids_on(self.units).len());
        let (free, kept) = (self.shard.blocks.free_blocks(), self.shard.space().reserve());
        match free >= moving.saturating_add(kept) {
            true => Ok(()),
            false => Err(self.refused(format!(
                "{moving} superblocks with data do not fit the {free} free ones of the other units \
                 of the shard, of which {kept} are kept for flushes, the log and merges; delete \
                 keys first, or give the shard other units"
            ))),
        }
    }

    /// Requests that the blocks are rewritten, each by the mechanism for its kind.
    async fn move_blocks(&mut self) -> Result<()> {
        let Shard { blocks, tasks, values, log, .. } = self.shard;
        if tasks.is_closing() {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = tasks.failure() {
            return Err(failure);
        }
        if self.looks.is_multiple_of(LOOKS_OF_A_REQUEST) {
            self.asked.clear();
        }
        self.looks += 1;
        // An announced segment of the log becomes the current one, which moves then.
        let of_log = log.blocks();
        let is_asked = |id: &BlockId| self.asked.contains(id) && !of_log.contains(id);
        let left = blocks.ids_on(self.units);
        let to_ask: Vec<BlockId> = left.into_iter().filter(|id| !is_asked(id)).collect();
        to_ask.iter().for_each(|id| blocks.note_moving(*id));
        values.end_blocks(&to_ask);
        self.asked.extend(&to_ask);
        if !to_ask.is_empty() {
            tasks.request_compaction();
            tasks.request_collection();
            LogRefresh::of(self.shard).refresh_log().await;
        }
        Ok(())
    }

    fn standstill(&self, left: u32) -> StoreError {
        let blocks: Vec<String> =
            self.shard.blocks.ids_on(self.units).iter().take(3).map(BlockId::to_string).collect();
        let (free, kept) = (self.shard.blocks.free_blocks(), self.shard.space().reserve());
        let patience = PATIENCE.as_secs();
        self.refused(format!(
            "{left} superblocks with data have not moved for {patience} s ({}), with {free} free ones \
             on the other units, of which {kept} are kept; the log of the server says which cannot be \
             read, `softflash check --repair` of a stopped one finds and mends them; \
             else try again when clients write less",
            blocks.join(", ")
        ))
    }

    fn refused(&self, reason: String) -> StoreError {
        self.shard.not_drained(self.units, reason)
    }
}

impl Drop for Draining<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            self.shard.keep_units(self.units);
        }
    }
}
