//! Runs the compactions that the policy chooses.

use super::Shard;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::reference::Reference;
use crate::kv::compaction::leveled::{Choice, GATHERED_RUNS, Options};
use crate::kv::cursor::RunCursor;
use crate::kv::merge::{Fate, Merge, Retention, Source};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
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
            base_bytes: (self.budget.level0_runs * self.budget.freeze_bytes) as u64,
            fanout: 8,
            room_blocks: self.blocks.room_of_compaction(),
            spare_blocks: self.spare_blocks(),
            patch_bytes: self.blocks.capacity_bytes() as u64,
        }
    }

    /// Free blocks that a merge can take while writers go on: those above the reserve and a part of
    /// it, which is for the flushes during the merge.
    fn spare_blocks(&self) -> usize {
        let reserve = self.reserve_blocks();
        self.blocks.free_blocks().saturating_sub(reserve + reserve / 4) as usize
    }

    /// Runs one compaction of the slice, if its policy chooses any. Returns whether one was run.
    pub(super) async fn compact_once(&self, slice: &Slice) -> Result<bool> {
        let tree = slice.tree();
        let pressure = self.space_is_short();
        let choice = slice.policy.borrow_mut().choose(&tree, &self.compaction_options(), pressure);
        let Some(choice) = choice else { return Ok(false) };
        let clears = slice.clears.get();
        let inputs: Vec<Rc<Patch>> =
            choice.inputs.iter().flat_map(|run| run.patches.iter().map(Rc::clone)).collect();
        tracing::debug!(slice = slice.id.0, from = choice.from, to = choice.to, "compacts");
        let moved = is_move(&choice, self.blocks.capacity_bytes() as u64);
        let pending = self.pending_outputs.begin(&self.blocks);
        let (outputs, expired) =
            if moved { (inputs.clone(), 0) } else { self.merge(slice, &choice).await? };
        if slice.clears.get() != clears && !planted::bug(Bug::CompactedAcrossClear) {
            if !moved {
                outputs.iter().for_each(|patch| patch.retire());
            }
            return Ok(true);
        }
        slice.live_keys.set(slice.live_keys.get().saturating_sub(expired));
        let added = outputs.into_iter().map(|patch| (choice.to as u8, 0, patch)).collect();
        drop(pending);
        self.edit(slice, &inputs, added);
        let seq = self.history.seq();
        self.counters.count_compaction();
        // The space of the inputs may be reused only when no recovery can need them.
        if !planted::bug(Bug::InputsFreedEarly) {
            self.log.stable_soon(seq).await?;
        }
        if !moved && !planted::bug(Bug::InputsLeak) {
            inputs.iter().for_each(|patch| patch.retire());
        }
        drop((tree, inputs, choice));
        self.tasks.announce_room();
        // The collector waits for a lagging compaction.
        self.tasks.request_collection();
        Ok(true)
    }

    async fn merge(&self, slice: &Slice, choice: &Choice) -> Result<(Vec<Rc<Patch>>, u64)> {
        let sources = choice.inputs.iter().map(|run| {
            let (run, step_bytes) = (Rc::new(run.share()), self.budget.compaction_step_bytes);
            let cursor = RunCursor::whole(run, step_bytes, Hint::COMPACTION);
            Source::Run(Box::new(cursor))
        });
        let mut merge = Merge::new(sources.collect());
        let mut retention =
            Retention::new(self.history.snapshots().all(), choice.bottom, self.clock.now_ms());
        let mut writer =
            PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, Hint::COMPACTION);
        let mut kept = KeptReferences::default();
        while let Some(record) = merge.next().await? {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
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
