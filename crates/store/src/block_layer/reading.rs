//! Reading blocks. Whoever reads need not know how many copies there are: he says what he makes of the bytes, and where
//! those of one copy are not right he gets those of another, or what the other blocks of a parity group tell. Whatever is
//! amiss with a copy is noted, so that the block is written anew.

use super::BlockLayer;
use super::stock::{Copies, Place};
use super::tag::BlockId;
use crate::error::{Result, StoreError};
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Superblock};

/// Read retries from which on a block is written anew: one alone may be chance, the last ones of the ladder come late.
const STRAINED_RETRIES: u8 = 2;

/// Neighbouring pages of a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub(super) id: BlockId,
    pub(super) first_page: u32,
    pub(super) pages: u32,
    pub(super) hint: Hint,
}

impl Extent {
    /// The page behind them.
    pub(super) fn end(self) -> u32 {
        self.first_page + self.pages
    }

    /// Page number `number` of them.
    fn page(self, number: u32) -> Extent {
        Extent { first_page: self.first_page + number, pages: 1, ..self }
    }

    fn lost(&self, error: &FtlError) -> StoreError {
        let Extent { id, first_page, pages, .. } = self;
        StoreError::DataLoss(format!("{id}, pages {first_page}+{pages}: {error}"))
    }
}

/// What a search finds in the copies of a block.
#[derive(Default)]
struct Findings {
    readings: SmallVec<[Option<IoBuf>; 2]>,
    failure: Option<FtlError>,
    /// Of the last copy that is on a dead die, and how many are.
    dead: Option<FtlError>,
    dead_copies: usize,
}

impl Findings {
    /// Takes a reading: nothing, where the flash says that the pages are lost or were never written.
    fn take(&mut self, read: Result<IoBuf, FtlError>) -> Result<()> {
        let reading = match read {
            Ok(bytes) => Some(bytes),
            Err(FtlError::Unwritten { .. }) => None,
            Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                self.failure.get_or_insert(error);
                None
            }
            Err(error @ FtlError::Device { error: DeviceError::DeadDie, .. }) => {
                self.dead = Some(error);
                self.dead_copies += 1;
                None
            }
            Err(FtlError::Device { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        self.readings.push(reading);
        Ok(())
    }

    fn are_some(&self) -> bool {
        self.readings.iter().any(Option::is_some)
    }

    /// What each copy gives.
    fn readings(self, extent: Extent, is_half: bool) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        // What was begun once only was not acknowledged, or other blocks tell of it.
        if is_half {
            return Ok(self.readings);
        }
        let all_dead = self.dead_copies == self.readings.len();
        match (self.failure, self.dead) {
            // Not the flash says that they are lost: to take them for lost would give up what is there.
            (Some(error), _) if self.readings.iter().all(Option::is_none) => Err(error.into()),
            // What a cut leaves behind is damaged; this was whole.
            (None, Some(error)) if all_dead => Err(extent.lost(&error)),
            _ => Ok(self.readings),
        }
    }
}

impl BlockLayer {
    /// Reads whole pages of a block.
    pub async fn read(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<IoBuf> {
        self.read_as(id, first_page, pages, hint, Ok).await
    }

    /// Reads whole pages of a block and makes of them what the caller wants. Bytes of which it cannot be made are taken
    /// from another copy, if there is one.
    pub async fn read_as<T>(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
        make: impl Fn(IoBuf) -> Result<T>,
    ) -> Result<T> {
        let extent = Extent { id, first_page, pages, hint };
        let (copies, on_log) = match self.copies_to_read(id) {
            Err(_) if self.in_group(id) => (Copies::new(), false),
            found => found?,
        };
        let mut failure = None;
        for copy in copies.iter().filter(|copy| !self.is_passed_over(id, copy, on_log)) {
            match self.read_copy(extent, copy, on_log).await.and_then(&make) {
                Ok(made) => {
                    if failure.is_some() {
                        self.note_degraded(id);
                    }
                    return Ok(made);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let failure = failure.unwrap_or_else(|| self.missing(id));
        if self.in_group(id) {
            return self.make_of_others(extent, &copies, make).await.ok_or(failure);
        }
        if copies.len() > 1 {
            self.note_degraded(id);
            let mixed = self.read_mixed(extent, &copies, on_log).await;
            return mixed.and_then(&make).map_err(|_| failure);
        }
        Err(failure)
    }

    /// As [`read_as`](BlockLayer::read_as), with a look at every copy.
    pub async fn read_everywhere<T>(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
        make: impl Fn(IoBuf) -> Result<T>,
    ) -> Result<T> {
        let extent = Extent { id, first_page, pages, hint };
        let (copies, on_log) = match self.copies_to_read(id) {
            Err(_) if self.in_group(id) => {
                return self.read_as(id, first_page, pages, hint, make).await;
            }
            found => found?,
        };
        let Some((last, others)) = copies.split_last() else { return Err(self.missing(id)) };
        for copy in others {
            if self.read_copy(extent, copy, on_log).await.and_then(&make).is_err() {
                self.note_degraded(id);
            }
        }
        match self.read_copy(extent, last, on_log).await.and_then(&make) {
            Err(_) if !others.is_empty() => {
                self.note_degraded(id);
                self.read_as(id, first_page, pages, hint, make).await
            }
            Err(_) if self.in_group(id) => self.read_as(id, first_page, pages, hint, make).await,
            made => made,
        }
    }

    /// Whether what was read of the block may read otherwise if it is asked for again with [`read_as`](BlockLayer::read_as).
    pub fn has_other_copy(&self, id: BlockId) -> bool {
        let has_copies = |place: &Place| place.copies.len() > 1;
        self.inner.blocks.borrow().get(&id).is_some_and(has_copies) || self.in_group(id)
    }

    /// As [`read`](BlockLayer::read), for a search of what is there: `None` where the flash does not give all of the pages,
    /// whyever.
    pub async fn search(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>> {
        let extent = Extent { id, first_page, pages, hint };
        let Ok((copies, on_log)) = self.copies_to_read(id) else { return Ok(None) };
        let mut findings = Findings::default();
        for copy in &copies {
            findings.take(self.read_raw(extent, copy, on_log).await)?;
            if findings.are_some() {
                break;
            }
        }
        let readings = findings.readings(extent, self.is_half(id))?;
        let is_degraded = readings.len() > 1 && readings.last().is_some_and(Option::is_some);
        if is_degraded {
            self.note_degraded(id);
        }
        Ok(readings.into_iter().flatten().next())
    }

    /// What each copy of the block gives, in the same order for all its pages.
    pub async fn search_each(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        let extent = Extent { id, first_page, pages, hint };
        let Ok((mut copies, on_log)) = self.copies_to_read(id) else { return Ok(SmallVec::new()) };
        copies.sort_unstable_by_key(|copy| copy.unit.0);
        let mut findings = Findings::default();
        for copy in &copies {
            findings.take(self.read_raw(extent, copy, on_log).await)?;
        }
        findings.readings(extent, self.is_half(id))
    }

    /// Whether the copy that is there may be one that a cut kept from being begun twice: what it holds is judged by what
    /// other blocks say of it.
    fn is_half(&self, id: BlockId) -> bool {
        self.inner.blocks.borrow().get(&id).is_some_and(|place| place.is_half)
    }

    /// Whether a page of a block was whole once in every copy and has been lost since, as far as the flash shows.
    pub async fn has_lost(&self, id: BlockId, page: u32, hint: Hint) -> Result<bool> {
        let Ok((copies, on_log)) = self.copies_to_read(id) else { return Ok(false) };
        let (is_half, mut unknown) = (self.is_half(id), None);
        for copy in &copies {
            match self.shelf(on_log).flash.has_lost(copy, page, hint).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(FtlError::Device {
                    error: DeviceError::DeadDie | DeviceError::Io { .. },
                    ..
                }) if is_half => return Ok(false),
                // What a cut leaves behind is damaged; this was whole.
                Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => {}
                // Another copy may tell that it was not.
                Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                    unknown = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        unknown.map_or(Ok(true), |error| Err(error.into()))
    }

    /// Reads a page of a superblock of which nobody knows what block it is. `None` where its unit is lost, whose blocks
    /// have their other copies elsewhere.
    pub async fn read_unknown(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>, FtlError> {
        let shelf = self.shelf(false);
        if shelf.is_lost(superblock.unit.0) {
            return Ok(None);
        }
        let read = shelf.flash.read(superblock, page, 1, hint).await;
        self.note_outcome(superblock.unit.0, false, read.as_ref().err());
        match read {
            Ok(read) => Ok(Some(read.bytes)),
            Err(_) if shelf.is_lost(superblock.unit.0) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a superblock of which nobody knows what block it is was written up to page `page` and on, as far as
    /// can be told.
    pub async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool> {
        let shelf = self.shelf(false);
        if shelf.is_lost(superblock.unit.0) {
            return Ok(false);
        }
        match shelf.flash.was_written_beyond(superblock, page, hint).await {
            Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => Ok(false),
            // One unit may do anything where others have what it has.
            Err(FtlError::Device { error: DeviceError::Io { .. }, .. })
                if self.inner.main.is_redundant() =>
            {
                Ok(false)
            }
            told => Ok(told?),
        }
    }

    /// Whether there is no use in asking for a copy: its unit is lost, and others of its group make up for it.
    fn is_passed_over(&self, id: BlockId, copy: &Superblock, on_log: bool) -> bool {
        self.shelf(on_log).is_lost(copy.unit.0) && self.in_group(id)
    }

    fn missing(&self, id: BlockId) -> StoreError {
        StoreError::DataLoss(format!("{id} is missing"))
    }

    /// The copies of a block that can be read, the one that is read soonest first.
    fn copies_to_read(&self, id: BlockId) -> Result<(Copies, bool)> {
        let place = self.inner.blocks.borrow().get(&id).cloned();
        let Some(mut place) = place else { return Err(self.missing(id)) };
        if place.copies.len() > 1 {
            let shelf = self.shelf(place.on_log);
            // Among units that are equally busy the copies of all blocks take turns.
            let turn = |copy: usize| (copy as u64 + id.0) % 2;
            let mut order: SmallVec<[_; 2]> = place.copies.drain(..).enumerate().collect();
            order.sort_by_key(|(number, copy)| {
                let unit = copy.unit.0;
                (shelf.is_lost(unit), shelf.flash.load(unit), turn(*number))
            });
            place.copies.extend(order.into_iter().map(|(_, copy)| copy));
            if place.copies.first().is_some_and(|first| !shelf.is_lost(first.unit.0)) {
                place.copies.retain(|copy| !shelf.is_lost(copy.unit.0));
            }
        }
        Ok((place.copies, place.on_log))
    }

    /// Reads a block as it is where it is.
    pub(super) async fn read_only_copy(&self, extent: Extent) -> Result<IoBuf> {
        let (copies, on_log) = self.copies_to_read(extent.id)?;
        let readable = |copy: &&Superblock| !self.shelf(on_log).is_lost(copy.unit.0);
        let Some(copy) = copies.iter().find(readable) else { return Err(self.missing(extent.id)) };
        self.read_copy(extent, copy, on_log).await
    }

    async fn read_raw(
        &self,
        extent: Extent,
        copy: &Superblock,
        on_log: bool,
    ) -> Result<IoBuf, FtlError> {
        let Extent { id, first_page, pages, hint } = extent;
        let read = self.shelf(on_log).flash.read(copy, first_page, pages, hint).await;
        self.note_outcome(copy.unit.0, on_log, read.as_ref().err());
        let read = read?;
        if read.retries >= STRAINED_RETRIES {
            self.note_strained(id);
        }
        Ok(read.bytes)
    }

    async fn read_copy(&self, extent: Extent, copy: &Superblock, on_log: bool) -> Result<IoBuf> {
        self.read_raw(extent, copy, on_log).await.map_err(|error| match error {
            FtlError::Device { .. } => extent.lost(&error),
            error => error.into(),
        })
    }

    /// Page by page, each from a copy that gives it.
    async fn read_mixed(
        &self,
        extent: Extent,
        copies: &[Superblock],
        on_log: bool,
    ) -> Result<IoBuf> {
        let page_bytes = self.page_bytes();
        let mut mixed = self.shelf(on_log).flash.buffer(extent.pages as usize * page_bytes);
        for (number, place) in (0..extent.pages).zip(mixed.chunks_mut(page_bytes)) {
            let mut failure = None;
            for copy in copies {
                match self.read_copy(extent.page(number), copy, on_log).await {
                    Ok(page) => {
                        place.copy_from_slice(&page);
                        failure = None;
                        break;
                    }
                    Err(error) => failure = Some(error),
                }
            }
            failure.map_or(Ok(()), Err)?;
        }
        Ok(mixed)
    }
}
