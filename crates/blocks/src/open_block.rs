//! Blocks that are being written: all copies get the same pages. Where one copy fails, appends
//! continue on the other copy. But acknowledged data should be in both: [`OpenBlock::lacks_copy`]
//! reports that another block would have all copies, and the writer continues there.

use crate::damage::Damage;
use crate::directory::Copies;
use crate::error::{BlockError, Result};
use crate::lifecycle::Lifecycle;
use crate::pool::UnitPool;
use crate::pools::Pools;
use crate::tag::{BlockId, BlockKind, Tag};
use futures_util::future::{Either, join};
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_flash::Outcome;
use softflash_ftl::{FtlError, Hint, Superblock};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

/// A block that takes appends. Dropping it ends the appends and keeps the block.
pub struct OpenBlock(Rc<Appends>);

/// The state of an open block, shared with its appends under way.
struct Appends {
    pools: Rc<Pools>,
    lifecycle: Rc<Lifecycle>,
    damage: Rc<Damage>,
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

impl OpenBlock {
    /// A block whose copies were just allocated.
    pub(crate) fn new(
        pools: &Rc<Pools>,
        lifecycle: &Rc<Lifecycle>,
        damage: &Rc<Damage>,
        Tag { id, kind, .. }: Tag,
        on_log: bool,
        copies: Copies,
    ) -> OpenBlock {
        OpenBlock(Rc::new(Appends {
            pools: Rc::clone(pools),
            lifecycle: Rc::clone(lifecycle),
            damage: Rc::clone(damage),
            id,
            kind,
            on_log,
            copies,
            fates: Default::default(),
        }))
    }

    /// The superblocks of its copies.
    pub(crate) fn copies(&self) -> &[Superblock] {
        &self.0.copies
    }

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
        let flash = self.0.pool().flash();
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
        let failure = self.0.fates.iter().find_map(|fate| fate.failure.borrow().clone())?;
        self.0.pool().takes_copies().then_some(failure)
    }

    /// Ends the appends.
    pub fn seal(&self) {
        let flash = self.0.pool().flash();
        self.0.copies.iter().for_each(|copy| flash.seal(copy));
    }

    /// Appends all pieces. Returns their buffers for another attempt, if the flash returned all of
    /// them.
    pub(crate) async fn write_all(
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
                if self.0.pools.redundancy().is_parity() {
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
        let Appends { lifecycle, id, copies, .. } = &*self.0;
        let pool = self.0.pool();
        copies.iter().for_each(|copy| pool.count_writer(copy.unit.0, -1));
        let kept: Copies = self.0.worth_keeping().collect();
        if kept.len() < copies.len() && !kept.is_empty() {
            lifecycle.keep_only(*id, &kept);
        }
    }
}

impl Appends {
    fn pool(&self) -> &UnitPool {
        self.pools.of(self.on_log)
    }

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
            self.damage.note_failed_copy(self.id);
        }
        self.note_outcome(number, error);
    }

    fn note_outcome(&self, number: usize, error: &FtlError) {
        if let Some(copy) = self.copies.get(number) {
            self.damage.note_command(copy.unit.0, self.on_log, Some(error));
        }
    }
}
