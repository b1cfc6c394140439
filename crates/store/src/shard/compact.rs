//! Runs the compactions that the policy chooses.

use super::Shard;
use super::merge_pace::RunningMerge;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::reference::Reference;
use crate::kv::compaction::leveled::{Choice, GATHERED_RUNS, Options};
use crate::kv::cursor::RunCursor;
use crate::kv::merge::{Fate, Merge, Retention, Source};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::kv::writer::PatchWriter;
use bytes::Bytes;
use hashbrown::HashSet;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;
use std::rc::Rc;

impl Shard {
    /// The target shape of the trees.
    pub(super) fn compaction_options(&self) -> Options {
        Options {
            level0_runs: self.budget.level0_runs,
            gathered_runs: GATHERED_RUNS.max(self.budget.level0_runs),
            base_bytes: (GATHERED_RUNS * self.budget.freeze_bytes) as u64,
            fanout: 8,
            room_blocks: self.blocks.room_of_compaction(),
            merge_blocks: self.blocks.free_blocks().saturating_sub(self.budget.flush_blocks)
                as usize,
            spare_blocks: self.spare_blocks(),
            part_blocks: self.budget.part_blocks as usize,
            patch_bytes: self.blocks.capacity_bytes() as u64,
        }
    }

    /// Free blocks above the reserve and a part of it, which is for the flushes during a merge.
    fn spare_blocks(&self) -> usize {
        let reserve = self.reserve_blocks();
        // Writers go on while a merge frees the space of level 0 of one slice.
        let runs = self.slices.iter().map(|slice| slice.tree.borrow().level0_patches());
        let freed = runs.sum::<usize>() / self.slices.len().max(1);
        let kept = (reserve + reserve / 8) as usize + freed;
        (self.blocks.free_blocks() as usize).saturating_sub(kept)
    }

    /// Runs one compaction of the slice, if its policy chooses any. Returns whether one was run.
    pub(super) async fn compact_once(&self, slice: &Slice) -> Result<bool> {
        let (options, pressure) = (self.compaction_options(), self.space_is_short());
        let choice = slice.policy.borrow_mut().choose(&slice.tree(), &options, pressure);
        let Some(choice) = choice else { return Ok(false) };
        tracing::debug!(slice = slice.id.0, from = choice.from, to = choice.to, "compacts");
        if is_move(&choice, self.blocks.capacity_bytes() as u64) {
            self.move_down(slice, &choice).await?;
        } else {
            self.merge(slice, choice, &options).await?;
        }
        self.tasks.announce_room();
        // The collector waits for a lagging compaction.
        self.tasks.request_collection();
        Ok(true)
    }

    async fn move_down(&self, slice: &Slice, choice: &Choice) -> Result<()> {
        let inputs: Vec<_> = choice.inputs.iter().flat_map(|run| run.patches.clone()).collect();
        let added = inputs.iter().map(|patch| (choice.to as u8, 0, Rc::clone(patch))).collect();
        self.edit(slice, &inputs, added);
        self.counters.count_compaction();
        self.inputs_unneeded().await
    }

    /// No recovery needs the inputs of the last edit when it is durable: their space may be reused.
    async fn inputs_unneeded(&self) -> Result<()> {
        match planted::bug(Bug::InputsFreedEarly) {
            true => Ok(()),
            false => self.log.stable_soon(self.history.seq()).await,
        }
    }

    /// Merges the inputs, part by part.
    async fn merge(&self, slice: &Slice, choice: Choice, options: &Options) -> Result<()> {
        let (clears, to, bottom) = (slice.clears.get(), choice.to, choice.bottom);
        let (upper, parts) = choice.into_parts(options);
        let mut merge =
            Merge::new(upper.iter().map(|run| self.source(run.patches.clone())).collect());
        let mut upper: Vec<_> = upper.into_iter().flat_map(|run| run.patches).collect();
        let below = parts.iter().flat_map(|part| &part.below);
        let records = upper.iter().chain(below).map(|patch| patch.records()).sum();
        let running = self.merge_pace.begin(self.runtime.now(), records);
        // The last output of a part, if it is short: the next part fills it.
        let mut short: Option<Rc<Patch>> = None;
        let (mut held, last) = (0, parts.len() - 1);
        for (number, part) in parts.into_iter().enumerate() {
            let mut inputs: Vec<_> = short.take().into_iter().chain(part.below).collect();
            merge.add(self.source(inputs.clone()));
            let pending = self.pending_outputs.begin(&self.blocks);
            let last_key = part.last_key.as_deref();
            let (outputs, expired) =
                self.merge_part(slice, &mut merge, last_key, bottom, (&running, held)).await?;
            if slice.clears.get() != clears && !planted::bug(Bug::CompactedAcrossClear) {
                outputs.iter().for_each(|patch| patch.retire());
                return Ok(());
            }
            if number == last {
                inputs.append(&mut upper);
                self.counters.count_compaction();
            } else {
                let fills = |patch: &&Rc<Patch>| patch.bytes() < options.patch_bytes / 4 * 3;
                short = outputs.last().filter(fills).map(Rc::clone);
            }
            held = (held + outputs.len()).saturating_sub(inputs.len());
            slice.live_keys.set(slice.live_keys.get().saturating_sub(expired));
            let added = outputs.into_iter().map(|patch| (to as u8, 0, patch)).collect();
            drop(pending);
            self.edit(slice, &inputs, added);
            self.inputs_unneeded().await?;
            if !planted::bug(Bug::InputsLeak) {
                inputs.iter().for_each(|patch| patch.retire());
            }
            self.tasks.announce_room();
        }
        Ok(())
    }

    fn source(&self, patches: Vec<Rc<Patch>>) -> Source {
        let run = Rc::new(Run { number: 0, patches });
        let step_bytes = self.budget.compaction_step_bytes;
        Source::Run(Box::new(RunCursor::whole(run, step_bytes, Hint::COMPACTION)))
    }

    /// Merges records up to `last_key`; returns the outputs and the number of expired keys.
    async fn merge_part(
        &self,
        slice: &Slice,
        merge: &mut Merge,
        last_key: Option<&[u8]>,
        bottom: bool,
        (running, held): (&RunningMerge<'_>, usize),
    ) -> Result<(Vec<Rc<Patch>>, u64)> {
        let mut retention =
            Retention::new(self.history.snapshots().all(), bottom, self.clock.now_ms());
        let mut writer =
            PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, Hint::COMPACTION);
        let mut kept = KeptReferences::default();
        while let Some(record) = merge.next_up_to(last_key).await? {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            running.advance(|| self.runtime.now());
            running.hold(held + writer.patches());
            match retention.judge(&record) {
                Fate::Keep => {
                    kept.note(&record);
                    writer.add(&record).await?;
                }
                Fate::Bury => {
                    self.drop_value(&record, &kept);
                    writer.add(&Record::delete(record.key, record.seq)).await?;
                }
                Fate::Drop => self.drop_value(&record, &kept),
                Fate::Repeat => {}
            }
        }
        let (patches, bytes) = writer.finish().await?;
        self.counters.count_merge(bytes);
        Ok((patches, retention.keys_expired))
    }
}

/// The references to fragments that a merge has kept of the newer versions of a key. A version of
/// several fragments shares references with the one that the collector made of it by moving others.
#[derive(Default)]
struct KeptReferences {
    key: Bytes,
    references: HashSet<Reference>,
}

impl KeptReferences {
    fn note(&mut self, record: &Record) {
        let Some(reference) = record.reference().filter(|_| record.fragments() > 1) else { return };
        if self.key != record.key {
            self.key = record.key.clone();
            self.references.clear();
        }
        self.references.insert(*reference);
    }

    fn has(&self, record: &Record, reference: &Reference) -> bool {
        self.key == record.key && self.references.contains(reference)
    }
}

impl Shard {
    /// A version is dropped: its separated value is dead, but for the fragments that newer versions
    /// have.
    fn drop_value(&self, record: &Record, kept: &KeptReferences) {
        let Some(reference) = record.reference() else { return };
        let mut ledger = self.values.ledger().borrow_mut();
        match record.is_expired(self.clock.now_ms()) {
            true => ledger.remove_expired(reference, record.expires_at_ms().unwrap_or(0)),
            false if kept.has(record, reference) => {}
            false => ledger.remove(reference),
        }
    }
}

/// Whether the inputs can be moved to the next level without a rewrite, because a merge would only
/// copy them: a single run without overlap below, or runs with disjoint key ranges, as after a
/// sequential load. Not if a merge would drop deletions, or fill fewer blocks of `block_bytes`.
fn is_move(choice: &Choice, block_bytes: u64) -> bool {
    let patches = || choice.inputs.iter().flat_map(|run| &run.patches);
    let deletes = || patches().any(|patch| patch.tombstones() > 0);
    let full = || {
        let bytes: u64 = patches().map(|patch| patch.bytes()).sum();
        bytes.div_ceil(block_bytes) >= patches().count() as u64
    };
    let disjoint = || {
        if planted::bug(Bug::OverlapMoved) {
            return true;
        }
        let mut bounds: Vec<_> = patches().map(|p| (p.first_key(), p.last_key())).collect();
        bounds.sort_unstable();
        bounds.windows(2).all(|pair| matches!(pair, [left, right] if left.1 < right.0))
    };
    (choice.inputs.len() == 1 || (full() && disjoint())) && !(choice.bottom && deletes())
}
