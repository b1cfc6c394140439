//! Reads of single superblocks: which copies of a block can be read, and in which order. A copy
//! that is hard to read is noted, so that the block gets a refresh.

use crate::damage::Damage;
use crate::directory::{Copies, Directory};
use crate::error::{BlockError, Result};
use crate::pools::Pools;
use crate::tag::BlockId;
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_ftl::{FtlError, Hint, Origin, Superblock};
use std::rc::Rc;

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
    pub(crate) fn page(self, number: u32) -> Extent {
        Extent { first_page: self.first_page + number, pages: 1, ..self }
    }

    pub(crate) fn lost(&self, error: &FtlError) -> BlockError {
        let Extent { id, first_page, pages, .. } = self;
        BlockError::DataLoss(format!("{id}, pages {first_page}+{pages}: {error}"))
    }
}

/// Reads single copies of blocks.
pub(crate) struct CopyReader {
    pools: Rc<Pools>,
    directory: Rc<Directory>,
    damage: Rc<Damage>,
}

impl CopyReader {
    pub(crate) fn new(
        pools: &Rc<Pools>,
        directory: &Rc<Directory>,
        damage: &Rc<Damage>,
    ) -> CopyReader {
        CopyReader {
            pools: Rc::clone(pools),
            directory: Rc::clone(directory),
            damage: Rc::clone(damage),
        }
    }

    /// The copies of a block that can be read, the one on the least loaded unit first; and whether
    /// they are on the log's flash.
    pub(crate) fn copies_to_read(&self, id: BlockId) -> Result<(Copies, bool)> {
        let Some(mut place) = self.directory.place(id) else {
            return Err(BlockError::missing(id));
        };
        if place.copies.len() > 1 {
            let pool = self.pools.of(place.on_log);
            // On equally loaded units, even and odd blocks prefer different copies.
            let turn = |copy: usize| (copy as u64 + id.0) % 2;
            let mut order: SmallVec<[_; 2]> = place.copies.drain(..).enumerate().collect();
            order.sort_by_key(|(number, copy)| {
                let unit = copy.unit.0;
                (pool.is_lost(unit), pool.flash().load(unit), turn(*number))
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
        let readable = |copy: &&Superblock| !self.pools.of(on_log).is_lost(copy.unit.0);
        let Some(copy) = copies.iter().find(readable) else {
            return Err(BlockError::missing(extent.id));
        };
        self.read_copy(extent, copy, on_log).await
    }

    /// As [`read_raw`](CopyReader::read_raw), with the error of the block layer.
    pub(crate) async fn read_copy(
        &self,
        extent: Extent,
        copy: &Superblock,
        on_log: bool,
    ) -> Result<IoBuf> {
        self.read_raw(extent, copy, on_log).await.map_err(|error| match error {
            FtlError::Device { .. } => extent.lost(&error),
            error => error.into(),
        })
    }

    /// Reads a copy, and notes the outcome.
    pub(crate) async fn read_raw(
        &self,
        extent: Extent,
        copy: &Superblock,
        on_log: bool,
    ) -> Result<IoBuf, FtlError> {
        let Extent { id, first_page, pages, hint } = extent;
        let read = self.pools.of(on_log).flash().read(copy, first_page, pages, hint).await;
        self.damage.note_command(copy.unit.0, on_log, read.as_ref().err());
        let read = read?;
        assert_eq!(
            read.bytes.len(),
            pages as usize * self.pools.page_bytes(),
            "the FTL read another number of pages of {id}"
        );
        if read.retries >= REFRESH_RETRIES {
            self.damage.note_needs_refresh(id, Origin::Refresh);
        }
        Ok(read.bytes)
    }

    /// Reads a page of a superblock that holds no known block. `None` where its unit is lost, whose
    /// blocks have their other copies elsewhere.
    pub(crate) async fn read_unknown(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>, FtlError> {
        let pool = self.pools.main();
        if pool.is_lost(superblock.unit.0) {
            return Ok(None);
        }
        let read = pool.flash().read(superblock, page, 1, hint).await;
        self.damage.note_command(superblock.unit.0, false, read.as_ref().err());
        match read {
            Ok(read) => Ok(Some(read.bytes)),
            Err(_) if pool.is_lost(superblock.unit.0) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
