//! Reads blocks of all kinds of redundancy. The caller passes a function that decodes the bytes. If
//! that function fails for one copy, it is called with the bytes of another copy, or with bytes
//! reconstructed from the parity group. A damaged copy is noted, so that the block gets a refresh.

use crate::directory::{Copies, Place};
use crate::error::{BlockError, Result};
use crate::layer::BlockLayer;
use crate::tag::BlockId;
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_device::DeviceError;
use softflash_ftl::{FtlError, Hint, Superblock};

/// A block whose read takes this many retries needs a refresh: a single retry may be chance, and
/// the last steps of the retry ladder leave no margin.
const REFRESH_RETRIES: u8 = 2;

/// Neighbouring pages of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    pub(crate) id: BlockId,
    pub(crate) first_page: u32,
    pub(crate) pages: u32,
    pub(crate) hint: Hint,
}

impl Extent {
    /// The page behind the extent.
    pub(crate) fn end(self) -> u32 {
        self.first_page + self.pages
    }

    /// The page `number` pages behind the first one.
    fn page(self, number: u32) -> Extent {
        Extent { first_page: self.first_page + number, pages: 1, ..self }
    }

    fn lost(&self, error: &FtlError) -> BlockError {
        let Extent { id, first_page, pages, .. } = self;
        BlockError::DataLoss(format!("{id}, pages {first_page}+{pages}: {error}"))
    }
}

/// The results of reading each copy of a block.
#[derive(Default)]
struct Findings {
    readings: SmallVec<[Option<IoBuf>; 2]>,
    failure: Option<FtlError>,
    /// The error of the last copy on a dead die, and the number of such copies.
    dead: Option<FtlError>,
    dead_copies: usize,
}

impl Findings {
    /// Adds the result of a read: `None` where the flash reports that the pages are lost or were
    /// never written.
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

    /// The reading of each copy.
    fn readings(self, extent: Extent, is_half: bool) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        // Perhaps only one of two copies was begun: then nothing in it was acknowledged, or other
        // blocks record it.
        if is_half {
            return Ok(self.readings);
        }
        let all_dead = self.dead_copies == self.readings.len();
        match (self.failure, self.dead) {
            // An I/O error does not show that pages are lost: counting them as lost would drop
            // readable data.
            (Some(error), _) if self.readings.iter().all(Option::is_none) => Err(error.into()),
            // A power cut damages pages but no die: the block was whole.
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
        self.read_as(id, first_page, pages, hint, Ok::<_, BlockError>).await
    }

    /// Reads whole pages of a block and decodes them with `make`. Where that fails, reads and
    /// decodes another copy, if there is one.
    pub async fn read_as<T, E: From<BlockError>>(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
        make: impl Fn(IoBuf) -> Result<T, E>,
    ) -> Result<T, E> {
        let extent = Extent { id, first_page, pages, hint };
        let (copies, on_log) = match self.copies_to_read(id) {
            Err(_) if self.in_group(id) => (Copies::new(), false),
            found => found?,
        };
        let mut failure = None;
        for copy in copies.iter().filter(|copy| !self.is_passed_over(id, copy, on_log)) {
            match self.read_copy(extent, copy, on_log).await.map_err(E::from).and_then(&make) {
                Ok(made) => {
                    if failure.is_some() {
                        self.note_degraded(id);
                    }
                    return Ok(made);
                }
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        let failure = failure.unwrap_or_else(|| self.missing(id).into());
        if self.in_group(id) {
            return self.reconstruct_as(extent, &copies, make).await.ok_or(failure);
        }
        if copies.len() > 1 {
            self.note_degraded(id);
            let mixed = self.read_mixed(extent, &copies, on_log).await;
            return mixed.map_err(E::from).and_then(&make).map_err(|_| failure);
        }
        Err(failure)
    }

    /// As [`read_as`](BlockLayer::read_as), but reads every copy, and notes the damaged ones.
    pub async fn read_everywhere<T, E: From<BlockError>>(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
        make: impl Fn(IoBuf) -> Result<T, E>,
    ) -> Result<T, E> {
        let extent = Extent { id, first_page, pages, hint };
        let (copies, on_log) = match self.copies_to_read(id) {
            Err(_) if self.in_group(id) => {
                return self.read_as(id, first_page, pages, hint, make).await;
            }
            found => found?,
        };
        let Some((last, others)) = copies.split_last() else { return Err(self.missing(id).into()) };
        for copy in others {
            let read = self.read_copy(extent, copy, on_log).await.map_err(E::from);
            if read.and_then(&make).is_err() {
                self.note_degraded(id);
            }
        }
        match self.read_copy(extent, last, on_log).await.map_err(E::from).and_then(&make) {
            Err(_) if !others.is_empty() => {
                self.note_degraded(id);
                self.read_as(id, first_page, pages, hint, make).await
            }
            Err(_) if self.in_group(id) => self.read_as(id, first_page, pages, hint, make).await,
            made => made,
        }
    }

    /// Whether [`read_as`](BlockLayer::read_as) has other sources than the block's first copy.
    pub fn has_other_copy(&self, id: BlockId) -> bool {
        let has_copies = |place: &Place| place.copies.len() > 1;
        self.parts.directory.ask(id, has_copies).unwrap_or(false) || self.in_group(id)
    }

    /// As [`read`](BlockLayer::read), of pages that may not exist: `None` where a page is lost or
    /// unwritten.
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

    /// The reading of each copy of the block, in the same order for all its pages.
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

    /// Whether the mount found one of two copies, perhaps because a power cut came before the other
    /// was begun: other blocks decide whether its contents count.
    fn is_half(&self, id: BlockId) -> bool {
        self.parts.directory.ask(id, |place| place.is_half).unwrap_or(false)
    }

    /// Whether every copy of a page was whole once and is lost, as far as reads of the flash show.
    pub async fn has_lost(&self, id: BlockId, page: u32, hint: Hint) -> Result<bool> {
        let Ok((copies, on_log)) = self.copies_to_read(id) else { return Ok(false) };
        let (is_half, mut unknown) = (self.is_half(id), None);
        for copy in &copies {
            match self.parts.pools.of(on_log).flash.has_lost(copy, page, hint).await {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(FtlError::Device {
                    error: DeviceError::DeadDie | DeviceError::Io { .. },
                    ..
                }) if is_half => return Ok(false),
                // A power cut damages pages but no die: the block was whole.
                Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => {}
                // Another copy may show that the page was never whole.
                Err(error @ FtlError::Device { error: DeviceError::Io { .. }, .. }) => {
                    unknown = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        unknown.map_or(Ok(true), |error| Err(error.into()))
    }

    /// Reads a page of a superblock that holds no known block. `None` where its unit is lost, whose
    /// blocks have their other copies elsewhere.
    pub async fn read_unknown(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>, FtlError> {
        let pool = &self.parts.pools.main;
        if pool.is_lost(superblock.unit.0) {
            return Ok(None);
        }
        let read = pool.flash.read(superblock, page, 1, hint).await;
        self.note_outcome(superblock.unit.0, false, read.as_ref().err());
        match read {
            Ok(read) => Ok(Some(read.bytes)),
            Err(_) if pool.is_lost(superblock.unit.0) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a superblock that holds no known block was written beyond page `page`, as far as
    /// reads of the flash show.
    pub async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool> {
        let pool = &self.parts.pools.main;
        if pool.is_lost(superblock.unit.0) {
            return Ok(false);
        }
        match pool.flash.was_written_beyond(superblock, page, hint).await {
            Err(FtlError::Device { error: DeviceError::DeadDie, .. }) => Ok(false),
            // The other copies decide.
            Err(FtlError::Device { error: DeviceError::Io { .. }, .. })
                if self.parts.pools.main.is_redundant() =>
            {
                Ok(false)
            }
            written => Ok(written?),
        }
    }

    /// Whether a copy is not worth a read: its unit is lost, and the block can be reconstructed.
    fn is_passed_over(&self, id: BlockId, copy: &Superblock, on_log: bool) -> bool {
        self.parts.pools.of(on_log).is_lost(copy.unit.0) && self.in_group(id)
    }

    fn missing(&self, id: BlockId) -> BlockError {
        BlockError::DataLoss(format!("{id} is missing"))
    }

    /// The copies of a block that can be read, the one on the least loaded unit first.
    fn copies_to_read(&self, id: BlockId) -> Result<(Copies, bool)> {
        let Some(mut place) = self.parts.directory.place(id) else { return Err(self.missing(id)) };
        if place.copies.len() > 1 {
            let pool = self.parts.pools.of(place.on_log);
            // On equally loaded units, even and odd blocks prefer different copies.
            let turn = |copy: usize| (copy as u64 + id.0) % 2;
            let mut order: SmallVec<[_; 2]> = place.copies.drain(..).enumerate().collect();
            order.sort_by_key(|(number, copy)| {
                let unit = copy.unit.0;
                (pool.is_lost(unit), pool.flash.load(unit), turn(*number))
            });
            place.copies.extend(order.into_iter().map(|(_, copy)| copy));
            if place.copies.first().is_some_and(|first| !pool.is_lost(first.unit.0)) {
                place.copies.retain(|copy| !pool.is_lost(copy.unit.0));
            }
        }
        Ok((place.copies, place.on_log))
    }

    /// Reads a block from its first readable copy, without reconstruction.
    pub(crate) async fn read_only_copy(&self, extent: Extent) -> Result<IoBuf> {
        let (copies, on_log) = self.copies_to_read(extent.id)?;
        let readable = |copy: &&Superblock| !self.parts.pools.of(on_log).is_lost(copy.unit.0);
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
        let read = self.parts.pools.of(on_log).flash.read(copy, first_page, pages, hint).await;
        self.note_outcome(copy.unit.0, on_log, read.as_ref().err());
        let read = read?;
        assert_eq!(
            read.bytes.len(),
            pages as usize * self.page_bytes(),
            "the FTL read another number of pages of {id}"
        );
        if read.retries >= REFRESH_RETRIES {
            self.note_needs_refresh(id);
        }
        Ok(read.bytes)
    }

    async fn read_copy(&self, extent: Extent, copy: &Superblock, on_log: bool) -> Result<IoBuf> {
        self.read_raw(extent, copy, on_log).await.map_err(|error| match error {
            FtlError::Device { .. } => extent.lost(&error),
            error => error.into(),
        })
    }

    /// Reads page by page, each page from a readable copy.
    async fn read_mixed(
        &self,
        extent: Extent,
        copies: &[Superblock],
        on_log: bool,
    ) -> Result<IoBuf> {
        let page_bytes = self.page_bytes();
        let mut mixed =
            self.parts.pools.of(on_log).flash.buffer(extent.pages as usize * page_bytes);
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
