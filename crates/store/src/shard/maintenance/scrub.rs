//! Scrub: reads all data on flash periodically, so that data is rewritten before it becomes
//! unreadable, and losses are detected before a client reads them.
//!
//! Cells lose charge over time, through reads of neighbouring cells, and with wear. The device
//! reports by read retries how close a page is to its limit. When any read finds a page close to
//! it, its patch or log segment *needs refresh*: compaction rewrites the patch, and the log rotates
//! to a new segment. Healthy data is only read, so that an idle shard does not wear its flash.

use super::log_refresh::LogRefresh;
use super::tasks::Tasks;
use crate::error::{Result, StoreError};
use crate::format::reference::Reference;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::shard::Shard;
use crate::shard::counters::Counters;
use crate::shard::log::Log;
use crate::shard::slices::Slices;
use crate::shard::values::reading::read_unnamed_everywhere;
use crate::shard::values::{LossReport, Unreadable, ValueLog};
use futures_util::future::select;
use softflash_base::{ShardId, Time};
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::time::Duration;

/// Blocks of a patch that are read in one step, about 256 KiB.
const STEP_BLOCKS: usize = 64;

/// Reads all data of a shard.
pub(in crate::shard) struct Scrub<'a> {
    id: ShardId,
    runtime: &'a RuntimeHandle,
    blocks: &'a BlockLayer,
    slices: &'a Slices,
    values: &'a ValueLog,
    log: &'a Log,
    log_refresh: LogRefresh<'a>,
    losses: LossReport<'a>,
    tasks: &'a Tasks,
    counters: &'a Counters,
}

impl Scrub<'_> {
    /// The parts of a shard that have data.
    pub(in crate::shard) fn of(shard: &Shard) -> Scrub<'_> {
        let Shard { id, runtime, blocks, slices, values, log, tasks, counters, .. } = shard;
        let (log_refresh, losses) = (LogRefresh::of(shard), LossReport::of(shard, Hint::REFRESH));
        Scrub {
            id: *id,
            runtime,
            blocks,
            slices,
            values,
            log,
            log_refresh,
            losses,
            tasks,
            counters,
        }
    }

    /// Scrubs until the shard closes.
    pub(super) async fn scrub_forever(&self, period: Duration) {
        while !self.tasks.is_closing() {
            let end = self.runtime.now() + period;
            // Parity is compared with patches that this pass has verified.
            let share = if self.blocks.has_parity() { period / 2 } else { period };
            let of_values = self.values_share();
            self.scrub_patches(share.mul_f64(1.0 - of_values)).await;
            self.scrub_values(share.mul_f64(of_values)).await;
            self.scrub_groups(period - share).await;
            self.wait_until(end).await;
            if self.tasks.is_closing() {
                return;
            }
            self.scrub_log().await;
            self.counters.count_scrub_pass();
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
                if self.tasks.is_closing() {
                    return;
                }
                let end = blocks.min(first + STEP_BLOCKS);
                if let Err(error) = self.scrub_blocks(&patch, first, end).await {
                    tracing::error!(shard = self.id.0, %error, "the scrub has found lost data");
                    self.counters.count_data_loss();
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
                if self.tasks.is_closing() {
                    return;
                }
                passed += u64::from(len);
                let place = Reference::new(block, offset, len, 0);
                let handle = self.values.ledger().borrow().handle(block);
                let is_live = self.values.ledger().borrow().is_live(&place);
                if handle.is_none() || !is_live {
                    continue;
                }
                match read_unnamed_everywhere(self.blocks, &place, Hint::REFRESH).await {
                    Ok(_) => self.counters.count_scrubbed(len.into()),
                    Err(error) => self.report(Unreadable { place, error }).await,
                }
                if self.blocks.any_needs_refresh() {
                    self.tasks.request_collection();
                }
            }
        }
    }

    /// Reports a value as lost, unless it is dead.
    async fn report(&self, value: Unreadable) {
        if let Err(error) = self.losses.examine(vec![value]).await {
            tracing::error!(shard = self.id.0, %error, "a value that cannot be read is not examined");
        }
    }

    /// Compares the parity of every current group with its patches, spread over `period`.
    async fn scrub_groups(&self, period: Duration) {
        let (began, groups) = (self.runtime.now(), self.blocks.groups());
        for (number, group) in groups.iter().enumerate() {
            let passed = number as f64 / groups.len() as f64;
            self.wait_until(began + period.mul_f64(passed)).await;
            if self.tasks.is_closing() {
                return;
            }
            let exists = self.blocks.group_of(BlockId(group.parity)).is_some();
            if exists && !self.blocks.parity_agrees(group, Hint::REFRESH).await {
                tracing::error!(
                    shard = self.id.0,
                    parity = group.parity,
                    "the scrub has found parity that does not match its patches"
                );
                self.tasks.request_compaction();
            }
        }
    }

    async fn scrub_blocks(&self, patch: &Patch, first: usize, end: usize) -> Result<()> {
        if first == 0 && !patch.has_whole_metadata().await {
            // The metadata is in memory, so the patch can be rewritten.
            self.blocks.note_needs_refresh(patch.id());
        }
        for number in first..end {
            let block = patch.read_block_everywhere(number, Hint::REFRESH).await?;
            for record in block.into_records() {
                record.map_err(|error| StoreError::DataLoss(format!("{}: {error}", patch.id())))?;
            }
            self.counters.count_scrubbed(patch.block_bytes(number));
        }
        if self.blocks.any_needs_refresh() {
            self.tasks.request_compaction();
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
        self.log_refresh.refresh_log().await;
    }

    async fn wait_until(&self, due: Time) {
        while !self.tasks.is_closing() && self.runtime.now() < due {
            let woken = self.tasks.scrub_woken();
            select(self.runtime.sleep_until(due), pin!(woken)).await;
        }
    }
}
