//! Reads a run in order, each page once.

use crate::error::Result;
use crate::format::record::Record;
use crate::kv::patch::Patch;
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
    /// Bytes of the data section read and not yet decoded; they start where block `block` starts.
    window: Bytes,
    /// The next page of the data section to read.
    next_page: u32,
    /// Pages to read at a time; grows while the scan goes on.
    step: u32,
    max_step: u32,
    hint: Hint,
    /// Keys below are skipped.
    from: Bytes,
}

/// Pages of the first read of a scan: a short scan should not read much in vain.
const FIRST_STEP_PAGES: u32 = 4;
/// Bytes read at a time once a scan is long.
const STEP_BYTES: usize = 256 << 10;

impl RunCursor {
    /// A cursor at the first record whose key is at least `from`.
    pub fn new(run: Rc<Run>, from: Bytes, hint: Hint, whole: bool) -> RunCursor {
        let patch = run.patches.partition_point(|patch| patch.last_key() < &from[..]);
        let page = run.patches.first().map_or(4096, |patch| patch.page_bytes());
        let max_step = (STEP_BYTES / page).max(1) as u32;
        let step = if whole { max_step } else { FIRST_STEP_PAGES.min(max_step) };
        let mut cursor = RunCursor {
            run,
            patch,
            block: 0,
            records: VecDeque::new(),
            window: Bytes::new(),
            next_page: 0,
            step,
            max_step,
            hint,
            from,
        };
        cursor.enter_patch();
        cursor
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
                self.patch += 1;
                self.enter_patch();
                continue;
            }
            self.read_window(&patch).await?;
            self.decode_window(&patch)?;
        }
    }

    /// Starts the current patch at the first block that can hold `from`.
    fn enter_patch(&mut self) {
        self.window = Bytes::new();
        let Some(patch) = self.run.patches.get(self.patch) else { return };
        // A lost patch reports itself at the next read.
        let Ok(index) = patch.index() else { return };
        self.block =
            if patch.first_key() >= &self.from[..] { 0 } else { index.lower_bound(&self.from) };
        self.next_page = index.block_range(self.block).start / patch.page_bytes() as u32;
    }

    /// Reads on until the window holds the next block whole.
    async fn read_window(&mut self, patch: &Patch) -> Result<()> {
        let page = patch.page_bytes() as u32;
        let index = patch.index()?;
        let range = index.block_range(self.block);
        let missing = (range.end - range.start).saturating_sub(self.window.len() as u32);
        if missing == 0 {
            return Ok(());
        }
        let last_page = index.data_len().div_ceil(page);
        let needed_end = range.end.div_ceil(page);
        let end = (self.next_page + self.step).max(needed_end).min(last_page);
        let buffer = patch.read_pages(self.next_page..end, self.hint).await?;
        let start = self.next_page * page;
        let skip = if self.window.is_empty() { range.start.saturating_sub(start) } else { 0 };
        let useful = (index.data_len() - start).min(buffer.len() as u32);
        let fresh = buffer.get(skip as usize..useful as usize).unwrap_or_default();
        let mut window = BytesMut::with_capacity(self.window.len() + fresh.len());
        window.extend_from_slice(&self.window);
        window.extend_from_slice(fresh);
        self.window = window.freeze();
        self.next_page = end;
        self.step = (self.step * 2).min(self.max_step);
        Ok(())
    }

    /// Decodes all blocks that the window holds whole.
    fn decode_window(&mut self, patch: &Patch) -> Result<()> {
        let index = patch.index()?;
        while self.block < index.block_count() {
            let range = index.block_range(self.block);
            let len = (range.end - range.start) as usize;
            if self.window.len() < len {
                break;
            }
            let bytes = self.window.split_to(len);
            let block = patch.decode(bytes, range.start)?;
            for record in block.into_records() {
                let record = record.map_err(|error| patch.damaged(range.start, &error))?;
                if record.key >= self.from {
                    self.records.push_back(record);
                }
            }
            self.block += 1;
        }
        Ok(())
    }
}
