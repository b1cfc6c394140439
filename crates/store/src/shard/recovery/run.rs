//! Recovery: rebuilds the state of the shard from the contents of its units, automatically and in
//! bounded time.
//!
//! 1. The segments of the log are ordered. The newest checkpoint or edit names the first needed
//!    segment, the start.
//! 2. The log is replayed from the start: the checkpoint gives the trees, edits change them,
//!    batches fill memtables. If the frames end before the one that named the start, recovery
//!    searches for the start again in the frames before that point. If a frame names a later start,
//!    the replay restarts there.
//! 3. A transaction over several shards is committed if this log or the coordinator's log has its
//!    commit. The log is cut at the first transaction without a commit: no later event was
//!    acknowledged.
//! 4. The metadata of every patch is loaded. A block that no tree refers to is an orphan.

use super::decisions::{COORDINATOR, Decisions};
use super::log_start::{Replayable, StartSearch};
use super::replay::Replay;
use crate::error::{Result, StoreError};
use crate::format::log::Position;
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::Resume;
use crate::shard::log::chain::{Announced, Chain, Segment};
use crate::shard::log::reader::LogReader;
use crate::shard::resources::budget::Budget;
use crate::shard::values::ledger::Ledger;
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Found, StaleUnit};
use softflash_ftl::DamagedSuperblock;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Transaction numbers skipped at a restart: more than the transactions in flight that left no
/// record.
const TRANSACTION_GAP: u64 = 1 << 20;

/// The result of mounting the shard's units.
#[derive(Clone, Copy)]
pub struct OnFlash<'a> {
    /// Blocks.
    pub found: &'a [Found],
    /// Superblocks whose block is unknown.
    pub damaged: &'a [DamagedSuperblock],
    /// The policy for a log that has lost durable frames.
    pub on_log_loss: OnLogLoss,
}

/// The policy of recovery for a log that has lost durable frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLogLoss {
    /// Recovery fails.
    #[default]
    Refuse,
    /// Recovery continues after the loss with the undamaged frames. Only for a repair that allows
    /// it.
    Accept,
}

/// The accepted losses of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogLoss {
    /// Ranges of frame sequences.
    pub frames: Vec<Range<u64>>,
    /// The complete log is lost.
    pub is_whole: bool,
    /// Transactions over several shards that were dropped without a known commit.
    pub transactions: u64,
    /// Patches that no tree lists: a lost edit may have listed them.
    pub unlisted: u64,
}

/// The state that recovery found.
pub struct Recovered {
    /// The shard's slices, with their trees and memtables.
    pub slices: Vec<Slice>,
    /// The state in which the log continues.
    pub resume: Resume,
    /// The next transaction's number.
    pub next_transaction: u64,
    /// Whether the log was cut at a transaction without a commit.
    pub cut: bool,
    /// Unreferenced blocks that no log can refer to once the frames read are durable.
    pub dead: Vec<BlockId>,
    /// Other unreferenced blocks, which the torn end of the log may still name.
    pub orphans: Vec<BlockId>,
    /// Orphans that make room for a log that has none to begin, in this order: segments that a
    /// later one passes over, patches that no readable frame lists, values that nothing refers to.
    pub to_make_room: Vec<BlockId>,
    /// At the coordinator: the commits in its log.
    pub commits: BTreeSet<u64>,
    /// Transactions with writes in this shard whose commit only the coordinator's log records.
    pub decided_elsewhere: Vec<u64>,
    /// The segment with the announcement of the last one. It holds no events, and is kept until a
    /// newer segment is valid.
    pub announcer: Option<BlockId>,
    /// A description of the end of the log, if it ends in a torn write.
    pub torn: Option<String>,
    /// The losses that were accepted.
    pub log_loss: LogLoss,
    /// Frames other than the last one that are in one copy of the log only, with their sequences.
    pub uneven: BTreeMap<Position, u64>,
    /// Units that were restored from an old image.
    pub stale_units: Vec<StaleUnit>,
    /// The live separated values.
    pub values: Ledger,
}

impl Recovered {
    /// The needed segments of the log that are damaged in one copy.
    pub fn uneven_segments(&self, blocks: &BlockLayer) -> Vec<(u64, BlockId)> {
        let is_uneven = |(number, block): &&(u64, BlockId)| {
            blocks.is_degraded(*block)
                && (blocks.superblocks(*block).len() == 1
                    || self.uneven.keys().any(|at| at.segment == *number))
        };
        self.resume.segments.iter().filter(is_uneven).copied().collect()
    }
}

/// A shard to recover.
#[derive(Clone, Copy)]
pub struct Recovery<'a> {
    /// The shard.
    pub shard: ShardId,
    /// How the key space is cut.
    pub layout: &'a StoreLayout,
    /// The blocks on its units.
    pub blocks: &'a BlockLayer,
    /// The result of the mount.
    pub on_flash: OnFlash<'a>,
    /// Its expiry clock.
    pub clock: &'a ExpiryClock,
    /// The coordinator's decisions on transactions over several shards.
    pub decisions: &'a Decisions,
    /// Its memory budget.
    pub budget: &'a Budget,
}

/// The log as it was read.
struct ReadLog<'a> {
    reader: LogReader,
    replayable: Replayable<'a>,
    /// The number of the last segment.
    end: u64,
    announced: Option<Announced>,
    loss: LogLoss,
}

/// The outcome of transactions over several shards.
struct Resolved {
    /// Whether the log was cut at a transaction without a commit.
    cut: bool,
    /// The last commit in the log.
    last_commit: Option<u64>,
    /// At the coordinator: the commits that its log records.
    commits: BTreeSet<u64>,
    decided_elsewhere: Vec<u64>,
}

/// The blocks by class: referenced, and unreferenced as in [`Recovered`].
struct Classified {
    referred: BTreeSet<BlockId>,
    dead: Vec<BlockId>,
    orphans: Vec<BlockId>,
    to_make_room: Vec<BlockId>,
    has_abandoned_segments: bool,
}

impl<'a> Recovery<'a> {
    /// Reads the log and the metadata of the patches. Starts no task and writes nothing, so a
    /// failed recovery can be repeated, and `blocks` can be read after it. Nothing is undone:
    ///
    /// | step | changes besides its result | when it fails |
    /// |---|---|---|
    /// | `read_log` | the clock rises to that of the frames; `blocks` notes damaged copies | both stay, in memory |
    /// | `check_end` | nothing | the changes of `read_log` stay |
    /// | `resolve_transactions` | nothing | as above; it fails where the decisions are not known, as another shard has failed |
    /// | `build_trees` | `blocks` learns used ids and parity groups; with parity, releases attempts to write a block that do not count | does not fail: a patch that cannot be read is damaged |
    /// | [`Ledger::recover`] | nothing | does not fail |
    /// | `classify_blocks` | nothing | the attempts stay released: the next mount finds only those that count |
    /// | `stale_units`, `resume` | nothing | do not fail |
    pub async fn run(self) -> Result<Recovered> {
        let mut log = self.read_log().await?;
        self.check_end(&mut log)?;
        let resolved = self.resolve_transactions(&mut log).await?;
        let slices = self.build_trees(&mut log.replayable.replay).await?;
        let mut values = Ledger::recover(self.blocks, self.on_flash.found, &slices);
        let dead_values = values.take_unreferenced();
        let classified = self.classify_blocks(&slices, &values, dead_values, &mut log)?;
        let ReadLog { reader, replayable, announced, loss, .. } = log;
        let Replayable { needed, mut replay, .. } = replayable;
        let torn = replay.torn.take();
        // The power cut may have interrupted the write of the last frame.
        let mut uneven = reader.uneven();
        uneven.retain(|at, _| Some(*at) < replay.last_frame);
        let stale_units = self.stale_units(&classified, &uneven, &replay);
        Ok(Recovered {
            slices,
            resume: self.resume(&needed, &uneven, &mut replay, classified.has_abandoned_segments),
            next_transaction: replay
                .next_transaction
                .max(resolved.last_commit.map_or(0, |last| last + 1))
                + TRANSACTION_GAP,
            cut: resolved.cut,
            dead: classified.dead,
            orphans: classified.orphans,
            to_make_room: classified.to_make_room,
            commits: resolved.commits,
            decided_elsewhere: resolved.decided_elsewhere,
            announcer: announced.map(|announced| announced.by),
            torn,
            log_loss: loss,
            uneven,
            stale_units,
            values,
        })
    }

    /// Whether a loss of durable frames is accepted.
    fn accepts_loss(&self) -> bool {
        self.on_flash.on_log_loss == OnLogLoss::Accept
    }

    /// Orders the segments and replays them from the first needed one.
    async fn read_log(&self) -> Result<ReadLog<'a>> {
        let Recovery { shard, layout, on_flash: OnFlash { found, damaged, .. }, .. } = *self;
        let reader = LogReader::new(self.blocks.clone(), shard);
        let mut chain = match Chain::of(found, &reader).await {
            Err(StoreError::DataLoss(_)) if self.accepts_loss() => {
                reader.accept_losses();
                Chain::of(found, &reader).await?
            }
            ordered => ordered?,
        };
        let end = chain.last_number();
        for superblock in damaged {
            reader.refuse_lost_segment(&superblock.superblock, end).await?;
        }
        let mut loss = LogLoss::default();
        if chain.is_empty() {
            match reader.refuse_lost_log(layout, damaged).await {
                Err(StoreError::DataLoss(_)) if self.accepts_loss() => loss.is_whole = true,
                looked => looked?,
            }
        }
        let replayable = match self.replay_log(&reader, &mut chain).await {
            Err(StoreError::DataLoss(_)) if self.accepts_loss() => {
                reader.accept_losses();
                self.replay_log(&reader, &mut chain).await?
            }
            replayed => replayed?,
        };
        loss.frames = reader.losses();
        Ok(ReadLog { reader, replayable, end, announced: chain.announced(), loss })
    }

    async fn replay_log(&self, reader: &LogReader, chain: &mut Chain) -> Result<Replayable<'a>> {
        StartSearch::new(self.layout, self.shard, reader, chain, self.clock).replay_log().await
    }

    /// Checks that the log has all frames that an announcement records.
    fn check_end(&self, log: &mut ReadLog<'_>) -> Result<()> {
        let ReadLog { reader, replayable: Replayable { replay, .. }, end, announced, loss } = log;
        let next = replay.next_sequence();
        if let Some(Announced { segment, durable_before, .. }) = *announced
            && (segment > *end || durable_before > next)
        {
            if !self.accepts_loss() {
                let reason = format!("it was in use and is lost from frame {next} on");
                return Err(reader.damage(segment, &reason));
            }
            loss.frames.push(next..durable_before.max(next + 1));
        }
        if reader.has_lost_end() || loss.is_whole {
            loss.frames.push(next..next + 1);
        }
        let is_patch = |found: &Found| matches!(found.kind, BlockKind::Patch { .. });
        if !replay.started && self.on_flash.found.iter().any(is_patch) {
            let shard = self.shard;
            return Err(StoreError::DataLoss(format!(
                "shard {shard} has patches and no log that lists them"
            )));
        }
        Ok(())
    }

    /// Cuts the log at the first transaction without a commit.
    async fn resolve_transactions(&self, log: &mut ReadLog<'_>) -> Result<Resolved> {
        let replay = &mut log.replayable.replay;
        let last_commit = replay.commits.last().copied();
        let decided = match replay.is_undecided() && self.shard != COORDINATOR {
            true => self.decisions.commits().await?,
            false => BTreeSet::new(),
        };
        let cut = if self.accepts_loss() {
            log.loss.transactions = replay.drop_undecided(&decided);
            log.loss.transactions > 0
        } else {
            replay.cut_undecided(&decided)
        };
        let decided_elsewhere = replay.decided_elsewhere();
        let commits = match self.shard == COORDINATOR {
            true => std::mem::take(&mut replay.commits),
            false => BTreeSet::new(),
        };
        Ok(Resolved { cut, last_commit, commits, decided_elsewhere })
    }

    /// Loads the metadata of the patches, and passes the blocks in use to the block layer.
    async fn build_trees(&self, replay: &mut Replay<'_>) -> Result<Vec<Slice>> {
        self.blocks.reserve_ids(replay.next_block);
        replay.adopt_groups(self.blocks);
        self.blocks.settle_rewrites().await;
        let slices = replay.build(self.blocks, self.budget).await?;
        self.blocks.settle_groups(&patches_of(&slices));
        Ok(slices)
    }

    /// Classifies the unreferenced blocks.
    fn classify_blocks(
        &self,
        slices: &[Slice],
        values: &Ledger,
        dead_values: BTreeSet<BlockId>,
        log: &mut ReadLog<'_>,
    ) -> Result<Classified> {
        let Replayable { needed, dead, replay } = &log.replayable;
        let groups = self.blocks.groups();
        let grouped = groups.iter().flat_map(|group| group.blocks());
        let grouped = grouped.map(|block| BlockId(block.block));
        let segments = needed.iter().map(|segment| segment.block);
        let referred: BTreeSet<BlockId> =
            patches_of(slices).into_iter().chain(grouped).chain(segments).collect();
        let referred: BTreeSet<BlockId> =
            referred.into_iter().chain(values.blocks().map(BlockId)).collect();
        let announcer = log.announced.map(|announced| announced.by);
        let is_unreferred =
            |found: &&Found| !referred.contains(&found.id) && Some(found.id) != announcer;
        let unreferred = self.on_flash.found.iter().filter(is_unreferred);
        let was_removed = |found: &Found| replay.known_dead.removed.contains(&found.id.0);
        let is_patch = |found: &Found| matches!(found.kind, BlockKind::Patch { .. });
        if !log.loss.frames.is_empty() {
            let is_unlisted = |found: &&Found| is_patch(found) && !was_removed(found);
            log.loss.unlisted = unreferred.clone().filter(is_unlisted).count() as u64;
            self.refuse_lost_edit(slices, &log.loss)?;
        }
        // Segments after the end of the log were started before an interrupted start. They are dead
        // at once: kept until the log continues, the segments of many such starts would leave it no
        // space.
        let is_after_end = |segment: u64| !self.accepts_loss() && segment > log.end;
        let is_newly_dead = replay.newly_dead();
        let (dead, orphans): (Vec<&Found>, Vec<&Found>) = unreferred
            .filter(|found| !matches!(found.kind, BlockKind::User))
            .partition(|found| match found.kind {
                BlockKind::Log { segment, .. } => {
                    dead.iter().any(|dead| dead.contains(&segment)) || is_after_end(segment)
                }
                // The torn end of the log may name values, if it reads differently the next time.
                BlockKind::Value => false,
                _ => {
                    let is_known =
                        found.id.0 < replay.known_dead.unlisted_from || was_removed(found);
                    is_known && !is_newly_dead(found.id.0)
                }
            });
        let is_unlisted = |found: &&Found| {
            is_patch(found) && found.id.0 >= replay.known_dead.unlisted_from && !was_removed(found)
        };
        let ids = |blocks: Vec<&Found>| -> Vec<BlockId> {
            blocks.into_iter().map(|found| found.id).collect()
        };
        let unlisted: Vec<&Found> = orphans.iter().copied().filter(is_unlisted).collect();
        let to_make_room = passed_over(&orphans, self.on_flash.found).chain(ids(unlisted));
        let has_abandoned_segments =
            orphans.iter().any(|found| matches!(found.kind, BlockKind::Log { .. }));
        Ok(Classified {
            dead: ids(dead),
            orphans: ids(orphans),
            to_make_room: to_make_room.chain(dead_values).collect(),
            referred,
            has_abandoned_segments,
        })
    }

    /// Fails if a lost frame probably held the edit that replaced missing patches.
    fn refuse_lost_edit(&self, slices: &[Slice], loss: &LogLoss) -> Result<()> {
        let is_missing = |id: &BlockId| !self.blocks.contains(*id);
        if loss.unlisted == 0 || !patches_of(slices).iter().any(is_missing) {
            return Ok(());
        }
        let shard = self.shard;
        Err(StoreError::DataLoss(format!(
            "the log of shard {shard} has lost an edit of a tree: patches that it lists are missing, and patches that it does not list exist"
        )))
    }

    /// The state in which the log continues.
    fn resume(
        &self,
        needed: &[Segment],
        uneven: &BTreeMap<Position, u64>,
        replay: &mut Replay<'_>,
        follows_failed_starts: bool,
    ) -> Resume {
        let last_segment = self.on_flash.found.iter().filter_map(|found| match found.kind {
            BlockKind::Log { segment, .. } => Some(segment),
            _ => None,
        });
        Resume {
            segments: needed.iter().map(|segment| (segment.number, segment.block)).collect(),
            last_segment: last_segment.max().unwrap_or(0),
            next_frame: replay.end.next_frame.unwrap_or(0),
            undeclared: self.undeclared(uneven, replay),
            last_frame: replay.end.last_frame.take(),
            seq: replay.last_seq.max(1),
            follows_failed_starts,
        }
    }

    /// The first frame that is in one copy only and that no frame declares durable. Nothing in it
    /// or behind it was acknowledged: those frames would be in both copies. Not the last frame with
    /// events, which the new segment repeats.
    fn undeclared(&self, uneven: &BTreeMap<Position, u64>, replay: &Replay<'_>) -> Option<u64> {
        let last = replay.end.last_frame.as_ref().map(|frame| frame.header.sequence);
        let is_undeclared = |sequence: &u64| *sequence >= replay.durable_before;
        uneven.values().copied().filter(is_undeclared).min().filter(|first| Some(*first) < last)
    }

    /// Units that were restored from an old image. Checked only if a block in use lacks a copy.
    fn stale_units(
        &self,
        classified: &Classified,
        uneven: &BTreeMap<Position, u64>,
        replay: &Replay<'_>,
    ) -> Vec<StaleUnit> {
        let lacks_copies =
            !uneven.is_empty() || classified.referred.iter().any(|id| self.blocks.is_degraded(*id));
        if lacks_copies { self.blocks.stale_units(&replay.units) } else { Vec::new() }
    }
}

/// The orphans that are segments which a later one passes over, oldest first. The start that began
/// the later one found that the log ended before them.
fn passed_over(orphans: &[&Found], found: &[Found]) -> impl Iterator<Item = BlockId> + use<> {
    let segment_of = |found: &Found| match found.kind {
        BlockKind::Log { segment, after } => Some((segment, after)),
        _ => None,
    };
    let mut ends: Vec<(u64, u64)> = found.iter().filter_map(segment_of).collect();
    ends.sort_unstable();
    // For each segment the earliest that it or a later one follows.
    let mut earliest = u64::MAX;
    for (_, after) in ends.iter_mut().rev() {
        earliest = earliest.min(*after);
        *after = earliest;
    }
    let is_passed_over = |segment: u64| {
        let later = ends.partition_point(|(number, _)| *number <= segment);
        ends.get(later).is_some_and(|(_, after)| *after < segment)
    };
    let numbered = orphans.iter().filter_map(|found| Some((segment_of(found)?.0, found.id)));
    let passed: BTreeSet<(u64, BlockId)> =
        numbered.filter(|(segment, _)| is_passed_over(*segment)).collect();
    passed.into_iter().map(|(_, id)| id)
}

fn patches_of(slices: &[Slice]) -> BTreeSet<BlockId> {
    slices
        .iter()
        .flat_map(|slice| slice.tree().patches().map(|(.., p)| p.id()).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
pub(in crate::shard) mod tests;
