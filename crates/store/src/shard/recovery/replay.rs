//! Replay of a log, frame by frame: trees, batches, and the state in which the next writer
//! continues.

use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::log::{EventStream, Frame, FrameHeader, FrameRole, Position};
use crate::kv::patch::{MetadataGuess, Patch};
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::chain::Evidence;
use crate::shard::log::event::{Checkpoint, Edit, KeyChange, PatchEntry, Replayed};
use crate::shard::log::reader::LogReader;
use crate::shard::resources::budget::Budget;
use futures_util::StreamExt;
use futures_util::stream;
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, SliceId};
use softflash_blocks::{BlockId, BlockLayer, GroupChange, ParityGroup, UnitMark};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Patches whose metadata is read in parallel: enough for all dies, and few enough for the
/// processor's cache.
const CONCURRENT_LOADS: usize = 64;

/// A batch that was read from the log.
struct PendingBatch {
    transaction: Option<u64>,
    seq: u64,
    clear: bool,
    /// If the batch removes everything: the patches that were listed before it.
    cleared: Vec<BlockId>,
    entries: Vec<KeyChange>,
}

/// The trees in the log: patches by block, for each slice.
type Manifest = BTreeMap<u16, SliceManifest>;

#[derive(Default)]
struct SliceManifest {
    patches: BTreeMap<u64, PatchEntry>,
    flushed_seq: u64,
    live_keys: u64,
}

/// Patches that are certainly dead.
#[derive(Default)]
pub(super) struct DeadPatches {
    /// Unlisted patches of lower blocks are dead.
    pub(super) unlisted_from: u64,
    /// Patches that were removed from their trees, and blocks that were removed from their groups.
    pub(super) removed: BTreeSet<u64>,
    /// A batch has removed everything.
    pub(super) cleared: bool,
}

impl DeadPatches {
    fn add(&mut self, more: &mut DeadPatches) {
        self.unlisted_from = self.unlisted_from.max(more.unlisted_from);
        self.removed.append(&mut more.removed);
        self.cleared |= std::mem::take(&mut more.cleared);
    }
}

/// The end of the log, at which a new writer continues. Frames without events are ignored: the
/// writer writes its own opening and padding. So is a frame with the generations of units alone,
/// which each start writes anew, unless other events of its segment are before it: segments of
/// starts that were cut one after the other would have to be kept, and leave a full shard no block.
#[derive(Default)]
pub(super) struct LogEnd {
    /// The last frame with events.
    pub(super) last_frame: Option<Frame>,
    /// The segment that it was first written to.
    pub(super) segment: Option<u64>,
    /// The sequence of the next frame.
    pub(super) next_frame: Option<u64>,
    /// The segment of the last frame of any kind.
    reached: Option<u64>,
}

impl LogEnd {
    fn take(&mut self, frame: &Frame) {
        let FrameHeader { role, sequence, payload_len, .. } = frame.header;
        if !role.is_stream() || payload_len == 0 {
            return self.pass(frame);
        }
        let before = self.reached.replace(frame.at.segment);
        self.segment = match role {
            FrameRole::Stream => Some(frame.at.segment),
            // A repeated frame is read where its first version is torn. The first version was in
            // the segment of the preceding frame: the first frames of a segment have other roles.
            _ => before,
        };
        self.next_frame = Some(sequence + 1);
        self.last_frame = Some(frame.clone());
    }

    /// A frame that the log does not need.
    fn pass(&mut self, frame: &Frame) {
        self.reached = Some(frame.at.segment);
        self.next_frame.get_or_insert(frame.header.sequence);
    }
}

/// The state of a replay.
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
    /// A checkpoint was applied. Later checkpoints repeat the events since then, or are ahead of
    /// them.
    pub(super) started: bool,
    /// The segment of that checkpoint.
    pub(super) first_checkpoint: Option<u64>,
    /// The newest record of the first needed segment.
    pub(super) evidence: Option<Evidence>,
    /// Parity groups, by their parity blocks.
    groups: BTreeMap<u64, ParityGroup>,
    /// Patches that only the last frame makes dead: a later start may not be able to read that
    /// frame.
    dead_by_last_frame: DeadPatches,
    /// Patches that earlier frames make dead.
    pub(super) known_dead: DeadPatches,
    /// The frames below this sequence are declared durable by a frame.
    pub(super) durable_before: u64,
    /// The position of the last frame of the log.
    pub(super) last_frame: Option<Position>,
    pub(super) end: LogEnd,
    /// The generations of the units.
    pub(super) units: Vec<UnitMark>,
    events: EventStream,
    /// The sequence after the last frame.
    next_sequence: Option<u64>,
    /// Frames that were skipped may have held edits, so the next checkpoint replaces the manifest.
    distrusts_manifest: bool,
    /// Segments that are part of the log even if a later start cannot read the last frame: another
    /// frame follows their proof.
    pub(super) confirmed_segments: BTreeSet<u64>,
    /// The segment of the last frame, if that frame proves it.
    proved_segment: Option<u64>,
    /// The page after the last frame.
    pub(super) next_position: Option<Position>,
    /// A description of the end of the log, if it ends in a torn write.
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
            dead_by_last_frame: DeadPatches::default(),
            known_dead: DeadPatches::default(),
            durable_before: 0,
            last_frame: None,
            end: LogEnd::default(),
            units: Vec::new(),
            events: EventStream::default(),
            next_sequence: None,
            distrusts_manifest: false,
            torn: None,
            confirmed_segments: BTreeSet::new(),
            proved_segment: None,
            next_position: None,
        }
    }

    /// The sequence after the last frame.
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
        self.durable_before = self.durable_before.max(frame.header.durable_before);
        self.last_frame = Some(frame.at);
        self.next_position = Some(frame.behind(reader.page_bytes()));
        self.distrusts_manifest |=
            self.next_sequence.is_some_and(|next| frame.header.sequence > next);
        self.next_sequence = Some(frame.header.sequence + 1);
        // Frames are written in sequence: the frames before this one were complete.
        self.known_dead.add(&mut self.dead_by_last_frame);
        let is_proof = frame.header.role == FrameRole::Stream;
        let proved =
            std::mem::replace(&mut self.proved_segment, is_proof.then_some(frame.at.segment));
        self.confirmed_segments.extend(proved.filter(|segment| *segment == frame.at.segment));
        let mut events = Vec::new();
        let joined = self.events.feed(&frame.header, frame.payload.clone(), |event| {
            events.push(event);
            Ok::<_, FormatError>(())
        });
        joined.map_err(|error| match reader.refuse(error) {
            StoreError::DataLoss(_) => reader.damage(frame.at.segment, &error.to_string()),
            refused => refused,
        })?;
        let is_whole = frame.header.first_event == 0 && self.events.is_between_events();
        let is_of_units = |event: &Replayed| matches!(event, Replayed::Units(_));
        let has_units_alone = is_whole && !events.is_empty() && events.iter().all(is_of_units);
        match has_units_alone && self.end.segment != Some(frame.at.segment) {
            true => self.end.pass(&frame),
            false => self.end.take(&frame),
        }
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
                self.dead_by_last_frame.cleared |= clear;
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
        // Later checkpoints repeat the events since the first one, or are ahead of them.
        let is_first = !std::mem::replace(&mut self.started, true);
        if !is_first && !std::mem::take(&mut self.distrusts_manifest) {
            return Ok(());
        }
        if is_first {
            self.first_checkpoint = Some(segment);
        }
        self.dead_by_last_frame.unlisted_from = checkpoint.unlisted_from;
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
            self.dead_by_last_frame.removed.extend(group.blocks().map(|block| block.block));
        }
        let blocks = change.added.iter().flat_map(ParityGroup::blocks);
        let next = blocks.map(|block| block.block + 1).max().unwrap_or(0);
        self.next_block = self.next_block.max(next);
        self.groups.extend(change.added.into_iter().map(|group| (group.parity, group)));
    }

    /// Passes the parity groups to the block layer.
    pub(super) fn adopt_groups(&self, blocks: &BlockLayer) {
        blocks.adopt_groups(self.groups.values().cloned());
    }

    /// A test for unreferenced blocks that only the last frame may have made dead. A later start
    /// may not be able to read that frame and then needs the block and its group.
    pub(super) fn newly_dead(&self) -> impl Fn(u64) -> bool + use<> {
        let (removed, cleared) =
            (&self.dead_by_last_frame.removed, self.dead_by_last_frame.cleared);
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
        self.dead_by_last_frame.add(&mut DeadPatches {
            unlisted_from,
            removed: edit.removed.into_iter().collect(),
            cleared: false,
        });
        slice.patches.extend(edit.added.iter().map(|patch| (patch.block, *patch)));
        slice.flushed_seq = edit.flushed_seq;
        // Edits have sequence numbers too, and a flush may have recorded one of them as flushed. A
        // batch with the same number would be skipped as flushed.
        if !planted::bug(Bug::NumberReused) {
            self.last_seq = self.last_seq.max(edit.flushed_seq);
        }
        slice.live_keys = edit.live_keys;
        let added = edit.added.iter().map(|patch| patch.block + 1).max().unwrap_or(0);
        self.next_block = self.next_block.max(added);
    }

    /// Whether this log has a prepare without a commit.
    pub(super) fn is_undecided(&self) -> bool {
        let mut parts = self.batches.iter().filter_map(|batch| batch.transaction);
        parts.any(|number| !self.commits.contains(&number))
    }

    /// Drops the first transaction without a commit, and every batch after it. Returns whether
    /// there was one.
    pub(super) fn cut_undecided(&mut self, decided: &BTreeSet<u64>) -> bool {
        let undecided = self.batches.iter().position(|batch| {
            let is_committed = |number| self.commits.contains(number) || decided.contains(number);
            !batch.transaction.as_ref().is_none_or(is_committed)
        });
        let undecided = undecided.filter(|_| !planted::bug(Bug::UndecidedCounts));
        if let Some(place) = undecided {
            self.batches.truncate(place);
        }
        undecided.is_some()
    }

    /// Drops every transaction without a commit, and no other batch: commits may be lost. Returns
    /// the number of transactions dropped.
    pub(super) fn drop_undecided(&mut self, decided: &BTreeSet<u64>) -> u64 {
        let before = self.batches.len();
        let commits = &self.commits;
        self.batches.retain(|batch| {
            let is_committed = |number| commits.contains(number) || decided.contains(number);
            batch.transaction.as_ref().is_none_or(is_committed)
        });
        (before - self.batches.len()) as u64
    }

    /// Committed transactions whose prepare is in this log and whose commit is not.
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
            let state = self.manifest.remove(&id.0).unwrap_or_default();
            slice.flushed_seq.set(state.flushed_seq);
            slice.live_keys.set(state.live_keys);
            let entries: Vec<PatchEntry> = state.patches.into_values().collect();
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
        // Until these batches are flushed, the next recovery starts at the same segment: later
        // checkpoints may be ahead of the part of the log that survives a crash.
        let forgotten = planted::bug(Bug::ReplayedForgotten);
        let start = if forgotten { u64::MAX } else { self.first_checkpoint.unwrap_or(0) };
        let first = slices.first().map_or(0, |slice: &Slice| slice.id.0);
        let mut changed: Vec<usize> = Vec::new();
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
                slice.insert(&key, version, start, None);
                let full = slice.active_bytes() >= budget.most.freeze_bytes;
                if planted::bug(Bug::BatchFrozenInMiddle) && full {
                    slice.freeze(batch.seq);
                }
                if changed.last() != Some(&place) {
                    changed.push(place);
                }
            }
            // Not in the middle of a batch: a flush of its first part would record the whole batch
            // as flushed.
            for slice in changed.drain(..).filter_map(|place| slices.get(place)) {
                if slice.active_bytes() >= budget.most.freeze_bytes {
                    slice.freeze(batch.seq);
                }
            }
        }
        Ok(slices)
    }
}

/// Applies a removal of everything before `seq`: clears memtables, and removes the patches that
/// were listed then. A start that replayed the removal may have flushed a slice since; then only
/// this removes its older patches from the manifest.
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

/// A patch with its level and run.
type Placed = (u8, u64, Rc<Patch>);

/// Reads the metadata of patches that slices list.
async fn load(
    blocks: &BlockLayer,
    listed: Vec<(SliceId, PatchEntry)>,
) -> BTreeMap<SliceId, Vec<Placed>> {
    // All slices in parallel: a single slice has few patches, and would leave most dies idle.
    let guess = &MetadataGuess::default();
    let mut loads = stream::iter(listed)
        .map(|(slice, entry)| async move {
            let patch = Patch::load(BlockId(entry.block), blocks.clone(), guess).await;
            if let Some(reason) = patch.damage() {
                tracing::error!(
                    block = entry.block,
                    reason,
                    "a patch is lost; reads of its keys fail"
                );
            }
            (slice, (entry.level, entry.run, Rc::new(patch)))
        })
        .buffer_unordered(CONCURRENT_LOADS);
    let mut loaded: BTreeMap<SliceId, Vec<Placed>> = BTreeMap::new();
    while let Some((slice, patch)) = loads.next().await {
        loaded.entry(slice).or_default().push(patch);
    }
    loaded
}

#[cfg(test)]
pub(in crate::shard) mod tests;
