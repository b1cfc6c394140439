//! Reads a run in order, each page once.

use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
use crate::kv::scan_readahead::{ScanReadahead, Window};
use crate::kv::tree::Run;
use bytes::{Bytes, BytesMut};
use softflash_ftl::Hint;
use std::collections::VecDeque;
use std::rc::Rc;

/// Where a run is read, and what was read ahead.
pub struct RunCursor {
    run: Rc<Run>,
    /// The patch being read.
    patch: usize,
    /// The next block of it to decode.
    block: usize,
    /// Records decoded and not yet given out.
    records: VecDeque<Record>,
    /// Bytes of the data section, from the start of block `held_block` on: a few blocks that were
    /// decoded last, as whoever goes on after this cursor may need their last records again, and
    /// what was read ahead.
    held: Bytes,
    held_block: usize,
    /// Memory that `held` is a part of.
    held_memory_bytes: usize,
    /// What was held of the patch before, as long as it may be needed again.
    behind: Option<Window>,
    /// The next page of the data section to read.
    next_page: u32,
    /// Pages to read at a time; grows while the scan goes on.
    step: u32,
    max_step: u32,
    hint: Hint,
    /// Keys below are skipped.
    from: Bytes,
    /// Where to take up what an earlier cursor has left, and to leave what this one holds.
    windows: Option<Rc<ScanReadahead>>,
}

/// Decoded blocks that stay held: a scan looks one record beyond what it gives out, and a merge one
/// further.
const KEPT_BLOCKS: usize = 2;
/// Pages of the first read of a scan: a short scan should not read much in vain.
const FIRST_STEP_PAGES: u32 = 4;
/// Bytes read at a time once a scan is long.
pub const STEP_BYTES: usize = 256 << 10;

impl RunCursor {
    /// A cursor at the first record, for one who reads the run to its end, `step_bytes` at a time.
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
    pub fn page(run: Rc<Run>, from: Bytes, hint: Hint, windows: Rc<ScanReadahead>) -> RunCursor {
        let mut cursor = RunCursor::idle(run, from, hint, Some(windows));
        cursor.enter_patch();
        cursor
    }

    fn idle(
        run: Rc<Run>,
        from: Bytes,
        hint: Hint,
        windows: Option<Rc<ScanReadahead>>,
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
            windows,
        }
    }

    /// The next record, if it is in memory.
    pub fn next_ready(&mut self) -> Option<Record> {
        self.records.pop_front()
    }

    /// The next record, read from flash if need be.
    pub async fn next(&mut self) -> Result<Option<Record>> {
        loop {
            if let Some(record) = self.records.pop_front() {
                return Ok(Some(record));
            }
            let Some(patch) = self.run.patches.get(self.patch).map(Rc::clone) else {
                return Ok(None);
            };
            if self.block >= patch.index()?.block_count() {
                self.behind = self.take_window();
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
        if let Some(left) = self.windows.as_ref().and_then(|w| w.take_up(patch.id(), start)) {
            (self.held, self.held_block) = (left.bytes, left.block);
            self.held_memory_bytes = left.memory_bytes;
            (self.next_page, self.step) = (left.next_page, left.step);
        }
    }

    /// What is held, for the cursor that goes on here.
    fn take_window(&mut self) -> Option<Window> {
        let bytes = std::mem::take(&mut self.held);
        let patch = self.run.patches.get(self.patch).filter(|_| self.windows.is_some())?;
        let index = patch.index().ok().filter(|_| !bytes.is_empty())?;
        Some(Window {
            patch: patch.id(),
            block: self.held_block,
            start: index.block_range(self.held_block).start,
            bytes,
            memory_bytes: self.held_memory_bytes,
            next_page: self.next_page,
            step: self.step,
        })
    }

    /// Reads on until the next block is held whole.
    async fn read_block(&mut self, patch: &Patch) -> Result<()> {
        let page = patch.page_bytes() as u32;
        let index = patch.index()?;
        self.let_go(index.block_range(self.held_block).start, |block| {
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

    /// Lets go of blocks that were decoded long enough ago.
    fn let_go(&mut self, held_start: u32, start_of: impl Fn(usize) -> u32) {
        let keep = if self.windows.is_some() { KEPT_BLOCKS } else { 0 };
        let first = self.block.saturating_sub(keep).max(self.held_block);
        let passed = (start_of(first) - held_start) as usize;
        let _ = self.held.split_to(passed.min(self.held.len()));
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

/// How many pages of a run's patches `bytes` are; at least one.
fn pages_of(run: &Run, bytes: usize) -> u32 {
    let page = run.patches.first().map_or(4096, |patch| patch.page_bytes());
    (bytes / page).max(1) as u32
}

impl Drop for RunCursor {
    fn drop(&mut self) {
        // Only now: what a cursor still holds nobody else should have to keep.
        let held = self.take_window();
        if let Some(windows) = &self.windows {
            self.behind.take().into_iter().chain(held).for_each(|window| windows.leave(window));
        }
    }
}
