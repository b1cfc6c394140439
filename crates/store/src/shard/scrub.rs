//! Patrol: everything on flash is read once in a while, so that what will be lost soon is written anew while it can still be
//! read, and what is lost is known before a client asks for it.
//!
//! Cells lose charge with time, with the reads of their neighbours and with wear. The device tells by read retries how near
//! the limit a page is. Whichever read notices, the patch or segment of the log is *strained*: compaction writes the patch anew,
//! and the log goes on in a new segment. What is well is only read, so that a shard which is idle does not wear its flash.

use super::{Shard, count};
use crate::error::{Result, StoreError};
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

/// Blocks of a patch that are read in a turn, some 256 KiB.
const TURN_BLOCKS: usize = 64;

impl Shard {
    /// Patrols until the shard closes.
    pub(super) async fn scrub_forever(&self, period: Duration) {
        while !self.tasks.closing.get() {
            let end = self.runtime.now() + period;
            // Parity is compared with what was found to be right.
            let share = if self.blocks.has_parity() { period / 2 } else { period };
            self.patrol_patches(share).await;
            self.patrol_groups(period - share).await;
            self.rest_until(end).await;
            if self.tasks.closing.get() {
                return;
            }
            self.patrol_log().await;
            count(&self.counters.patrols, 1);
        }
    }

    /// Reads every patch there is now, spread over `period`.
    async fn patrol_patches(&self, period: Duration) {
        let began = self.runtime.now();
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let found = trees.iter().flat_map(|tree| tree.patches());
        // Not kept alive: a patch that compaction replaces on the way gives its space back at once.
        let patches: Vec<(Weak<Patch>, u64)> =
            found.map(|(.., patch)| (Rc::downgrade(patch), patch.bytes())).collect();
        drop(trees);
        let total: u64 = patches.iter().map(|(_, bytes)| *bytes).sum();
        let mut passed = 0;
        for (patch, bytes) in patches {
            let blocks = patch.upgrade().map_or(0, |patch| patch.block_count());
            for first in (0..blocks).step_by(TURN_BLOCKS) {
                let read = passed + bytes * first as u64 / blocks.max(1) as u64;
                self.rest_until(began + period.mul_f64(read as f64 / total.max(1) as f64)).await;
                let Some(patch) = patch.upgrade() else { break };
                if self.tasks.closing.get() {
                    return;
                }
                let end = blocks.min(first + TURN_BLOCKS);
                if let Err(error) = self.patrol_blocks(&patch, first, end).await {
                    tracing::error!(shard = self.id.0, %error, "the patrol has found lost data");
                    count(&self.counters.data_losses, 1);
                }
            }
            passed += bytes;
        }
    }

    /// Compares the parity of every group there is now with its patches, spread over `period`.
    async fn patrol_groups(&self, period: Duration) {
        let (began, groups) = (self.runtime.now(), self.blocks.groups());
        for (number, group) in groups.iter().enumerate() {
            let passed = number as f64 / groups.len() as f64;
            self.rest_until(began + period.mul_f64(passed)).await;
            if self.tasks.closing.get() {
                return;
            }
            let is_there = self.blocks.group_of(BlockId(group.parity)).is_some();
            if is_there && !self.blocks.parity_agrees(group, Hint::COMPACTION).await {
                tracing::error!(
                    shard = self.id.0,
                    parity = group.parity,
                    "the patrol has found parity that does not agree with its patches"
                );
                self.tasks.compact.notify_one();
            }
        }
    }

    async fn patrol_blocks(&self, patch: &Patch, first: usize, end: usize) -> Result<()> {
        if first == 0 && !patch.has_whole_metadata().await {
            // It is in memory: the patch can be written anew with it.
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

    /// Reads the log. What it tells of is in memory as well: where a part of it is lost, all is written anew.
    async fn patrol_log(&self) {
        match self.log.is_whole().await {
            Ok(true) => {}
            Ok(false) => {
                tracing::error!(
                    shard = self.id.0,
                    "the patrol has found the log damaged; it is written anew from memory"
                );
                self.log.segments().into_iter().for_each(|id| self.blocks.note_needs_refresh(id));
            }
            Err(error) => {
                tracing::warn!(shard = self.id.0, %error, "the patrol could not read the log");
            }
        }
        self.refresh_log().await;
    }

    /// Lets the log go on in a new segment where one of those that are needed is hard to read or lacks a copy.
    pub(super) async fn refresh_log(&self) {
        if !self.can_rebuild() {
            // A log that finds no room for its next segment fails.
            return;
        }
        let segments = self.log.segments();
        let strained = segments.iter().filter(|segment| self.blocks.needs_refresh(**segment));
        if strained.map(|segment| self.blocks.clear_refresh(*segment)).count() == 0 {
            return;
        }
        if let Err(error) = self.renew_log().await
            && !self.tasks.closing.get()
        {
            tracing::warn!(shard = self.id.0, %error, "the log could not be written anew");
        }
    }

    async fn rest_until(&self, due: Time) {
        while !self.tasks.closing.get() && self.runtime.now() < due {
            let woken = self.tasks.scrub.notified();
            select(self.runtime.sleep_until(due), pin!(woken)).await;
        }
    }

    /// Brings what is in memory into patches and begins a new segment of the log, so that no older one is needed.
    async fn renew_log(&self) -> Result<()> {
        self.flush().await?;
        self.begin_log_anew().await
    }

    /// Writes a strained patch of the slice anew, in its place. Returns whether there was one. To be called by compaction
    /// alone, which so never works on the same patch.
    pub(super) async fn refresh_once(&self, slice: &Slice) -> Result<bool> {
        if !self.blocks.any_needs_refresh() {
            return Ok(false);
        }
        let tree = slice.tree();
        let strained = tree.patches().find(|(.., patch)| self.blocks.needs_refresh(patch.id()));
        let Some((level, run, patch)) = strained else { return Ok(false) };
        let of_run = tree.patches().filter(|(l, r, _)| (*l, *r) == (level, run));
        let of_run: Vec<Rc<Patch>> = of_run.map(|(.., patch)| Rc::clone(patch)).collect();
        let inputs = sharing_keys(&of_run, patch.id());
        // Where they cannot be written anew they stay as they are, until the next pass.
        inputs.iter().for_each(|input| self.blocks.clear_refresh(input.id()));
        let clears = slice.clears.get();
        let site = self.pending_outputs.begin(&self.blocks);
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
        drop(site);
        let added = patches.into_iter().map(|patch| (level as u8, run, patch)).collect();
        self.edit(slice, inputs, added);
        let seq = self.history.seq.get();
        self.log.stable_soon(seq).await?;
        inputs.iter().for_each(|input| input.retire());
        count(&self.counters.refreshed_bytes, bytes);
        Ok(true)
    }
}

/// The neighbours in a run that a patch shares keys with, over any number of patches: the parts of a large value lie in several.
/// They are written anew together, as patches with equal keys are ordered by their age.
fn sharing_keys(run: &[Rc<Patch>], id: BlockId) -> &[Rc<Patch>] {
    let shares = |left: &Rc<Patch>, right: &Rc<Patch>| {
        left.damage().is_none() && right.damage().is_none() && left.last_key() == right.first_key()
    };
    run.chunk_by(shares)
        .find(|group| group.iter().any(|patch| patch.id() == id))
        .unwrap_or_default()
}
