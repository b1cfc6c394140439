//! Writes of whole blocks: a unit that fails is replaced by another unit.

use crate::anti_affinity::AntiAffinity;
use crate::damage::Damage;
use crate::directory::{Copies, Directory};
use crate::error::{BlockError, Result};
use crate::lifecycle::Lifecycle;
use crate::open_block::OpenBlock;
use crate::pools::Pools;
use crate::redundancy::Groups;
use crate::space;
use crate::tag::{BlockId, BlockKind, Tag};
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

/// Attempts to write a block, each on another unit if there is one, before the write fails. As many
/// as for a log segment: on flash with program failures four in a row fail now and then.
const MAX_ATTEMPTS: u8 = 8;

/// Deletes a block that is being written whole, if the writer is dropped before the end.
struct Unfinished<'a> {
    lifecycle: &'a Lifecycle,
    id: Option<BlockId>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.lifecycle.delete(id);
        }
    }
}

/// Releases superblocks when dropped, unless a block has been moved to them.
struct Unused<'a> {
    pools: &'a Pools,
    copies: Option<Copies>,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some(copies) = self.copies.take() {
            self.pools.release(&copies, false);
        }
    }
}

/// Writes blocks.
pub(crate) struct Writer {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    groups: Rc<Groups>,
    damage: Rc<Damage>,
    lifecycle: Rc<Lifecycle>,
}

impl Writer {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        groups: &Rc<Groups>,
        damage: &Rc<Damage>,
        lifecycle: &Rc<Lifecycle>,
    ) -> Writer {
        Writer {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            groups: Rc::clone(groups),
            damage: Rc::clone(damage),
            lifecycle: Rc::clone(lifecycle),
        }
    }

    /// Writes a whole block from pieces of whole pages, on a unit that the set has not taken, if
    /// such a unit has room. A unit that fails is replaced by another unit.
    pub(crate) async fn write_whole(
        &self,
        id: BlockId,
        kind: BlockKind,
        mut pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        let mut unfinished = Unfinished { lifecycle: &self.lifecycle, id: Some(id) };
        let mut failed: SmallVec<[u16; 4]> = SmallVec::new();
        for attempt in 0..MAX_ATTEMPTS {
            anti_affinity.release(id);
            let taken =
                self.avoided(anti_affinity, &failed, self.pools.redundancy().copies_of(kind));
            let block = self.attempt(Tag { id, kind, attempt, copy: None }, &taken, hint)?;
            anti_affinity.take(id, block.copies());
            let is_last = attempt + 1 == MAX_ATTEMPTS;
            pieces = match block.write_all(pieces, hint).await {
                Ok(Some(returned)) if !is_last && block.lacks_copy().is_some() => returned,
                Ok(_) => {
                    block.seal();
                    unfinished.id = None;
                    return Ok(());
                }
                Err((error, returned)) => returned.ok_or(error)?,
            };
            failed.extend(block.copies().iter().map(|copy| copy.unit.0));
            self.lifecycle.delete(id);
        }
        Err(BlockError::DataLoss(format!("{id} could not be written in {MAX_ATTEMPTS} attempts")))
    }

    /// Units to avoid, as far as the other units have room for all copies: units taken by the rest
    /// of the group, and units that have just failed, which are the least loaded. A unit that has
    /// failed once is tried again before one is taken twice: its other superblocks may be good, and
    /// a fault of a unit with two blocks of a group can damage both. One that has failed twice is
    /// avoided before taken ones: a write to it fails.
    fn avoided(
        &self,
        anti_affinity: &AntiAffinity,
        failed: &[u16],
        copies: u8,
    ) -> SmallVec<[u16; 4]> {
        let has_room =
            |taken: &[u16]| self.pools.main().units_besides(taken) >= usize::from(copies);
        let taken_units =
            if planted::bug(Bug::GroupOnOneUnit) { Vec::new() } else { anti_affinity.units() };
        let times = |unit| failed.iter().filter(|other| **other == unit).count();
        let twice = failed.iter().filter(|unit| times(**unit) > 1);
        let choices: [SmallVec<[u16; 4]>; 4] = [
            taken_units.iter().chain(failed).copied().collect(),
            taken_units.iter().chain(twice).copied().collect(),
            failed.into(),
            taken_units.into(),
        ];
        choices.into_iter().find(|taken| has_room(taken)).unwrap_or_default()
    }

    /// Rewrites a block of a group: the same bytes under the same id, on a unit that no other block
    /// of the group has. The new superblock replaces the old one once it is durable.
    pub(crate) async fn rewrite_in_group(
        &self,
        id: BlockId,
        kind: BlockKind,
        mut pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        let before = self.directory.ask(id, |place| place.attempt);
        let first = before.map_or(Some(0), |attempt| attempt.checked_add(1));
        let attempts =
            first.into_iter().flat_map(|first| first..first.saturating_add(MAX_ATTEMPTS));
        for attempt in attempts {
            let (tag, taken) = (Tag { id, kind, attempt, copy: None }, anti_affinity.units());
            if self.pools.main().units_besides(&taken) == 0 {
                return Err(self.pools.main().lack_of_space());
            }
            space::leave_room(&self.pools, kind, hint)?;
            let copies = self.pools.main().allocate(tag, &taken, hint)?;
            let mut unused = Unused { pools: &self.pools, copies: Some(copies.clone()) };
            let block = self.opened(tag, false, copies.clone());
            pieces = match block.write_all(pieces, hint).await {
                Ok(_) => {
                    block.seal();
                    self.pools.flash().flush(hint).await?;
                    if self.groups.contains(id) {
                        unused.copies = None;
                        self.lifecycle.move_to(id, copies, attempt);
                    }
                    return Ok(());
                }
                Err((error, returned)) => returned.ok_or(error)?,
            };
        }
        Err(BlockError::DataLoss(format!("{id} could not be written again")))
    }

    /// Opens a new block for appends, on units that block `other` does not have, if such a unit has
    /// room.
    pub(crate) fn open_beside(
        &self,
        id: BlockId,
        kind: BlockKind,
        hint: Hint,
        other: Option<BlockId>,
    ) -> Result<OpenBlock> {
        let others = other.map(|other| self.directory.copies(other)).unwrap_or_default();
        let taken: SmallVec<[u16; 2]> = others.iter().map(|other| other.unit.0).collect();
        let pool = self.pools.of(self.pools.is_on_log(kind));
        let has_others = !taken.is_empty() && pool.units_besides(&taken) > 0;
        let taken = if has_others { &taken[..] } else { &[] };
        self.attempt(Tag { id, kind, attempt: 0, copy: None }, taken, hint)
    }

    fn attempt(&self, tag: Tag, taken: &[u16], hint: Hint) -> Result<OpenBlock> {
        let on_log = self.pools.is_on_log(tag.kind);
        space::leave_room(&self.pools, tag.kind, hint)?;
        let copies = self.pools.of(on_log).allocate(tag, taken, hint)?;
        self.lifecycle.enter(tag, copies.clone(), on_log);
        space::check_room_of_log(&self.pools, tag.kind);
        Ok(self.opened(tag, on_log, copies))
    }

    fn opened(&self, tag: Tag, on_log: bool, copies: Copies) -> OpenBlock {
        OpenBlock::new(&self.pools, &self.lifecycle, &self.damage, tag, on_log, copies)
    }
}
