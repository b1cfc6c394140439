//! Reads a run in order, each page once.

use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::scan_readahead::{Piece, ScanReadahead};
use crate::kv::tree::Run;
use bytes::{Bytes, BytesMut};
use softflash_ftl::Hint;
use std::collections::VecDeque;
use std::rc::Rc;

/// A position in a run, and its readahead.
pub struct RunCursor {
    run: Rc<Run>,
    /// The patch being read.
    patch: usize,
    /// The next block of the patch to decode.
    block: usize,
    /// Decoded records that are not returned yet.
    records: VecDeque<Record>,
    /// Bytes of the data section from the start of block `held_block` on: the last decoded blocks,
    /// because a cursor that continues this one may need their last records again, and the
    /// readahead.
    held: Bytes,
    held_block: usize,
    /// Memory that `held` keeps in use.
    held_memory_bytes: usize,
    /// The piece of the previous patch, while it may be needed again.
    behind: Option<Piece>,
    /// The next page of the data section to read.
    next_page: u32,
    /// Pages of the next read; doubles with each read.
    step: u32,
    max_step: u32,
    hint: Hint,
    /// Lower keys are skipped.
    from: Bytes,
    /// The readahead of earlier cursors, which also gets the pieces of this one.
    readahead: Option<Rc<ScanReadahead>>,
}

/// Decoded blocks that stay held: a scan reads one record beyond its page, and a merge one more.
const KEPT_BLOCKS: usize = 2;
/// Pages of the first read of a scan: a short scan should read little that it does not use.
const FIRST_STEP_PAGES: u32 = 4;
/// The most bytes of a read in a long scan.
pub const STEP_BYTES: usize = 256 << 10;

impl RunCursor {
    /// A cursor at the first record, to read the whole run, `step_bytes` at a time.
    pub fn whole(run: Rc<Run>, step_bytes: usize, hint: Hint) -> RunCursor {
        let mut cursor = RunCursor::idle(run, Bytes::new(), hint, None);
        cursor.max_step = pages_of(&cursor.run, step_bytes);
        cursor.step = cursor.max_step;
        cursor.enter_patch();
        cursor
    }

    /// A cursor at the first record of patch `patch` whose key is at least `from`.
    pub fn within(run: Rc<Run>, patch: usize, from: Bytes, hint: Hint) -> RunCursor {
        let mut cursor = RunCursor::idle(run, from, hint, None);
        cursor.patch = patch;
        cursor.step = cursor.max_step;
        cursor.enter_patch();
        cursor
    }

    /// A cursor at the first record whose key is at least `from`, for a page of a scan.
    pub fn page(run: Rc<Run>, from: Bytes, hint: Hint, readahead: Rc<ScanReadahead>) -> RunCursor {
        let mut cursor = RunCursor::idle(run, from, hint, Some(readahead));
        cursor.enter_patch();
        cursor
    }

    fn idle(
        run: Rc<Run>,
        from: Bytes,
        hint: Hint,
        readahead: Option<Rc<ScanReadahead>>,
    ) -> RunCursor {
        let patch = run.start_of(&from);
        let max_step = pages_of(&run, STEP_BYTES);
        RunCursor {
            run,
            patch,
            block: 0,
            records: VecDeque::new(),
            held: Bytes::new(),
            held_block: 0,
            held_memory_bytes: 0,
            behind: None,
            next_page: 0,
            step: FIRST_STEP_PAGES.min(max_step),
            max_step,
            hint,
            from,
            readahead,
        }
    }

    /// The next record, if it is in memory.
    pub fn next_ready(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// The next record, read from flash if necessary.
    pub async fn next(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.records.pop_front() {
                return Ok(Some(record));
            }
            let Some(patch) = self.run.patches.get(self.patch).map(Rc::clone) else {
                return Ok(None);
            };
            if self.block >= patch.index()?.block_count() {
                self.behind = self.take_piece();
                self.patch += 1;
                self.enter_patch();
                continue;
            }
            self.read_block(&patch).await?;
            self.decode_block(&patch).await?;
        }
    }

    /// Starts the current patch at the first block that can hold `from`.
    fn enter_patch(&mut self) {
        self.held = Bytes::new();
        let Some(patch) = self.run.patches.get(self.patch).map(Rc::clone) else { return };
        // A lost patch reports itself at the next read.
        let Ok(index) = patch.index() else { return };
        self.block =
            if patch.first_key() >= &self.from[..] { 0 } else { index.lower_bound(&self.from) };
        self.held_block = self.block;
        let start = index.block_range(self.block).start;
        self.next_page = start / patch.page_bytes() as u32;
        if let Some(piece) =
            self.readahead.as_ref().and_then(|readahead| readahead.take(patch.id(), start))
        {
            (self.held, self.held_block) = (piece.bytes, piece.block);
            self.held_memory_bytes = piece.memory_bytes;
            (self.next_page, self.step) = (piece.next_page, piece.step);
        }
    }

    /// The held piece, for the cursor that continues here.
    fn take_piece(&mut self) -> Option<Piece> {
        let bytes = std::mem::take(&mut self.held);
        let patch = self.run.patches.get(self.patch).filter(|_| self.readahead.is_some())?;
        let index = patch.index().ok().filter(|_| !bytes.is_empty())?;
        Some(Piece {
            patch: patch.id(),
            block: self.held_block,
            start: index.block_range(self.held_block).start,
            bytes,
            memory_bytes: self.held_memory_bytes,
            next_page: self.next_page,
            step: self.step,
        })
    }

    /// Reads until the whole next block is held.
    async fn read_block(&mut self, patch: &Patch) -> Result<()> {
        let page = patch.page_bytes() as u32;
        let index = patch.index()?;
        self.drop_decoded(index.block_range(self.held_block).start, |block| {
            index.block_range(block).start
        });
        let held_start = index.block_range(self.held_block).start;
        let range = index.block_range(self.block);
        if range.end <= held_start + self.held.len() as u32 {
            return Ok(());
        }
        let last_page = index.data_len().div_ceil(page);
        let needed_end = range.end.div_ceil(page);
        let end = (self.next_page + self.step).max(needed_end).min(last_page);
        let buffer = patch.read_pages(self.next_page..end, self.hint).await?;
        let start = self.next_page * page;
        let skip = if self.held.is_empty() { held_start.saturating_sub(start) } else { 0 };
        let useful = (index.data_len() - start).min(buffer.len() as u32);
        let fresh = buffer.get(skip as usize..useful as usize).unwrap_or_default();
        let mut held = BytesMut::with_capacity(self.held.len() + fresh.len());
        held.extend_from_slice(&self.held);
        held.extend_from_slice(fresh);
        self.held = held.freeze();
        self.held_memory_bytes = self.held.len();
        self.next_page = end;
        self.step = (self.step * 2).min(self.max_step);
        Ok(())
    }

    /// Drops blocks that were decoded before the last few.
    fn drop_decoded(&mut self, held_start: u32, start_of: impl Fn(usize) -> u32) {
        let keep = if self.readahead.is_some() { KEPT_BLOCKS } else { 0 };
        let first = self.block.saturating_sub(keep).max(self.held_block);
        let dropped = (start_of(first) - held_start) as usize;
        let _ = self.held.split_to(dropped.min(self.held.len()));
        self.held_block = first;
        if self.block >= KEPT_BLOCKS {
            self.behind = None;
        }
    }

    /// Decodes the next block.
    async fn decode_block(&mut self, patch: &Patch) -> Result<()> {
        let index = patch.index()?;
        let held_start = index.block_range(self.held_block).start;
        let range = index.block_range(self.block);
        let place = (range.start - held_start) as usize..(range.end - held_start) as usize;
        let block = match patch.decode(self.held.slice(place), range.start) {
            Err(_) if patch.has_other_copy() => patch.read_block(self.block, self.hint).await?,
            decoded => decoded?,
        };
        for record in block.into_records() {
            let record = record.map_err(|error| patch.damaged(range.start, &error))?;
            if record.key >= self.from {
                self.records.push_back(record);
            }
        }
        self.block += 1;
        Ok(())
    }
}

/// Pages of `bytes` bytes of a run's patches; at least one.
fn pages_of(run: &Run, bytes: usize) -> u32 {
    let page = run.patches.first().map_or(4096, |patch| patch.page_bytes());
    (bytes / page).max(1) as u32
}

impl Drop for RunCursor {
    fn drop(&mut self) {
        // Not earlier: the piece must not count twice.
        let held = self.take_piece();
        if let Some(readahead) = &self.readahead {
            self.behind.take().into_iter().chain(held).for_each(|piece| readahead.put(piece));
        }
    }
}
