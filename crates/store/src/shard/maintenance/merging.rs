//! Merges runs into the next level, part by part.

use super::manifest::Manifest;
use super::tasks::Tasks;
use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::format::reference::Reference;
use crate::kv::compaction::leveled::{Choice, Options, SHORT_PATCHES};
use crate::kv::compaction::parts::{Part, longest};
use crate::kv::cursor::RunCursor;
use crate::kv::merge::{Fate, Merge, Retention, Source};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::kv::writer::{PatchWriter, lifetime_of_level};
use crate::shard::Shard;
use crate::shard::clock::ExpiryClock;
use crate::shard::counters::Counters;
use crate::shard::read::expirations::{Expirations, Expired};
use crate::shard::resources::budget::Budget;
use crate::shard::transactions::history::History;
use crate::shard::values::ValueLog;
use crate::shard::write::merge_pace::{MergePace, RunningMerge};
use bytes::Bytes;
use hashbrown::HashSet;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockLayer;
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;

/// Merges runs of a shard.
pub(in crate::shard) struct Merger<'a> {
    blocks: &'a BlockLayer,
    budget: &'a Budget,
    runtime: &'a RuntimeHandle,
    tasks: &'a Tasks,
    counters: &'a Counters,
    expirations: &'a Expirations,
    history: &'a History,
    clock: &'a ExpiryClock,
    values: &'a ValueLog,
    pace: &'a MergePace,
    manifest: Manifest<'a>,
}

/// A merge under way.
struct UnderWay<'a> {
    slice: &'a Slice,
    /// The hint of its patches.
    hint: Hint,
    /// Whether no older versions are below, so that deletions can be dropped.
    bottom: bool,
    merge: Merge,
    running: RunningMerge<'a>,
    /// Blocks that the ended parts hold: their outputs without their inputs.
    held: usize,
    /// The last output of a part, if it is short: the next part fills it.
    short: Option<Rc<Patch>>,
}

/// The result of a part.
struct Merged {
    /// Its patches of the target level.
    inputs: Vec<Rc<Patch>>,
    outputs: Vec<Rc<Patch>>,
    /// Expired keys that the part dropped.
    expired: Vec<Expired>,
}

impl<'a> Merger<'a> {
    /// The parts of a shard that a merge uses.
    pub(in crate::shard) fn of(shard: &'a Shard) -> Merger<'a> {
        let Shard { blocks, budget, runtime, tasks, counters, expirations, history, .. } = shard;
        let Shard { clock, values, merge_pace: pace, .. } = shard;
        let manifest = Manifest::of(shard);
        Merger {
            blocks,
            budget,
            runtime,
            tasks,
            counters,
            expirations,
            history,
            clock,
            values,
            pace,
            manifest,
        }
    }

    /// Merges the inputs, part by part. A part replaces its patches of the target level; the upper
    /// runs leave the tree with the last part.
    pub(in crate::shard) async fn merge(
        &self,
        slice: &'a Slice,
        choice: Choice,
        options: &Options,
    ) -> Result<()> {
        let (clears, to, bottom) = (slice.clears.get(), choice.to, choice.bottom);
        let (upper, parts) = choice.into_parts(options);
        let merge = Merge::new(upper.iter().map(|run| self.source(&run.patches)).collect());
        let mut upper: Vec<_> = upper.into_iter().flat_map(|run| run.patches).collect();
        let below = parts.iter().flat_map(|part| &part.below);
        let records = upper.iter().chain(below).map(|patch| patch.records()).sum();
        let most_held = upper.len() + longest(&parts) + SHORT_PATCHES;
        let running = self.pace.begin(self.runtime.now(), records, most_held);
        let hint = Hint::COMPACTION.lasting(lifetime_of_level(to));
        let mut under_way = UnderWay { slice, hint, bottom, merge, running, held: 0, short: None };
        let mut keys_expired = 0;
        for part in parts {
            let pending = self.manifest.begin_output();
            let Merged { mut inputs, outputs, expired } =
                self.merge_part(&mut under_way, &part).await?;
            if slice.clears.get() != clears && !planted::bug(Bug::CompactedAcrossClear) {
                outputs.iter().for_each(|patch| patch.retire());
                return Ok(());
            }
            keys_expired += expired.len() as u64;
            expired.into_iter().for_each(|expired| self.expirations.note_removed(expired));
            if part.last_key.is_none() {
                inputs.append(&mut upper);
                // Until now level 0 has these keys.
                slice.live_keys.set(slice.live_keys.get().saturating_sub(keys_expired));
                self.counters.count_compaction();
            } else {
                under_way.short = short_end(&outputs, options.patch_bytes);
            }
            under_way.held = (under_way.held + outputs.len()).saturating_sub(inputs.len());
            let added = outputs.into_iter().map(|patch| (to as u8, 0, patch)).collect();
            drop(pending);
            self.manifest.note(slice, &inputs, added);
            // The space of the inputs may be reused only when no recovery can need them.
            if !planted::bug(Bug::InputsFreedEarly) {
                self.manifest.durable().await?;
            }
            if !planted::bug(Bug::InputsLeak) {
                inputs.iter().for_each(|patch| patch.retire());
            }
            self.tasks.announce_room();
        }
        Ok(())
    }

    fn source(&self, patches: &[Rc<Patch>]) -> Source {
        let run = Rc::new(Run { number: 0, patches: patches.to_vec() });
        let step_bytes = self.budget.compaction_step_bytes;
        Source::Run(Box::new(RunCursor::whole(run, step_bytes, Hint::COMPACTION)))
    }

    /// Merges the records of a part.
    async fn merge_part(&self, under_way: &mut UnderWay<'_>, part: &Part) -> Result<Merged> {
        let UnderWay { slice, hint, bottom, merge, running, held, short } = under_way;
        let inputs: Vec<_> = short.take().iter().chain(&part.below).map(Rc::clone).collect();
        merge.add(self.source(&inputs));
        let mut retention =
            Retention::new(self.history.snapshots().all(), *bottom, self.clock.now_ms());
        let mut writer = PatchWriter::new(self.blocks.clone(), slice.id, slice.compression, *hint);
        let (mut kept, mut expired) = (KeptReferences::default(), Vec::new());
        while let Some(record) = merge.next_up_to(part.last_key.as_deref()).await? {
            if self.tasks.is_closing() {
                return Err(StoreError::Closed);
            }
            running.advance(|| self.runtime.now());
            running.hold(*held + writer.patches());
            let fate = retention.judge(&record);
            if retention.keys_expired > expired.len() as u64 {
                expired.push(Expired::of(&record.key, record.expires_at_ms().unwrap_or(0)));
            }
            match fate {
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
        let (outputs, bytes) = writer.finish().await?;
        self.counters.count_merge(bytes);
        Ok(Merged { inputs, outputs, expired })
    }

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

/// The last output of a part, if the next part can fill it: it is short, and holds all fragments of
/// its first key. The next part judges its records again, at a later time: a version whose first
/// fragments were kept could have expired meanwhile.
fn short_end(outputs: &[Rc<Patch>], patch_bytes: u64) -> Option<Rc<Patch>> {
    let (last, before) = outputs.split_last()?;
    let straddles = before.last().is_some_and(|before| before.last_key() == last.first_key());
    let is_short = last.bytes() < patch_bytes / 4 * 3;
    (is_short && !straddles).then(|| Rc::clone(last))
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
