//! Blocks that are being written: all copies get the same pages. Where one copy fails, appends
//! continue on the other copy. But acknowledged data should be in both: [`OpenBlock::lacks_copy`]
//! reports that another block would have all copies, and the writer continues there.

use crate::directory::Copies;
use crate::error::{BlockError, Result};
use crate::layer::BlockLayer;
use crate::tag::{BlockId, BlockKind, Tag};
use futures_util::future::{Either, join};
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_flash::Outcome;
use softflash_ftl::{FtlError, Hint, Superblock};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// Attempts to write a block, each on another unit if there is one, before the write fails. As many
/// as for a log segment: on flash with program failures four in a row fail now and then.
const MAX_ATTEMPTS: u8 = 8;

/// A block that takes appends. Dropping it ends the appends and keeps the block.
pub struct OpenBlock(Rc<Appends>);

/// Blocks that belong on different units, and the units that they have taken so far. A clone is the
/// same set.
#[derive(Clone, Default)]
pub struct AntiAffinity(Rc<RefCell<Vec<(BlockId, u16)>>>);

impl AntiAffinity {
    /// A set with blocks that exist, and their units.
    pub fn of(taken: impl IntoIterator<Item = (BlockId, u16)>) -> AntiAffinity {
        AntiAffinity(Rc::new(RefCell::new(taken.into_iter().collect())))
    }

    /// The units taken.
    pub fn units(&self) -> Vec<u16> {
        self.0.borrow().iter().map(|(_, unit)| *unit).collect()
    }

    fn take(&self, id: BlockId, copies: &[Superblock]) {
        self.0.borrow_mut().extend(copies.iter().map(|copy| (id, copy.unit.0)));
    }

    fn release(&self, id: BlockId) {
        self.0.borrow_mut().retain(|(taker, _)| *taker != id);
    }
}

/// The state of an open block, shared with its appends under way.
struct Appends {
    layer: BlockLayer,
    id: BlockId,
    kind: BlockKind,
    on_log: bool,
    copies: Copies,
    /// The state of each copy.
    fates: [CopyFate; 2],
}

/// The state of a copy.
#[derive(Default)]
struct CopyFate {
    /// It holds an append.
    holds: Cell<bool>,
    /// The failure that ended its appends.
    failure: RefCell<Option<FtlError>>,
}

/// Deletes a block that is being written whole, if the writer is dropped before the end.
struct Unfinished<'a> {
    layer: &'a BlockLayer,
    id: Option<BlockId>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.layer.delete(id);
        }
    }
}

/// Releases superblocks when dropped, unless a block has been moved to them.
struct Unused<'a> {
    layer: &'a BlockLayer,
    copies: Option<Copies>,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        if let Some(copies) = self.copies.take() {
            copies.iter().for_each(|copy| self.layer.flash().release(copy));
            self.layer.parts.pools.note_change();
        }
    }
}

impl BlockLayer {
    /// Writes a whole block from pieces of whole pages. A unit that fails is replaced by another
    /// unit. The block exists when this returns, with all copies if the flash has room for them,
    /// and is durable after the next flush.
    pub async fn put(
        &self,
        id: BlockId,
        kind: BlockKind,
        pieces: Vec<IoBuf>,
        hint: Hint,
    ) -> Result<()> {
        self.put_avoiding(id, kind, pieces, hint, &AntiAffinity::default()).await
    }

    /// As [`put`](BlockLayer::put), on a unit that the set has not taken, if such a unit has room.
    pub async fn put_avoiding(
        &self,
        id: BlockId,
        kind: BlockKind,
        mut pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        let mut unfinished = Unfinished { layer: self, id: Some(id) };
        let mut failed: SmallVec<[u16; 4]> = SmallVec::new();
        for attempt in 0..MAX_ATTEMPTS {
            anti_affinity.release(id);
            let taken = self.avoided(anti_affinity, &failed, self.parts.redundancy.copies_of(kind));
            let block = self.attempt(Tag { id, kind, attempt, copy: None }, &taken, hint)?;
            anti_affinity.take(id, &block.0.copies);
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
            failed.extend(block.0.copies.iter().map(|copy| copy.unit.0));
            self.delete(id);
        }
        Err(BlockError::DataLoss(format!("{id} could not be written in {MAX_ATTEMPTS} attempts")))
    }

    /// Units to avoid, as far as the other units have room for all copies: units taken by the rest
    /// of the group, and units that have just failed, which are the least loaded. Failed units are
    /// avoided before taken ones: a write to them fails.
    fn avoided(
        &self,
        anti_affinity: &AntiAffinity,
        failed: &[u16],
        copies: u8,
    ) -> SmallVec<[u16; 4]> {
        let has_room = |taken: &[u16]| self.units_besides(taken) >= usize::from(copies);
        let taken_units =
            if planted::bug(Bug::GroupOnOneUnit) { Vec::new() } else { anti_affinity.units() };
        let choices: [SmallVec<[u16; 4]>; 3] = [
            taken_units.iter().chain(failed).copied().collect(),
            failed.into(),
            taken_units.into(),
        ];
        choices.into_iter().find(|taken| has_room(taken)).unwrap_or_default()
    }

    /// Rewrites a block of a group: the same bytes under the same id, on a unit that no other block
    /// of the group has. The new superblock replaces the old one once it is durable.
    pub async fn rewrite(
        &self,
        id: BlockId,
        kind: BlockKind,
        mut pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        let before = self.parts.directory.ask(id, |place| place.attempt);
        let first = before.map_or(Some(0), |attempt| attempt.checked_add(1));
        let attempts =
            first.into_iter().flat_map(|first| first..first.saturating_add(MAX_ATTEMPTS));
        for attempt in attempts {
            let (tag, taken) = (Tag { id, kind, attempt, copy: None }, anti_affinity.units());
            if self.units_besides(&taken) == 0 {
                return Err(self.lack_of_space());
            }
            let copies = self.parts.pools.main.allocate(tag, &taken, hint)?;
            let mut unused = Unused { layer: self, copies: Some(copies.clone()) };
            let block = self.opened(tag, false, copies.clone());
            pieces = match block.write_all(pieces, hint).await {
                Ok(_) => {
                    block.seal();
                    self.flash().flush(hint).await?;
                    if self.in_group(id) {
                        unused.copies = None;
                        self.replace(id, copies, attempt);
                    }
                    return Ok(());
                }
                Err((error, returned)) => returned.ok_or(error)?,
            };
        }
        Err(BlockError::DataLoss(format!("{id} could not be written again")))
    }

    /// Opens a new block for appends, on the unit that the placement policy chooses.
    pub fn open(&self, id: BlockId, kind: BlockKind, hint: Hint) -> Result<OpenBlock> {
        self.attempt(Tag { id, kind, attempt: 0, copy: None }, &[], hint)
    }

    /// As [`open`](BlockLayer::open), on units that block `other` does not have, if such a unit has
    /// room.
    pub fn open_avoiding(
        &self,
        id: BlockId,
        kind: BlockKind,
        hint: Hint,
        other: Option<BlockId>,
    ) -> Result<OpenBlock> {
        let others = other.map(|other| self.superblocks(other)).unwrap_or_default();
        let taken: SmallVec<[u16; 2]> = others.iter().map(|other| other.unit.0).collect();
        let on_log = self.is_on_log(kind);
        let taken =
            if self.parts.pools.of(on_log).units_besides(&taken) == 0 { &[] } else { &taken[..] };
        self.attempt(Tag { id, kind, attempt: 0, copy: None }, taken, hint)
    }

    /// Whether blocks of this kind go to the log's own flash.
    fn is_on_log(&self, kind: BlockKind) -> bool {
        self.parts.pools.has_log() && matches!(kind, BlockKind::Log { .. })
    }

    fn attempt(&self, tag: Tag, taken: &[u16], hint: Hint) -> Result<OpenBlock> {
        let on_log = self.is_on_log(tag.kind);
        let copies = self.parts.pools.of(on_log).allocate(tag, taken, hint)?;
        self.enter(tag, copies.clone(), on_log);
        Ok(self.opened(tag, on_log, copies))
    }

    fn opened(&self, Tag { id, kind, .. }: Tag, on_log: bool, copies: Copies) -> OpenBlock {
        let (layer, fates) = (self.clone(), Default::default());
        OpenBlock(Rc::new(Appends { layer, id, kind, on_log, copies, fates }))
    }

    /// The number of units, except those taken, that have room for a block.
    pub fn units_besides(&self, taken: &[u16]) -> usize {
        self.parts.pools.main.units_besides(taken)
    }
}

impl OpenBlock {
    /// The block's id.
    pub fn id(&self) -> BlockId {
        self.0.id
    }

    /// Appends whole pages: returns the page number at once, the outcome when they are programmed.
    ///
    /// # Panics
    /// Where `data` is not whole pages.
    pub fn append(
        &self,
        data: IoBuf,
        durable: bool,
        hint: Hint,
    ) -> Result<(u32, impl Future<Output = Outcome> + use<>), (FtlError, IoBuf)> {
        let flash = &self.0.layer.parts.pools.of(self.0.on_log).flash;
        assert!(
            !data.is_empty() && data.len().is_multiple_of(flash.page_bytes()),
            "an append of {} bytes to {} is not whole pages",
            data.len(),
            self.0.id
        );
        let mut copies = self.0.left();
        let (Some((number, copy)), second) = (copies.next(), copies.next()) else {
            let superblock = self.0.copies.first().copied();
            let unit = superblock.map(|superblock| superblock.unit).unwrap_or_default();
            return Err((FtlError::NoSpace { unit }, data));
        };
        let second = second.filter(|_| !planted::bug(Bug::SecondCopyUnwritten));
        let Some((second_number, second)) = second else {
            let (page, outcome) = flash.append(copy, data, durable, hint)?;
            return Ok((page, Either::Left(outcome)));
        };
        let mut twin = flash.buffer(data.len());
        twin.copy_from_slice(&data);
        let one = flash.append(copy, data, durable, hint);
        match (one, flash.append(second, twin, durable, hint)) {
            (Ok((page, one)), Ok((other_page, other))) => {
                assert_eq!(page, other_page, "the copies of {} have different lengths", self.0.id);
                let appends = Rc::clone(&self.0);
                Ok((page, Either::Right(appends.join(one, other))))
            }
            (Ok((page, one)), Err((error, _))) => {
                self.0.note_failure(second_number, &error);
                Ok((page, Either::Left(one)))
            }
            (Err((error, _)), Ok((page, other))) => {
                self.0.note_failure(number, &error);
                Ok((page, Either::Left(other)))
            }
            (Err(refused), Err(_)) => Err(refused),
        }
    }

    /// The failure of a copy, where another block would have all copies.
    pub fn lacks_copy(&self) -> Option<FtlError> {
        let Appends { layer, on_log, fates, .. } = &*self.0;
        let failure = fates.iter().find_map(|fate| fate.failure.borrow().clone())?;
        layer.parts.pools.of(*on_log).takes_copies().then_some(failure)
    }

    /// Ends the appends.
    pub fn seal(&self) {
        let flash = &self.0.layer.parts.pools.of(self.0.on_log).flash;
        self.0.copies.iter().for_each(|copy| flash.seal(copy));
    }

    /// Appends all pieces. Returns their buffers for another attempt, if the flash returned all of
    /// them.
    async fn write_all(
        &self,
        pieces: Vec<IoBuf>,
        hint: Hint,
    ) -> Result<Option<Vec<IoBuf>>, (BlockError, Option<Vec<IoBuf>>)> {
        let total = pieces.len();
        let mut under_way = Vec::with_capacity(total);
        let mut returned = Vec::with_capacity(total);
        let mut failure: Option<BlockError> = None;
        for piece in pieces {
            if failure.is_some() {
                returned.push(piece);
                continue;
            }
            match self.append(piece, false, hint) {
                Ok((_, outcome)) => under_way.push(outcome),
                Err((error, piece)) => {
                    failure = Some(error.into());
                    returned.push(piece);
                }
            }
        }
        let mut written = Vec::with_capacity(total);
        for outcome in under_way {
            let (result, piece) = outcome.await;
            written.extend(piece);
            if let Err(error) = result {
                if self.0.layer.has_parity() {
                    // This error may be the first sign that the unit is lost.
                    self.0.note_outcome(0, &error);
                }
                failure.get_or_insert(error.into());
            }
        }
        written.append(&mut returned);
        let whole = (written.len() == total).then_some(written);
        match failure {
            None => Ok(whole),
            Some(error) => Err((error, whole)),
        }
    }
}

impl Drop for OpenBlock {
    fn drop(&mut self) {
        let Appends { layer, id, copies, .. } = &*self.0;
        let pool = layer.parts.pools.of(self.0.on_log);
        copies.iter().for_each(|copy| pool.count_writer(copy.unit.0, -1));
        let kept: Copies = self.0.worth_keeping().collect();
        if kept.len() < copies.len() && !kept.is_empty() {
            layer.keep_copies(*id, &kept);
        }
    }
}

impl Appends {
    /// The copies that take appends, with their numbers.
    fn left(&self) -> impl Iterator<Item = (usize, &Superblock)> {
        let takes_more = |fate: &CopyFate| fate.failure.borrow().is_none();
        self.fated().filter(move |(_, fate)| takes_more(fate)).map(|(copy, _)| copy)
    }

    /// The copies to keep when the appends end. A log segment and a value block also keep copies
    /// that failed after an append, because their appends are acknowledged one by one.
    fn worth_keeping(&self) -> impl Iterator<Item = Superblock> {
        let appends_count = matches!(self.kind, BlockKind::Log { .. } | BlockKind::Value);
        let is_kept = move |fate: &CopyFate| match *fate.failure.borrow() {
            None => true,
            Some(_) => appends_count && fate.holds.get(),
        };
        self.fated().filter(move |(_, fate)| is_kept(fate)).map(|((_, copy), _)| *copy)
    }

    fn fated(&self) -> impl Iterator<Item = ((usize, &Superblock), &CopyFate)> {
        self.copies.iter().enumerate().zip(&self.fates)
    }

    /// The outcome of an append to both copies: complete when both are complete, and a success if
    /// one is.
    async fn join(
        self: Rc<Self>,
        one: impl Future<Output = Outcome>,
        other: impl Future<Output = Outcome>,
    ) -> Outcome {
        let ((one, data), (other, twin)) = join(one, other).await;
        let result = match (one, other) {
            // Neither copy is better than the other: both are kept.
            (Err(error), Err(another)) => {
                self.note_outcome(0, &error);
                self.note_outcome(1, &another);
                Err(error)
            }
            (one, other) => {
                for (number, result) in [one, other].into_iter().enumerate() {
                    match result {
                        Ok(()) => self.fates[number].holds.set(true),
                        Err(_) if planted::bug(Bug::FailedCopyHidden) => {}
                        Err(error) => self.note_failure(number, &error),
                    }
                }
                Ok(())
            }
        };
        (result, data.or(twin))
    }

    /// A copy takes no more appends; the block continues without it.
    fn note_failure(&self, number: usize, error: &FtlError) {
        let Some(fate) = self.fates.get(number) else { return };
        if fate.failure.borrow_mut().replace(error.clone()).is_none() {
            tracing::warn!(block = %self.id, %error, "a copy of the block failed");
            self.layer.note_failed_copy(self.id);
        }
        self.note_outcome(number, error);
    }

    fn note_outcome(&self, number: usize, error: &FtlError) {
        if let Some(copy) = self.copies.get(number) {
            self.layer.note_outcome(copy.unit.0, self.on_log, Some(error));
        }
    }
}
