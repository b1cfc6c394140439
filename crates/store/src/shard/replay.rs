//! What reading a log tells, frame by frame: trees, batches, and where the next writer goes on.

use super::budget::Budget;
use super::clock::ExpiryClock;
use super::log::chain::Evidence;
use super::log::event::{Checkpoint, Edit, KeyChange, PatchEntry, Replayed};
use super::log::reader::LogReader;
use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::log::{EventStream, Frame, FrameHeader, FrameRole, Position};
use crate::kv::patch::{MetadataGuess, Patch};
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use futures_util::StreamExt;
use futures_util::stream;
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, SliceId};
use softflash_blocks::{BlockId, BlockLayer, GroupChange, ParityGroup, UnitMark};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Patches whose metadata is read at once: enough for all dies, and no more than the processor's cache takes.
const LOADS_UNDER_WAY: usize = 64;

/// A batch that was read from the log.
struct PendingBatch {
    transaction: Option<u64>,
    seq: u64,
    clear: bool,
    /// Of a removal of everything: the patches that were listed then.
    cleared: Vec<BlockId>,
    entries: Vec<KeyChange>,
}

/// The trees as the log tells them: patches by block, for each slice.
type Manifest = BTreeMap<u16, SliceManifest>;

#[derive(Default)]
struct SliceManifest {
    patches: BTreeMap<u64, PatchEntry>,
    flushed_seq: u64,
    live_keys: u64,
}

/// Which patches are certainly dead.
#[derive(Default)]
pub(super) struct DeadPatches {
    /// Those of lower blocks that no tree lists.
    pub(super) unlisted_from: u64,
    /// Those that were taken out of their trees, and what groups let go.
    pub(super) removed: BTreeSet<u64>,
    /// Everything was removed.
    pub(super) cleared: bool,
}

impl DeadPatches {
    fn add(&mut self, more: &mut DeadPatches) {
        self.unlisted_from = self.unlisted_from.max(more.unlisted_from);
        self.removed.append(&mut more.removed);
        self.cleared |= std::mem::take(&mut more.cleared);
    }
}

/// Where a new writer goes on. What has no events is left out: openings and padding at the end are made anew.
#[derive(Default)]
pub(super) struct LogEnd {
    /// The last frame with events.
    pub(super) last_frame: Option<Frame>,
    /// The segment that it was first written to.
    pub(super) segment: Option<u64>,
    /// The sequence behind it.
    pub(super) next_frame: Option<u64>,
    /// The segment of the last frame of any kind.
    reached: Option<u64>,
}

impl LogEnd {
    fn take(&mut self, frame: &Frame) {
        let before = self.reached.replace(frame.at.segment);
        let FrameHeader { role, sequence, payload_len, .. } = frame.header;
        if !role.is_stream() || payload_len == 0 {
            self.next_frame.get_or_insert(sequence);
            return;
        }
        self.segment = match role {
            FrameRole::Stream => Some(frame.at.segment),
            // A copy is read where the frame is torn in its first place. That was behind the frame before it, as every segment
            // begins with others.
            _ => before,
        };
        self.next_frame = Some(sequence + 1);
        self.last_frame = Some(frame.clone());
    }
}

/// What reading the log has told so far.
pub(super) struct Replay<'a> {
    layout: &'a StoreLayout,
    shard: ShardId,
    manifest: Manifest,
    batches: Vec<PendingBatch>,
    /// Commits found in this log.
    pub(super) commits: BTreeSet<u64>,
    pub(super) next_transaction: u64,
    pub(super) next_block: u64,
    pub(super) last_seq: u64,
    /// A checkpoint has been taken: later ones repeat what the events since have told, or are ahead of it.
    pub(super) started: bool,
    /// The segment of that checkpoint.
    pub(super) first_checkpoint: Option<u64>,
    /// What the newest event that says so says of where the log starts.
    pub(super) evidence: Option<Evidence>,
    /// Parity groups, by their parity blocks.
    groups: BTreeMap<u64, ParityGroup>,
    /// Which patches are dead, as the last frame tells.
    told: DeadPatches,
    /// The same of those before the last frame, which may be gone the next time.
    pub(super) known: DeadPatches,
    /// Where the last frame of the log is.
    pub(super) last_frame: Option<Position>,
    pub(super) end: LogEnd,
    /// How far the units had come.
    pub(super) units: Vec<UnitMark>,
    events: EventStream,
    /// The sequence behind the last frame.
    next_sequence: Option<u64>,
    /// Frames that were passed over may have held edits: a checkpoint behind them knows better.
    distrusts_manifest: bool,
    /// Segments that count whatever the next start can read: something was written behind what proves them.
    pub(super) surely_counting: BTreeSet<u64>,
    /// The segment of the last frame, if that proves it.
    proved: Option<u64>,
    /// The page behind the last frame.
    pub(super) behind: Option<Position>,
    /// How the log ends, where it ends in a torn write.
    pub(super) torn: Option<String>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(layout: &'a StoreLayout, shard: ShardId) -> Replay<'a> {
        Replay {
            layout,
            shard,
            manifest: Manifest::new(),
            batches: Vec::new(),
            commits: BTreeSet::new(),
            next_transaction: 0,
            next_block: 0,
            last_seq: 0,
            started: false,
            first_checkpoint: None,
            evidence: None,
            groups: BTreeMap::new(),
            told: DeadPatches::default(),
            known: DeadPatches::default(),
            last_frame: None,
            end: LogEnd::default(),
            units: Vec::new(),
            events: EventStream::default(),
            next_sequence: None,
            distrusts_manifest: false,
            torn: None,
            surely_counting: BTreeSet::new(),
            proved: None,
            behind: None,
        }
    }

    /// The sequence behind the last frame.
    pub(super) fn next_sequence(&self) -> u64 {
        self.next_sequence.unwrap_or(0)
    }

    pub(super) fn take_frame(
        &mut self,
        frame: Frame,
        reader: &LogReader,
        clock: &ExpiryClock,
    ) -> Result<()> {
        clock.raise(frame.header.clock_ms);
        self.last_frame = Some(frame.at);
        self.behind = Some(frame.behind(reader.page_bytes()));
        self.distrusts_manifest |=
            self.next_sequence.is_some_and(|next| frame.header.sequence > next);
        self.next_sequence = Some(frame.header.sequence + 1);
        // Frames are written one after the other: those before this one were complete.
        self.known.add(&mut self.told);
        let is_proof = frame.header.role == FrameRole::Stream;
        let proved = std::mem::replace(&mut self.proved, is_proof.then_some(frame.at.segment));
        self.surely_counting.extend(proved.filter(|segment| *segment == frame.at.segment));
        self.end.take(&frame);
        let mut events = Vec::new();
        let joined = self.events.feed(&frame.header, frame.payload, |event| {
            events.push(event);
            Ok::<_, FormatError>(())
        });
        joined.map_err(|error| match reader.refuse(error) {
            StoreError::DataLoss(_) => reader.damage(frame.at.segment, &error.to_string()),
            refused => refused,
        })?;
        for event in events {
            self.evidence = Evidence::of(&event, frame.at, frame.header.role).or(self.evidence);
            self.take(event, frame.at.segment)?;
        }
        Ok(())
    }

    /// Takes an event that ends in this segment.
    fn take(&mut self, event: Replayed, segment: u64) -> Result<()> {
        match event {
            Replayed::Checkpoint(checkpoint) => self.take_checkpoint(checkpoint, segment)?,
            Replayed::Edit(edit) => self.take_edit(edit),
            Replayed::Units(units) => self.units = units,
            Replayed::Groups(change) => self.take_group_change(change),
            Replayed::Commit(number) => {
                self.commits.insert(number);
            }
            Replayed::Batch { transaction, seq, clear, entries } => {
                self.last_seq = self.last_seq.max(seq);
                self.told.cleared |= clear;
                let listed = |slice: &SliceManifest| {
                    slice.patches.keys().copied().map(BlockId).collect::<Vec<_>>()
                };
                let cleared = match clear && !planted::bug(Bug::ClearForgottenByFlush) {
                    true => self.manifest.values().flat_map(listed).collect(),
                    false => Vec::new(),
                };
                self.batches.push(PendingBatch { transaction, seq, clear, cleared, entries });
            }
        }
        Ok(())
    }

    fn take_checkpoint(&mut self, checkpoint: Checkpoint, segment: u64) -> Result<()> {
        self.last_seq = self.last_seq.max(checkpoint.seq);
        self.next_block = self.next_block.max(checkpoint.next_block);
        self.next_transaction = self.next_transaction.max(checkpoint.next_transaction);
        self.commits.extend(checkpoint.commits);
        if (checkpoint.shards, checkpoint.slices) != (self.layout.shards, self.layout.slices) {
            return Err(StoreError::Unusable(format!(
                "the flash was written with {} shards and {} slices, the settings say {} and {}; restore the settings file",
                checkpoint.shards, checkpoint.slices, self.layout.shards, self.layout.slices
            )));
        }
        // Later checkpoints repeat what the events since the first have told, or are ahead of them.
        let is_first = !std::mem::replace(&mut self.started, true);
        if !is_first && !std::mem::take(&mut self.distrusts_manifest) {
            return Ok(());
        }
        if is_first {
            self.first_checkpoint = Some(segment);
        }
        self.told.unlisted_from = checkpoint.unlisted_from;
        self.groups = checkpoint.groups.into_iter().map(|group| (group.parity, group)).collect();
        for state in checkpoint.states {
            let slice = SliceManifest {
                patches: state.patches.iter().map(|patch| (patch.block, *patch)).collect(),
                flushed_seq: state.flushed_seq,
                live_keys: state.live_keys,
            };
            self.manifest.insert(state.slice, slice);
        }
        Ok(())
    }

    fn take_group_change(&mut self, change: GroupChange) {
        for group in change.removed.iter().filter_map(|parity| self.groups.remove(parity)) {
            self.told.removed.extend(group.blocks().map(|block| block.block));
        }
        let blocks = change.added.iter().flat_map(ParityGroup::blocks);
        let next = blocks.map(|block| block.block + 1).max().unwrap_or(0);
        self.next_block = self.next_block.max(next);
        self.groups.extend(change.added.into_iter().map(|group| (group.parity, group)));
    }

    /// Tells the block layer which blocks make up for each other.
    pub(super) fn adopt_groups(&self, blocks: &BlockLayer) {
        blocks.adopt_groups(self.groups.values().cloned());
    }

    /// Tells of a block that nothing refers to whether it may have been given up by the last frame alone, which may be gone the
    /// next time: it may be needed then, and so may its group.
    pub(super) fn newly_dead(&self) -> impl Fn(u64) -> bool + use<> {
        let (removed, cleared) = (&self.told.removed, self.told.cleared);
        let is_touched =
            |group: &&ParityGroup| group.blocks().any(|block| removed.contains(&block.block));
        let groups = self.groups.values().filter(is_touched).flat_map(ParityGroup::blocks);
        let newly: BTreeSet<u64> =
            groups.map(|block| block.block).chain(removed.iter().copied()).collect();
        move |block| cleared || newly.contains(&block)
    }

    fn take_edit(&mut self, edit: Edit) {
        let slice = self.manifest.entry(edit.slice).or_default();
        let kept = planted::bug(Bug::RemovalNotReplayed);
        edit.removed.iter().filter(|_| !kept).for_each(|block| {
            slice.patches.remove(block);
        });
        let unlisted_from = edit.unlisted_from;
        self.told.add(&mut DeadPatches {
            unlisted_from,
            removed: edit.removed.into_iter().collect(),
            cleared: false,
        });
        slice.patches.extend(edit.added.iter().map(|patch| (patch.block, *patch)));
        slice.flushed_seq = edit.flushed_seq;
        // Edits have numbers of their own, which a flush may have counted in: a batch must not get one of them again, or
        // it would be taken for flushed.
        if !planted::bug(Bug::NumberReused) {
            self.last_seq = self.last_seq.max(edit.flushed_seq);
        }
        slice.live_keys = edit.live_keys;
        let added = edit.added.iter().map(|patch| patch.block + 1).max().unwrap_or(0);
        self.next_block = self.next_block.max(added);
    }

    /// Whether this log has the part of a transaction and no commit.
    pub(super) fn is_undecided(&self) -> bool {
        let mut parts = self.batches.iter().filter_map(|batch| batch.transaction);
        parts.any(|number| !self.commits.contains(&number))
    }

    /// Drops the first transaction that does not count, and every batch after it. Returns whether there was one.
    pub(super) fn settle(&mut self, decided: &BTreeSet<u64>) -> bool {
        let undecided = self.batches.iter().position(|batch| {
            let counts = |number| self.commits.contains(number) || decided.contains(number);
            !batch.transaction.as_ref().is_none_or(counts)
        });
        let undecided = undecided.filter(|_| !planted::bug(Bug::UndecidedCounts));
        if let Some(place) = undecided {
            self.batches.truncate(place);
        }
        undecided.is_some()
    }

    /// Drops every transaction that does not count, and nothing else: commits may have been lost. Returns how many.
    pub(super) fn drop_undecided(&mut self, decided: &BTreeSet<u64>) -> u64 {
        let before = self.batches.len();
        let commits = &self.commits;
        self.batches.retain(|batch| {
            let counts = |number| commits.contains(number) || decided.contains(number);
            batch.transaction.as_ref().is_none_or(counts)
        });
        (before - self.batches.len()) as u64
    }

    /// Of the transactions that count, those of which this log has the part and not the commit.
    pub(super) fn decided_elsewhere(&self) -> Vec<u64> {
        let parts = self.batches.iter().filter_map(|batch| batch.transaction);
        parts.filter(|number| !self.commits.contains(number)).collect()
    }

    /// Fills the slices.
    pub(super) async fn build(
        &mut self,
        blocks: &BlockLayer,
        budget: &Budget,
    ) -> Result<Vec<Slice>> {
        let (mut slices, mut listed) = (Vec::new(), Vec::new());
        for id in self.layout.slices_of(self.shard).map(SliceId) {
            let slice = Slice::new(id, self.layout.compression_of(id));
            let told = self.manifest.remove(&id.0).unwrap_or_default();
            slice.flushed_seq.set(told.flushed_seq);
            slice.live_keys.set(told.live_keys);
            let entries: Vec<PatchEntry> = told.patches.into_values().collect();
            let runs = entries.iter().filter(|_| !planted::bug(Bug::RunNumberReused));
            let next_run = runs.map(|entry| entry.run + 1).max().unwrap_or(1);
            slice.next_run.set(next_run.max(1));
            listed.extend(entries.into_iter().map(|entry| (id, entry)));
            slices.push(slice);
        }
        let mut patches = load(blocks, listed).await;
        for slice in &slices {
            let tree = slice.tree().edited(&[], &patches.remove(&slice.id).unwrap_or_default());
            *slice.tree.borrow_mut() = Rc::new(tree);
        }
        // Until they are flushed, the next recovery starts where this one did: checkpoints behind may be ahead of what a
        // crash has left of the log.
        let forgotten = planted::bug(Bug::ReplayedForgotten);
        let start = if forgotten { u64::MAX } else { self.first_checkpoint.unwrap_or(0) };
        let first = slices.first().map_or(0, |slice: &Slice| slice.id.0);
        let mut grown: Vec<usize> = Vec::new();
        for batch in self.batches.drain(..) {
            if batch.clear && !planted::bug(Bug::ClearNotReplayed) {
                clear(&slices, batch.seq, &batch.cleared);
            }
            for (key, version) in batch.entries {
                let place = usize::from(self.layout.slice_of(&key).0.wrapping_sub(first));
                let Some(slice) = slices.get(place) else { continue };
                if batch.seq <= slice.flushed_seq.get() {
                    continue;
                }
                slice.insert(key, version, start, None);
                let full = slice.active_bytes() >= budget.freeze_bytes;
                if planted::bug(Bug::BatchFrozenInMiddle) && full {
                    slice.freeze(batch.seq);
                }
                if grown.last() != Some(&place) {
                    grown.push(place);
                }
            }
            // Not in the middle of a batch: a flush of its first part would say that all of it is in the tree.
            for slice in grown.drain(..).filter_map(|place| slices.get(place)) {
                if slice.active_bytes() >= budget.freeze_bytes {
                    slice.freeze(batch.seq);
                }
            }
        }
        Ok(slices)
    }
}

/// Everything written before `seq` is gone: memtables, and the patches that were listed then. A slice may have been flushed
/// since, by a start that had replayed the removal; nothing else takes its older patches out of the manifest then.
fn clear(slices: &[Slice], seq: u64, cleared: &[BlockId]) {
    for slice in slices {
        if slice.flushed_seq.get() < seq {
            slice.tree.take();
            slice.live_keys.set(0);
        } else if !cleared.is_empty() {
            let tree = slice.tree().edited(cleared, &[]);
            *slice.tree.borrow_mut() = Rc::new(tree);
        }
        slice.clear_memory();
    }
}

/// A patch in its place in a tree.
type Placed = (u8, u64, Rc<Patch>);

/// Reads the metadata of patches that slices list.
async fn load(
    blocks: &BlockLayer,
    listed: Vec<(SliceId, PatchEntry)>,
) -> BTreeMap<SliceId, Vec<Placed>> {
    // All slices at once: each has few patches, and would leave most dies idle.
    let guess = &MetadataGuess::default();
    let mut loads = stream::iter(listed)
        .map(|(slice, entry)| async move {
            let patch = Patch::load(BlockId(entry.block), blocks.clone(), guess).await;
            if let Some(reason) = patch.damage() {
                tracing::error!(
                    block = entry.block,
                    reason,
                    "a patch is lost; its keys give errors"
                );
            }
            (slice, (entry.level, entry.run, Rc::new(patch)))
        })
        .buffer_unordered(LOADS_UNDER_WAY);
    let mut loaded: BTreeMap<SliceId, Vec<Placed>> = BTreeMap::new();
    while let Some((slice, patch)) = loads.next().await {
        loaded.entry(slice).or_default().push(patch);
    }
    loaded
}

#[cfg(test)]
pub(super) mod tests;
