//! Recovery: from what the units hold to the state of the shard, without repair by hand and in bounded time.
//!
//! 1. The log's segments are put in order; the newest checkpoint or edit says which is the first needed.
//! 2. From there the log is replayed: the checkpoint gives the trees, edits change them, batches fill memtables. Where
//!    frames stop before the one that named the start, the start is looked for again in front of that place.
//! 3. A transaction over several shards counts if a commit says so, here or in the coordinator's log. The log is cut
//!    at the first that does not: nothing after it was acknowledged.
//! 4. The metadata of every patch is loaded. What no tree refers to is an orphan.

use super::budget::Budget;
use super::clock::ExpiryClock;
use super::log::Resume;
use super::log::chain::{self, Segment};
use super::log::event::{Checkpoint, Edit, KeyChange, PatchEntry, Replayed};
use super::log::reader::LogReader;
use super::transactions::COORDINATOR;
use crate::block_layer::{BlockId, BlockKind, BlockLayer, Found};
use crate::error::{Result, StoreError};
use crate::format::FormatError;
use crate::format::log::{End, EventStream, Frame, Position};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::store::Mesh;
use futures_util::StreamExt;
use futures_util::stream;
use softflash_base::{ShardId, SliceId};
use softflash_ftl::DamagedSuperblock;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Patches whose metadata is read at once.
const LOADS_UNDER_WAY: usize = 32;
/// Numbers of transactions skipped at a restart: more than could have been under way without a trace.
const TRANSACTION_GAP: u64 = 1 << 20;

/// What the mount found on the shard's units.
#[derive(Clone, Copy)]
pub struct OnFlash<'a> {
    /// Blocks.
    pub found: &'a [Found],
    /// Superblocks of which nobody knows what block they are.
    pub damaged: &'a [DamagedSuperblock],
}

/// The state that recovery found.
pub struct Recovered {
    /// The shard's slices, trees and memtables filled.
    pub slices: Vec<Slice>,
    /// Where the log goes on.
    pub resume: Resume,
    /// The next transaction's number.
    pub next_transaction: u64,
    /// Whether a transaction without a commit was cut off, and all that followed.
    pub cut: bool,
    /// Blocks that nothing refers to, nor can once what was read is durable.
    pub dead: Vec<BlockId>,
    /// Other blocks that nothing refers to: what the end of the log, torn now, might still name.
    pub orphans: Vec<BlockId>,
    /// At the coordinator: the commits that its log tells of.
    pub commits: BTreeSet<u64>,
    /// Transactions with a part here, of whose commit only the coordinator's log tells.
    pub decided_elsewhere: Vec<u64>,
    /// How the log ends, where it ends in a write that is not whole.
    pub torn: Option<String>,
}

/// A batch that was read from the log.
struct PendingBatch {
    transaction: Option<u64>,
    seq: u64,
    clear: bool,
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

/// Reads the log and the patches' metadata.
pub async fn recover(
    shard: ShardId,
    layout: &StoreLayout,
    blocks: &BlockLayer,
    OnFlash { found, damaged }: OnFlash<'_>,
    clock: &ExpiryClock,
    mesh: &Mesh,
    budget: &Budget,
) -> Result<Recovered> {
    let reader = LogReader::new(blocks.clone(), shard);
    let chain = chain::chain_of(found, &reader).await?;
    let end = chain.last().map_or(0, |segment| segment.number);
    for superblock in damaged {
        reader.refuse_lost_segment(&superblock.superblock, end).await?;
    }
    let (needed, mut replay) = replay_log(layout, shard, &reader, &chain, clock).await?;
    if !replay.started && found.iter().any(|found| matches!(found.kind, BlockKind::Patch { .. })) {
        return Err(StoreError::DataLoss(format!(
            "shard {shard} has patches and no log that tells of them"
        )));
    }
    let last_commit = replay.commits.last().copied();
    if shard == COORDINATOR {
        mesh.publish_commits(replay.commits.clone());
    }
    let decided = mesh.commits().await?;
    let cut = replay.settle(&decided);
    let decided_elsewhere = replay.decided_elsewhere();
    let commits =
        if shard == COORDINATOR { std::mem::take(&mut replay.commits) } else { BTreeSet::new() };
    blocks.reserve_ids(replay.next_block);
    let slices = replay.build(blocks, budget).await?;
    let referred: BTreeSet<BlockId> = slices
        .iter()
        .flat_map(|slice| slice.tree().patches().map(|(.., p)| p.id()).collect::<Vec<_>>())
        .chain(needed.iter().map(|segment| segment.block))
        .collect();
    let unreferred = found.iter().filter(|found| !referred.contains(&found.id));
    let (dead, orphans): (Vec<&Found>, Vec<&Found>) = unreferred
        .filter(|found| !matches!(found.kind, BlockKind::User))
        .partition(|found| match found.kind {
            BlockKind::Log { segment } => {
                needed.first().is_some_and(|first| segment < first.number)
            }
            _ => found.id.0 < replay.unlisted_from || replay.removed.contains(&found.id.0),
        });
    let ids = |blocks: Vec<&Found>| blocks.into_iter().map(|found| found.id).collect();
    let next_transaction =
        last_commit.map_or(0, |last| last + 1).max(replay.next_transaction) + TRANSACTION_GAP;
    let resume = Resume {
        segments: needed.iter().map(|segment| (segment.number, segment.block)).collect(),
        next_frame: replay.next_frame,
        seq: replay.last_seq.max(1),
    };
    let torn = replay.torn.take();
    Ok(Recovered {
        slices,
        resume,
        next_transaction,
        cut,
        dead: ids(dead),
        orphans: ids(orphans),
        commits,
        decided_elsewhere,
        torn,
    })
}

/// Replays the log from the first segment that is needed. Returns the segments from there on.
async fn replay_log<'a, 'c>(
    layout: &'a StoreLayout,
    shard: ShardId,
    reader: &LogReader,
    chain: &'c [Segment],
    clock: &ExpiryClock,
) -> Result<(&'c [Segment], Replay<'a>)> {
    let mut limit = None;
    loop {
        let evidence = match limit {
            Some(None) => None,
            limit => chain::newest_evidence(chain, limit.flatten(), reader).await?,
        };
        let needed = match evidence {
            Some(evidence) => segments_from(chain, evidence.log_start, reader)?,
            None => chain,
        };
        let mut replay = Replay::new(layout, shard);
        let end = reader.scan(needed, |frame| replay.take_frame(frame, reader, clock)).await?;
        replay.next_frame = match &end {
            End::Corrupt { at, lost } => {
                let what = format!(
                    "frame {} was durable and is damaged or missing, and so may be those up to {}",
                    lost.start,
                    lost.end.saturating_sub(1)
                );
                return Err(reader.damage(at.segment, &what));
            }
            End::Clean { next_sequence, .. } | End::Torn { next_sequence, .. } => {
                next_sequence.unwrap_or(0)
            }
        };
        let Some(evidence) = evidence else { return Ok((chain, replay)) };
        if replay.last_frame >= Some(evidence.at) {
            if replay.first_checkpoint != Some(evidence.log_start) {
                return Err(reader.damage(evidence.log_start, "its checkpoint is damaged"));
            }
            replay.torn = describe_torn(&end);
            return Ok((needed, replay));
        }
        // The frame that named the start is behind a place where the log was torn: it is no part of the log.
        limit = Some(replay.last_frame);
    }
}

fn describe_torn(end: &End) -> Option<String> {
    let End::Torn { at, next_sequence } = end else { return None };
    Some(format!(
        "the log ends in a torn write, which was not acknowledged: frame {} (segment {}, page {}) is cut off",
        next_sequence.unwrap_or(0),
        at.segment,
        at.page
    ))
}

fn segments_from<'c>(
    chain: &'c [Segment],
    start: u64,
    reader: &LogReader,
) -> Result<&'c [Segment]> {
    let first = chain.iter().position(|segment| segment.number == start);
    first.and_then(|first| chain.get(first..)).ok_or_else(|| {
        let found = chain.first().map_or(0, |segment| segment.number);
        reader.damage(start, &format!("it is missing; the first one found is {found}"))
    })
}

/// What reading the log has told so far.
struct Replay<'a> {
    layout: &'a StoreLayout,
    shard: ShardId,
    manifest: Manifest,
    batches: Vec<PendingBatch>,
    /// Commits found in this log.
    commits: BTreeSet<u64>,
    next_transaction: u64,
    next_block: u64,
    next_frame: u64,
    last_seq: u64,
    /// A checkpoint has been taken: later ones repeat what the events since have told, or are ahead of it.
    started: bool,
    /// The segment of that checkpoint.
    first_checkpoint: Option<u64>,
    /// Patches of lower blocks that no tree lists are dead.
    unlisted_from: u64,
    /// Blocks of patches that were taken out of their trees.
    removed: BTreeSet<u64>,
    /// Where the last frame of the log is.
    last_frame: Option<Position>,
    events: EventStream,
    /// How the log ends, where it ends in a torn write.
    torn: Option<String>,
}

impl<'a> Replay<'a> {
    fn new(layout: &'a StoreLayout, shard: ShardId) -> Replay<'a> {
        Replay {
            layout,
            shard,
            manifest: Manifest::new(),
            batches: Vec::new(),
            commits: BTreeSet::new(),
            next_transaction: 0,
            next_block: 0,
            next_frame: 0,
            last_seq: 0,
            started: false,
            first_checkpoint: None,
            unlisted_from: 0,
            removed: BTreeSet::new(),
            last_frame: None,
            events: EventStream::default(),
            torn: None,
        }
    }

    fn take_frame(&mut self, frame: Frame, reader: &LogReader, clock: &ExpiryClock) -> Result<()> {
        clock.raise(frame.header.clock_ms);
        self.last_frame = Some(frame.at);
        let mut events = Vec::new();
        let joined = self.events.feed(&frame.header, frame.payload, |event| {
            events.push(event);
            Ok::<_, FormatError>(())
        });
        joined.map_err(|error| match reader.refuse(error) {
            StoreError::DataLoss(_) => reader.damage(frame.at.segment, &error.to_string()),
            refused => refused,
        })?;
        events.into_iter().try_for_each(|event| self.take(event, frame.at.segment))
    }

    /// Takes an event that ends in this segment.
    fn take(&mut self, event: Replayed, segment: u64) -> Result<()> {
        match event {
            Replayed::Checkpoint(checkpoint) => self.take_checkpoint(checkpoint, segment)?,
            Replayed::Edit(edit) => self.take_edit(edit),
            Replayed::Commit(number) => {
                self.commits.insert(number);
            }
            Replayed::Batch { transaction, seq, clear, entries } => {
                self.last_seq = self.last_seq.max(seq);
                self.batches.push(PendingBatch { transaction, seq, clear, entries });
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
        if std::mem::replace(&mut self.started, true) {
            return Ok(());
        }
        self.first_checkpoint = Some(segment);
        self.unlisted_from = checkpoint.unlisted_from;
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

    fn take_edit(&mut self, edit: Edit) {
        let slice = self.manifest.entry(edit.slice).or_default();
        edit.removed.iter().for_each(|block| {
            slice.patches.remove(block);
        });
        self.removed.extend(edit.removed);
        self.unlisted_from = self.unlisted_from.max(edit.unlisted_from);
        slice.patches.extend(edit.added.iter().map(|patch| (patch.block, *patch)));
        slice.flushed_seq = edit.flushed_seq;
        // Edits have numbers of their own, which a flush may have counted in: a batch must not get one of them again, or
        // it would be taken for flushed.
        self.last_seq = self.last_seq.max(edit.flushed_seq);
        slice.live_keys = edit.live_keys;
        let added = edit.added.iter().map(|patch| patch.block + 1).max().unwrap_or(0);
        self.next_block = self.next_block.max(added);
    }

    /// Drops the first transaction that does not count, and every batch after it. Returns whether there was one.
    fn settle(&mut self, decided: &BTreeSet<u64>) -> bool {
        let undecided = self.batches.iter().position(|batch| {
            let counts = |number| self.commits.contains(number) || decided.contains(number);
            !batch.transaction.as_ref().is_none_or(counts)
        });
        if let Some(place) = undecided {
            self.batches.truncate(place);
        }
        undecided.is_some()
    }

    /// Of the transactions that count, those of which this log has the part and not the commit.
    fn decided_elsewhere(&self) -> Vec<u64> {
        let parts = self.batches.iter().filter_map(|batch| batch.transaction);
        parts.filter(|number| !self.commits.contains(number)).collect()
    }

    /// Fills the slices.
    async fn build(&mut self, blocks: &BlockLayer, budget: &Budget) -> Result<Vec<Slice>> {
        let mut slices = Vec::new();
        for id in self.layout.slices_of(self.shard).map(SliceId) {
            let slice = Slice::new(id, self.layout.compression_of(id));
            let told = self.manifest.remove(&id.0).unwrap_or_default();
            slice.flushed_seq.set(told.flushed_seq);
            slice.live_keys.set(told.live_keys);
            let entries: Vec<PatchEntry> = told.patches.into_values().collect();
            let next_run = entries.iter().map(|entry| entry.run + 1).max().unwrap_or(1);
            slice.next_run.set(next_run.max(1));
            let patches = load(blocks, entries).await;
            let tree = slice.tree().edited(&[], &patches);
            *slice.tree.borrow_mut() = Rc::new(tree);
            slices.push(slice);
        }
        // Until they are flushed, the next recovery starts where this one did: checkpoints behind may be ahead of what a
        // crash has left of the log.
        let start = self.first_checkpoint.unwrap_or(0);
        let first = slices.first().map_or(0, |slice: &Slice| slice.id.0);
        let mut grown: Vec<usize> = Vec::new();
        for batch in self.batches.drain(..) {
            if batch.clear {
                clear(&slices, batch.seq);
            }
            for (key, version) in batch.entries {
                let place = usize::from(self.layout.slice_of(&key).0.wrapping_sub(first));
                let Some(slice) = slices.get(place) else { continue };
                if batch.seq <= slice.flushed_seq.get() {
                    continue;
                }
                slice.insert(key, version, start, None);
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

/// Everything written before `seq` is gone: memtables, and patches flushed before it.
fn clear(slices: &[Slice], seq: u64) {
    for slice in slices {
        if slice.flushed_seq.get() < seq {
            slice.tree.take();
            slice.live_keys.set(0);
        }
        slice.clear_memory();
    }
}

async fn load(blocks: &BlockLayer, entries: Vec<PatchEntry>) -> Vec<(u8, u64, Rc<Patch>)> {
    stream::iter(entries)
        .map(|entry| async move {
            let patch = Patch::load(BlockId(entry.block), blocks.clone()).await;
            if let Some(reason) = patch.damage() {
                tracing::error!(
                    block = entry.block,
                    reason,
                    "a patch is lost; its keys give errors"
                );
            }
            (entry.level, entry.run, Rc::new(patch))
        })
        .buffer_unordered(LOADS_UNDER_WAY)
        .collect()
        .await
}
