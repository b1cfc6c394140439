//! The contents of blocks: writes and reads.

use super::BlockLayer;
use crate::anti_affinity::AntiAffinity;
use crate::copy_reader::Extent;
use crate::error::{BlockError, Result};
use crate::open_block::OpenBlock;
use crate::tag::{BlockId, BlockKind};
use smallvec::SmallVec;
use softflash_base::IoBuf;
use softflash_ftl::{FtlError, Hint, Superblock};

impl BlockLayer {
    /// Copies bytes to buffers of whole pages.
    pub fn pieces_of(&self, bytes: &[u8]) -> Vec<IoBuf> {
        self.parts.pools.main().pieces_of(bytes)
    }

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
        pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        self.parts.writer.write_whole(id, kind, pieces, hint, anti_affinity).await
    }

    /// Rewrites a block of a group: the same bytes under the same id, on a unit that no other block
    /// of the group has. The new superblock replaces the old one once it is durable.
    pub async fn rewrite(
        &self,
        id: BlockId,
        kind: BlockKind,
        pieces: Vec<IoBuf>,
        hint: Hint,
        anti_affinity: &AntiAffinity,
    ) -> Result<()> {
        self.parts.writer.rewrite_in_group(id, kind, pieces, hint, anti_affinity).await
    }

    /// Opens a new block for appends, on the unit that the placement policy chooses.
    pub fn open(&self, id: BlockId, kind: BlockKind, hint: Hint) -> Result<OpenBlock> {
        self.open_avoiding(id, kind, hint, None)
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
        self.parts.writer.open_beside(id, kind, hint, other)
    }

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
        self.parts.reader.read_any(Extent { id, first_page, pages, hint }, make).await
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
        self.parts.reader.read_every(Extent { id, first_page, pages, hint }, make).await
    }

    /// Whether [`read_as`](BlockLayer::read_as) has other sources than the block's first copy.
    pub fn has_other_copy(&self, id: BlockId) -> bool {
        self.parts.reader.has_other_copy(id)
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
        self.parts.search.any_copy(Extent { id, first_page, pages, hint }).await
    }

    /// The reading of each copy of the block, in the same order for all its pages.
    pub async fn search_each(
        &self,
        id: BlockId,
        first_page: u32,
        pages: u32,
        hint: Hint,
    ) -> Result<SmallVec<[Option<IoBuf>; 2]>> {
        self.parts.search.each_copy(Extent { id, first_page, pages, hint }).await
    }

    /// Whether every copy of a page was whole once and is lost, as far as reads of the flash show.
    pub async fn has_lost(&self, id: BlockId, page: u32, hint: Hint) -> Result<bool> {
        self.parts.search.has_lost(id, page, hint).await
    }

    /// Reads a page of a superblock that holds no known block. `None` where its unit is lost, whose
    /// blocks have their other copies elsewhere.
    pub async fn read_unknown(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<Option<IoBuf>, FtlError> {
        self.parts.copy_reader.read_unknown(superblock, page, hint).await
    }

    /// Whether a superblock that holds no known block was written beyond page `page`, as far as
    /// reads of the flash show.
    pub async fn was_written_beyond(
        &self,
        superblock: &Superblock,
        page: u32,
        hint: Hint,
    ) -> Result<bool> {
        self.parts.pools.main().was_written_beyond(superblock, page, hint).await
    }
}
