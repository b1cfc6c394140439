//! A patch in use by a shard: index and filter in memory, records read on demand.

use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::patch::{Block, PatchIndex, decode_block, decode_metadata, metadata_len};
use crate::format::record::Record;
use bytes::Bytes;
use softflash_base::IoBuf;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;
use std::cell::Cell;
use std::ops::Range;

/// Pages of the first read of a patch's metadata: as many as the previous patch's metadata, because
/// neighbours are similar. A start then reads little more than it needs.
pub struct MetadataGuess(Cell<u32>);

impl Default for MetadataGuess {
    fn default() -> MetadataGuess {
        MetadataGuess(Cell::new(1))
    }
}

/// One immutable patch.
pub struct Patch {
    id: BlockId,
    blocks: BlockLayer,
    identity: u64,
    state: State,
    /// Set when an edit that removes the patch is durable: dropping the last reference releases its
    /// block.
    obsolete: Cell<bool>,
}

enum State {
    /// The metadata is readable.
    Whole(Box<PatchIndex>),
    /// The metadata is lost: every key in its range is an error, never absent.
    Lost(String),
}

/// The lower bound of a lost patch, which may hold any key.
const LOWEST_KEY: &[u8] = &[];
/// The upper bound: at least the highest key.
const HIGHEST_KEY: &[u8] = &[0xff; 64 << 10];

impl Patch {
    /// A patch whose metadata is in memory because it was just written.
    pub fn new(id: BlockId, blocks: BlockLayer, index: PatchIndex) -> Patch {
        let identity = blocks.identity(id);
        Patch {
            id,
            blocks,
            identity,
            state: State::Whole(Box::new(index)),
            obsolete: Cell::new(false),
        }
    }

    /// Loads a patch's metadata. A patch with damaged metadata becomes a lost patch.
    pub async fn load(id: BlockId, blocks: BlockLayer, guess: &MetadataGuess) -> Patch {
        let identity = blocks.identity(id);
        let state = match load_index(id, &blocks, identity, guess).await {
            Ok(index) => State::Whole(Box::new(index)),
            Err(StoreError::DataLoss(what)) => State::Lost(what),
            Err(error) => State::Lost(error.to_string()),
        };
        Patch { id, blocks, identity, state, obsolete: Cell::new(false) }
    }

    /// Its block.
    pub fn id(&self) -> BlockId {
        self.id
    }

    /// The reason why the patch is lost, if it is.
    pub fn damage(&self) -> Option<&str> {
        match &self.state {
            State::Whole(_) => None,
            State::Lost(reason) => Some(reason),
        }
    }

    /// The index, or the error that a reader of a lost patch gets.
    pub fn index(&self) -> Result<&PatchIndex> {
        match &self.state {
            State::Whole(index) => Ok(index),
            State::Lost(reason) => Err(StoreError::DataLoss(format!("{}: {reason}", self.id))),
        }
    }

    /// The lowest key inside.
    pub fn first_key(&self) -> &[u8] {
        match &self.state {
            State::Whole(index) => index.first_key(),
            State::Lost(_) => LOWEST_KEY,
        }
    }

    /// The highest key inside.
    pub fn last_key(&self) -> &[u8] {
        match &self.state {
            State::Whole(index) => index.last_key(),
            State::Lost(_) => HIGHEST_KEY,
        }
    }

    /// Bytes of records.
    pub fn bytes(&self) -> u64 {
        self.index().map_or(0, |index| u64::from(index.data_len()))
    }

    /// Records inside, deletions included.
    pub fn records(&self) -> u64 {
        self.index().map_or(0, |index| index.entries())
    }

    /// Deletions inside.
    pub fn tombstones(&self) -> u64 {
        self.index().map_or(0, |index| index.tombstones())
    }

    /// Blocks of records.
    pub fn block_count(&self) -> usize {
        self.index().map_or(0, PatchIndex::block_count)
    }

    /// Bytes of block number `number`.
    pub fn block_bytes(&self, number: usize) -> u64 {
        self.index().map_or(0, |index| index.block_range(number).len() as u64)
    }

    /// Whether the metadata, which is in memory, can be read from flash.
    pub async fn has_whole_metadata(&self) -> bool {
        let Ok(index) = self.index() else { return false };
        let pages = index.data_offset().div_ceil(self.blocks.page_bytes() as u32);
        if !self.has_other_copy() {
            let guess = MetadataGuess(Cell::new(pages));
            return load_index(self.id, &self.blocks, self.identity, &guess).await.is_ok();
        }
        let whole = |bytes: IoBuf| match decode_metadata(&bytes, self.identity) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.damaged(0, &error)),
        };
        self.blocks.read_everywhere(self.id, 0, pages, Hint::REFRESH, whole).await.is_ok()
    }

    /// Bytes of memory for index and filter.
    pub fn memory_bytes(&self) -> usize {
        self.index().map_or(0, PatchIndex::memory_bytes)
    }

    /// Whether a lookup must read the patch: it may hold the key, or it is lost.
    pub fn may_contain(&self, key_hash: u64) -> bool {
        self.index().map_or(true, |index| index.may_contain(key_hash))
    }

    /// Reads block number `number` of the patch, with one device read.
    pub async fn read_block(&self, number: usize, hint: Hint) -> Result<Block> {
        let (place, make) = self.block_reading(number)?;
        self.blocks.read_as(self.id, place.start, place.end - place.start, hint, make).await
    }

    /// As [`read_block`](Patch::read_block), but reads every copy.
    pub async fn read_block_everywhere(&self, number: usize, hint: Hint) -> Result<Block> {
        let (place, make) = self.block_reading(number)?;
        self.blocks.read_everywhere(self.id, place.start, place.end - place.start, hint, make).await
    }

    /// The pages of a block, and the function that decodes their bytes.
    fn block_reading(
        &self,
        number: usize,
    ) -> Result<(Range<u32>, impl Fn(IoBuf) -> Result<Block>)> {
        let index = self.index()?;
        let page = self.blocks.page_bytes() as u32;
        let Range { start: offset, end } = index.block_range(number);
        let (start, end) = (index.data_offset() + offset, index.data_offset() + end);
        let (first, last) = (start / page, end.div_ceil(page));
        let place = (start - first * page) as usize..(end - first * page) as usize;
        let make = move |buffer: IoBuf| {
            let bytes = buffer.get(place.clone()).unwrap_or_default();
            self.decode(Bytes::copy_from_slice(bytes), offset)
        };
        Ok((first..last, make))
    }

    /// Whether a damaged block may be readable from another copy or the parity group.
    pub fn has_other_copy(&self) -> bool {
        self.blocks.has_other_copy(self.id)
    }

    /// Decodes a block's bytes; `offset` is where it lies in the data section.
    pub fn decode(&self, bytes: Bytes, offset: u32) -> Result<Block> {
        decode_block(bytes, self.identity, offset).map_err(|error| self.damaged(offset, &error))
    }

    /// The error for damage at `offset` of the data section.
    pub fn damaged(&self, offset: u32, error: &dyn std::fmt::Display) -> StoreError {
        StoreError::DataLoss(format!("{}, data offset {offset}: {error}", self.id))
    }

    /// Reads whole pages of the data section, which begins on a page.
    pub async fn read_pages(&self, pages: Range<u32>, hint: Hint) -> Result<IoBuf> {
        let first = self.index()?.data_offset() / self.blocks.page_bytes() as u32 + pages.start;
        Ok(self.blocks.read(self.id, first, pages.end - pages.start, hint).await?)
    }

    /// Bytes per page of the flash.
    pub fn page_bytes(&self) -> usize {
        self.blocks.page_bytes()
    }

    /// The newest version of `key` not newer than `max_seq`: its first record, if the patch has
    /// any. One device read, unless versions of the key fill more than a block.
    pub async fn find(&self, key: &[u8], max_seq: u64, hint: Hint) -> Result<Option<Record>> {
        let index = self.index()?;
        let Some(mut number) = index.locate(key) else { return Ok(None) };
        loop {
            let block = self.read_block(number, hint).await?;
            if let Some(record) = block
                .find(key, max_seq)
                .map_err(|error| self.damaged(index.block_range(number).start, &error))?
            {
                return Ok(Some(record));
            }
            number += 1;
            if number >= index.block_count() || index.block_starts_after(number, key) {
                return Ok(None);
            }
        }
    }

    /// The edit that removes the patch is durable.
    pub fn retire(&self) {
        self.obsolete.set(true);
        if planted::bug(Bug::FreedUnderReader) {
            self.blocks.delete(self.id);
        }
    }
}

impl Drop for Patch {
    fn drop(&mut self) {
        if self.obsolete.get() {
            self.blocks.delete(self.id);
        }
    }
}

async fn load_index(
    id: BlockId,
    blocks: &BlockLayer,
    identity: u64,
    guess: &MetadataGuess,
) -> Result<PatchIndex> {
    match load_index_at_once(id, blocks, identity, guess).await {
        Err(_) if blocks.has_other_copy(id) => {
            let lost = |error: FormatError| StoreError::DataLoss(format!("{id}: {error}"));
            let len = |page: IoBuf| metadata_len(&page, identity).map_err(lost);
            let len = blocks.read_as(id, 0, 1, Hint::FOREGROUND, len).await?;
            let pages = len.min(blocks.capacity_bytes()).div_ceil(blocks.page_bytes()) as u32;
            let index = |bytes: IoBuf| decode_metadata(&bytes, identity).map_err(lost);
            blocks.read_as(id, 0, pages, Hint::FOREGROUND, index).await
        }
        loaded => loaded,
    }
}

/// Takes one read where the metadata is no longer than the guess.
async fn load_index_at_once(
    id: BlockId,
    blocks: &BlockLayer,
    identity: u64,
    guess: &MetadataGuess,
) -> Result<PatchIndex> {
    let page = blocks.page_bytes();
    let capacity_pages = (blocks.capacity_bytes() / page) as u32;
    let lost = |error: &dyn std::fmt::Display| StoreError::DataLoss(format!("{id}: {error}"));
    let guessed = guess.0.get().min(capacity_pages);
    let mut metadata = match blocks.search(id, 0, guessed, Hint::FOREGROUND).await {
        Ok(Some(metadata)) => metadata,
        // A patch may be shorter than the guess, and unwritten flash cannot be read.
        _ => blocks.read(id, 0, 1, Hint::FOREGROUND).await?,
    };
    let len = metadata_len(&metadata, identity).map_err(|error| lost(&error))?;
    let pages = len.div_ceil(page) as u32;
    if pages > capacity_pages {
        return Err(lost(&"the metadata is longer than the block"));
    }
    guess.0.set(pages);
    if pages as usize > metadata.len() / page {
        metadata = blocks.read(id, 0, pages, Hint::FOREGROUND).await?;
    }
    decode_metadata(&metadata, identity).map_err(|error| lost(&error))
}
