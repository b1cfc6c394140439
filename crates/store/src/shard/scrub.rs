//! Scrub: reads all data on flash periodically, so that data is rewritten before it becomes
//! unreadable, and losses are detected before a client reads them.
//!
//! Cells lose charge over time, through reads of neighbouring cells, and with wear. The device
//! reports by read retries how close a page is to its limit. When any read finds a page close to
//! it, its patch or log segment *needs refresh*: compaction rewrites the patch, and the log rotates
//! to a new segment. Healthy data is only read, so that an idle shard does not wear its flash.

use super::values::reading::read_unnamed_everywhere;
use super::{Shard, count};
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::writer::PatchWriter;
use futures_util::future::select;
use softflash_base::Time;
use softflash_base::planted::Bug;
use softflash_blocks::BlockId;
use softflash_ftl::Hint;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Blocks of a patch that are read in one step, about 256 KiB.
const STEP_BLOCKS: usize = 64;

impl Shard {
    /// Scrubs until the shard closes.
    pub(super) async fn scrub_forever(&self, period: Duration) {
        while !self.tasks.closing.get() {
            let end = self.runtime.now() + period;
            // Parity is compared with patches that this pass has verified.
            let share = if self.blocks.has_parity() { period / 2 } else { period };
            let of_values = self.values_share();
            self.scrub_patches(share.mul_f64(1.0 - of_values)).await;
            self.scrub_values(share.mul_f64(of_values)).await;
            self.scrub_groups(period - share).await;
            self.wait_until(end).await;
            if self.tasks.closing.get() {
                return;
            }
            self.scrub_log().await;
            count(&self.counters.patrols, 1);
        }
    }

    /// Reads every current patch, spread over `period`.
    async fn scrub_patches(&self, period: Duration) {
        let began = self.runtime.now();
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let found = trees.iter().flat_map(|tree| tree.patches());
        // Weak references: the space of a patch that compaction replaces meanwhile is freed at
        // once.
        let patches: Vec<(Weak<Patch>, u64)> =
            found.map(|(.., patch)| (Rc::downgrade(patch), patch.bytes())).collect();
        drop(trees);
        let total: u64 = patches.iter().map(|(_, bytes)| *bytes).sum();
        let mut passed = 0;
        for (patch, bytes) in patches {
            let blocks = patch.upgrade().map_or(0, |patch| patch.block_count());
            for first in (0..blocks).step_by(STEP_BLOCKS) {
                let read = passed + bytes * first as u64 / blocks.max(1) as u64;
                self.wait_until(began + period.mul_f64(read as f64 / total.max(1) as f64)).await;
                let Some(patch) = patch.upgrade() else { break };
                if self.tasks.closing.get() {
                    return;
                }
                let end = blocks.min(first + STEP_BLOCKS);
                if let Err(error) = self.scrub_blocks(&patch, first, end).await {
                    tracing::error!(shard = self.id.0, %error, "the scrub has found lost data");
                    count(&self.counters.data_losses, 1);
                }
            }
            passed += bytes;
        }
    }

    /// The share of separated values in all data.
    fn values_share(&self) -> f64 {
        let trees = self.slices.iter().map(Slice::tree);
        let patches: u64 =
            trees.map(|tree| tree.patches().map(|(.., patch)| patch.bytes()).sum::<u64>()).sum();
        let values = self.values.ledger().borrow().live_bytes();
        values as f64 / (values + patches).max(1) as f64
    }

    /// Reads every live separated value, spread over `period`.
    async fn scrub_values(&self, period: Duration) {
        let began = self.runtime.now();
        let (blocks, total): (Vec<u64>, u64) = {
            let ledger = self.values.ledger().borrow();
            (ledger.blocks().collect(), ledger.live_bytes())
        };
        let mut passed = 0;
        for block in blocks {
            let live = self.values.ledger().borrow().live_in(block);
            for (offset, len) in live {
                let share = passed as f64 / total.max(1) as f64;
                self.wait_until(began + period.mul_f64(share.min(1.0))).await;
                if self.tasks.closing.get() {
                    return;
                }
                passed += u64::from(len);
                let place = Reference::new(block, offset, len, 0);
                let handle = self.values.ledger().borrow().handle(block);
                let is_live = self.values.ledger().borrow().is_live(&place);
                if handle.is_none() || !is_live {
                    continue;
                }
                match read_unnamed_everywhere(&self.blocks, &place, Hint::COMPACTION).await {
                    Ok(_) => count(&self.counters.patrolled_bytes, len.into()),
                    Err(error) => {
                        tracing::error!(shard = self.id.0, %error, "the scrub has found a lost value");
                        count(&self.counters.data_losses, 1);
                    }
                }
                if self.blocks.any_needs_refresh() {
                    self.tasks.collect.notify_one();
                }
            }
        }
    }

    /// Compares the parity of every current group with its patches, spread over `period`.
    async fn scrub_groups(&self, period: Duration) {
        let (began, groups) = (self.runtime.now(), self.blocks.groups());
        for (number, group) in groups.iter().enumerate() {
            let passed = number as f64 / groups.len() as f64;
            self.wait_until(began + period.mul_f64(passed)).await;
            if self.tasks.closing.get() {
                return;
            }
            let exists = self.blocks.group_of(BlockId(group.parity)).is_some();
            if exists && !self.blocks.parity_agrees(group, Hint::COMPACTION).await {
                tracing::error!(
                    shard = self.id.0,
                    parity = group.parity,
                    "the scrub has found parity that does not match its patches"
                );
                self.tasks.compact.notify_one();
            }
        }
    }

    async fn scrub_blocks(&self, patch: &Patch, first: usize, end: usize) -> Result<()> {
        if first == 0 && !patch.has_whole_metadata().await {
            // The metadata is in memory, so the patch can be rewritten.
            self.blocks.note_needs_refresh(patch.id());
        }
        for number in first..end {
            let block = patch.read_block_everywhere(number, Hint::COMPACTION).await?;
            for record in block.into_records() {
                record.map_err(|error| StoreError::DataLoss(format!("{}: {error}", patch.id())))?;
            }
            count(&self.counters.patrolled_bytes, patch.block_bytes(number));
        }
        if self.blocks.any_needs_refresh() {
            self.tasks.compact.notify_one();
        }
        Ok(())
    }

    /// Reads the log. Memory holds all its events: if a part of it is lost, all segments are
    /// rewritten.
    async fn scrub_log(&self) {
        match self.log.is_whole().await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(
                    shard = self.id.0,
                    "the scrub has found the log damaged; it is rewritten from memory"
                );
                self.log.segments().into_iter().for_each(|id| self.blocks.note_needs_refresh(id));
            }
            Err(error) => {
                tracing::warn!(shard = self.id.0, %error, "the scrub could not read the log");
            }
        }
        self.refresh_log().await;
    }

    /// Rotates the log if one of its segments is hard to read or lacks a copy.
    pub(super) async fn refresh_log(&self) {
        if !self.can_rebuild() {
            // The log fails if it has no space for its next segment.
            return;
        }
        let segments = self.log.segments();
        let to_refresh = segments.iter().filter(|segment| self.blocks.needs_refresh(**segment));
        if to_refresh.map(|segment| self.blocks.clear_refresh(*segment)).count() == 0 {
            return;
        }
        if let Err(error) = self.rewrite_log().await
            && !self.tasks.closing.get()
        {
            tracing::warn!(shard = self.id.0, %error, "the log could not be rewritten");
        }
    }

    async fn wait_until(&self, due: Time) {
        while !self.tasks.closing.get() && self.runtime.now() < due {
            let woken = self.tasks.scrub.notified();
            select(self.runtime.sleep_until(due), pin!(woken)).await;
        }
    }

    /// Flushes all memtables and rotates the log, so that no older segment is needed.
    async fn rewrite_log(&self) -> Result<()> {
        self.flush().await?;
        self.rotate_log().await
    }

    /// Rewrites a patch of the slice that needs refresh. Returns whether there was one. Only the
    /// compaction task may call it, so that the two never work on the same patch.
    pub(super) async fn refresh_once(&self, slice: &Slice) -> Result<bool> {
        if !self.blocks.any_needs_refresh() {
            return Ok(false);
        }
        let tree = slice.tree();
        let found = tree.patches().find(|(.., patch)| self.blocks.needs_refresh(patch.id()));
        let Some((level, run, patch)) = found else { return Ok(false) };
        let of_run = tree.patches().filter(|(l, r, _)| (*l, *r) == (level, run));
        let of_run: Vec<Rc<Patch>> = of_run.map(|(.., patch)| Rc::clone(patch)).collect();
        let inputs = sharing_keys(&of_run, patch.id());
        // If the rewrite fails, the patches stay unchanged until the next pass.
        inputs.iter().for_each(|input| self.blocks.clear_refresh(input.id()));
        let clears = slice.clears.get();
        let pending = self.pending_outputs.begin(&self.blocks);
        let mut writer =
            PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, Hint::COMPACTION);
        let blocks = inputs
            .iter()
            .flat_map(|input| (0..input.block_count()).map(move |number| (input, number)));
        for (input, number) in blocks {
            if self.tasks.closing.get() {
                return Err(StoreError::Closed);
            }
            for record in input.read_block(number, Hint::COMPACTION).await?.into_records() {
                let record = record
                    .map_err(|error| StoreError::DataLoss(format!("{}: {error}", input.id())))?;
                writer.add(&record).await?;
            }
        }
        let (patches, bytes) = writer.finish_unless(Bug::CopyAgainNotFlushed).await?;
        if slice.clears.get() != clears {
            patches.iter().for_each(|patch| patch.retire());
            return Ok(true);
        }
        drop(pending);
        let added = patches.into_iter().map(|patch| (level as u8, run, patch)).collect();
        self.edit(slice, inputs, added);
        let seq = self.history.seq.get();
        self.log.stable_soon(seq).await?;
        inputs.iter().for_each(|input| input.retire());
        count(&self.counters.refreshed_bytes, bytes);
        Ok(true)
    }
}

/// The consecutive patches of a run around `id` in which each shares its last key with the first
/// key of the next: the fragments of a large value can span several patches. They are rewritten
/// together, because the order of patches with equal keys is by age.
fn sharing_keys(run: &[Rc<Patch>], id: BlockId) -> &[Rc<Patch>] {
    let shares = |left: &Rc<Patch>, right: &Rc<Patch>| {
        left.damage().is_none() && right.damage().is_none() && left.last_key() == right.first_key()
    };
    run.chunk_by(shares)
        .find(|group| group.iter().any(|patch| patch.id() == id))
        .unwrap_or_default()
}
