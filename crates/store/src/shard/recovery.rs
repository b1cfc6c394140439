//! Recovery: from what the units hold to the state of the shard, without repair by hand and in bounded time.
//!
//! 1. The log's segments are put in order; the newest checkpoint or edit says which is the first needed.
//! 2. From there the log is replayed: the checkpoint gives the trees, edits change them, batches fill memtables. Where
//!    frames stop before the one that named the start, the start is looked for again in front of that place; where they
//!    tell of a later start, the replay begins anew from that.
//! 3. A transaction over several shards counts if a commit says so, here or in the coordinator's log. The log is cut
//!    at the first that does not: nothing after it was acknowledged.
//! 4. The metadata of every patch is loaded. What no tree refers to is an orphan.

use super::budget::Budget;
use super::clock::ExpiryClock;
use super::decisions::{COORDINATOR, Decisions};
use super::log::Resume;
use super::log::chain::{Announced, Chain, Evidence, Segment, newest_evidence};
use super::log::reader::LogReader;
use super::replay::Replay;
use crate::error::{Result, StoreError};
use crate::format::log::{End, Position};
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Found, StaleUnit};
use softflash_ftl::DamagedSuperblock;
use std::collections::BTreeSet;
use std::ops::Range;

/// Numbers of transactions skipped at a restart: more than could have been under way without a trace.
const TRANSACTION_GAP: u64 = 1 << 20;

/// What the mount found on the shard's units.
#[derive(Clone, Copy)]
pub struct OnFlash<'a> {
    /// Blocks.
    pub found: &'a [Found],
    /// Superblocks of which nobody knows what block they are.
    pub damaged: &'a [DamagedSuperblock],
    /// What is done where the log has lost what was durable.
    pub on_log_loss: OnLogLoss,
}

/// What recovery does where the log has lost what was durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLogLoss {
    /// It refuses to go on.
    #[default]
    Refuse,
    /// It goes on behind the loss with what is whole; for a repair that is told to.
    Accept,
}

/// What a log has lost that was accepted to be lost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogLoss {
    /// Frames, by their sequence.
    pub frames: Vec<Range<u64>>,
    /// There was a log, and nothing is left of it.
    pub is_whole: bool,
    /// Transactions over several shards whose commit is not known.
    pub transactions: u64,
    /// Patches that no tree lists: an edit that is lost may have listed them.
    pub unlisted: u64,
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
    /// Patches among the orphans that no part of the log lists that could be read.
    pub unlisted: Vec<BlockId>,
    /// At the coordinator: the commits that its log tells of.
    pub commits: BTreeSet<u64>,
    /// Transactions with a part here, of whose commit only the coordinator's log tells.
    pub decided_elsewhere: Vec<u64>,
    /// The segment that announces the last one: nothing in it counts, and it stays until another segment does.
    pub announcer: Option<BlockId>,
    /// How the log ends, where it ends in a write that is not whole.
    pub torn: Option<String>,
    /// What was given up, where that was wanted.
    pub log_loss: LogLoss,
    /// Frames, but for the last one, that not all copies of the log have whole.
    pub uneven: BTreeSet<Position>,
    /// Units that were restored from an old image.
    pub stale_units: Vec<StaleUnit>,
}

impl Recovered {
    /// The segments of the log that are needed and that not all copies have whole.
    pub fn uneven_segments(&self, blocks: &BlockLayer) -> Vec<(u64, BlockId)> {
        let is_uneven = |(number, block): &&(u64, BlockId)| {
            blocks.is_degraded(*block)
                && (blocks.superblocks(*block).len() == 1
                    || self.uneven.iter().any(|at| at.segment == *number))
        };
        self.resume.segments.iter().filter(is_uneven).copied().collect()
    }
}

/// A shard that is to be recovered.
#[derive(Clone, Copy)]
pub struct Recovery<'a> {
    /// The shard.
    pub shard: ShardId,
    /// How the key space is cut.
    pub layout: &'a StoreLayout,
    /// The blocks on its units.
    pub blocks: &'a BlockLayer,
    /// What the mount found there.
    pub on_flash: OnFlash<'a>,
    /// Its expiry clock.
    pub clock: &'a ExpiryClock,
    /// The coordinator's decisions on transactions over several shards.
    pub decisions: &'a Decisions,
    /// Its memory.
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
struct Settled {
    /// Whether one without a commit was cut off, and all that followed.
    cut: bool,
    /// The last commit in the log.
    last_commit: Option<u64>,
    /// At the coordinator: the commits that its log records.
    commits: BTreeSet<u64>,
    decided_elsewhere: Vec<u64>,
}

/// Blocks that nothing refers to, as [`Recovered`] lists them, and those that something does.
struct Sorted {
    referred: BTreeSet<BlockId>,
    dead: Vec<BlockId>,
    orphans: Vec<BlockId>,
    unlisted: Vec<BlockId>,
    has_vain_segments: bool,
}

impl<'a> Recovery<'a> {
    /// Reads the log and the patches' metadata. Nothing is written: a recovery that fails can be repeated.
    pub async fn run(self) -> Result<Recovered> {
        let mut log = self.read_log().await?;
        self.check_end(&mut log)?;
        let settled = self.settle_transactions(&mut log).await?;
        let slices = self.build_trees(&mut log.replayable.replay).await?;
        let sorted = self.sort_blocks(&slices, &mut log)?;
        let ReadLog { reader, replayable, announced, loss, .. } = log;
        let Replayable { needed, mut replay, .. } = replayable;
        let torn = replay.torn.take();
        // The last frame may have been under way when the power went.
        let mut uneven = reader.uneven();
        uneven.retain(|at| Some(*at) < replay.last_frame);
        let stale_units = self.stale_units(&sorted, &uneven, &replay);
        Ok(Recovered {
            slices,
            resume: self.resume(&needed, &mut replay, sorted.has_vain_segments),
            next_transaction: replay
                .next_transaction
                .max(settled.last_commit.map_or(0, |last| last + 1))
                + TRANSACTION_GAP,
            cut: settled.cut,
            dead: sorted.dead,
            orphans: sorted.orphans,
            unlisted: sorted.unlisted,
            commits: settled.commits,
            decided_elsewhere: settled.decided_elsewhere,
            announcer: announced.map(|announced| announced.by),
            torn,
            log_loss: loss,
            uneven,
            stale_units,
        })
    }

    /// Whether a loss of durable frames is accepted.
    fn accepts_loss(&self) -> bool {
        self.on_flash.on_log_loss == OnLogLoss::Accept
    }

    /// Orders the segments and replays them from the first that is needed.
    async fn read_log(&self) -> Result<ReadLog<'a>> {
        let Recovery { shard, layout, on_flash: OnFlash { found, damaged, .. }, .. } = *self;
        let reader = LogReader::new(self.blocks.clone(), shard);
        let mut chain = match Chain::of(found, &reader).await {
            Err(StoreError::DataLoss(_)) if self.accepts_loss() => {
                reader.pass_losses();
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
        let replayable = match replay_log(layout, shard, &reader, &mut chain, self.clock).await {
            Err(StoreError::DataLoss(_)) if self.accepts_loss() => {
                reader.pass_losses();
                replay_log(layout, shard, &reader, &mut chain, self.clock).await?
            }
            replayed => replayed?,
        };
        loss.frames = reader.losses();
        Ok(ReadLog { reader, replayable, end, announced: chain.announced(), loss })
    }

    /// Makes sure that the log reaches as far as is known of it.
    fn check_end(&self, log: &mut ReadLog<'_>) -> Result<()> {
        let ReadLog { reader, replayable: Replayable { replay, .. }, end, announced, loss } = log;
        let next = replay.next_sequence();
        if let Some(Announced { segment, durable_before, .. }) = *announced
            && (segment > *end || durable_before > next)
        {
            if !self.accepts_loss() {
                let what = format!("it was begun and used, and is gone from frame {next} on");
                return Err(reader.damage(segment, &what));
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
                "shard {shard} has patches and no log that tells of them"
            )));
        }
        Ok(())
    }

    /// Cuts the log at the first transaction without a commit.
    async fn settle_transactions(&self, log: &mut ReadLog<'_>) -> Result<Settled> {
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
            replay.settle(&decided)
        };
        let decided_elsewhere = replay.decided_elsewhere();
        let commits = match self.shard == COORDINATOR {
            true => std::mem::take(&mut replay.commits),
            false => BTreeSet::new(),
        };
        Ok(Settled { cut, last_commit, commits, decided_elsewhere })
    }

    /// Loads the metadata of the patches, and tells the block layer which of its blocks are in use.
    async fn build_trees(&self, replay: &mut Replay<'_>) -> Result<Vec<Slice>> {
        self.blocks.reserve_ids(replay.next_block);
        replay.adopt_groups(self.blocks);
        let slices = replay.build(self.blocks, self.budget).await?;
        self.blocks.settle_groups(&patches_of(&slices));
        Ok(slices)
    }

    /// Sorts out the blocks that nothing refers to.
    fn sort_blocks(&self, slices: &[Slice], log: &mut ReadLog<'_>) -> Result<Sorted> {
        let Replayable { needed, dead, replay } = &log.replayable;
        let groups = self.blocks.groups();
        let grouped = groups.iter().flat_map(|group| group.blocks());
        let grouped = grouped.map(|block| BlockId(block.block));
        let segments = needed.iter().map(|segment| segment.block);
        let referred: BTreeSet<BlockId> =
            patches_of(slices).into_iter().chain(grouped).chain(segments).collect();
        let announcer = log.announced.map(|announced| announced.by);
        let is_unreferred =
            |found: &&Found| !referred.contains(&found.id) && Some(found.id) != announcer;
        let unreferred = self.on_flash.found.iter().filter(is_unreferred);
        let was_removed = |found: &Found| replay.known.removed.contains(&found.id.0);
        let is_patch = |found: &Found| matches!(found.kind, BlockKind::Patch { .. });
        if !log.loss.frames.is_empty() {
            let is_unlisted = |found: &&Found| is_patch(found) && !was_removed(found);
            log.loss.unlisted = unreferred.clone().filter(is_unlisted).count() as u64;
            self.refuse_lost_edit(slices, &log.loss)?;
        }
        // Begun by a start that was cut off. Were they kept until the log has begun, many of them in
        // a row would leave it no room to begin in.
        let is_left_out = |segment: u64| !self.accepts_loss() && segment > log.end;
        let is_newly_dead = replay.newly_dead();
        let (dead, orphans): (Vec<&Found>, Vec<&Found>) = unreferred
            .filter(|found| !matches!(found.kind, BlockKind::User))
            .partition(|found| match found.kind {
                BlockKind::Log { segment, .. } => {
                    dead.iter().any(|dead| dead.contains(&segment)) || is_left_out(segment)
                }
                _ => {
                    let is_known = found.id.0 < replay.known.unlisted_from || was_removed(found);
                    is_known && !is_newly_dead(found.id.0)
                }
            });
        let is_unlisted = |found: &&Found| {
            is_patch(found) && found.id.0 >= replay.known.unlisted_from && !was_removed(found)
        };
        let unlisted = orphans.iter().copied().filter(is_unlisted).collect();
        let has_vain_segments =
            orphans.iter().any(|found| matches!(found.kind, BlockKind::Log { .. }));
        let ids = |blocks: Vec<&Found>| blocks.into_iter().map(|found| found.id).collect();
        Ok(Sorted {
            dead: ids(dead),
            orphans: ids(orphans),
            unlisted: ids(unlisted),
            referred,
            has_vain_segments,
        })
    }

    /// A log that has lost frames may have lost the edit that replaced patches.
    fn refuse_lost_edit(&self, slices: &[Slice], loss: &LogLoss) -> Result<()> {
        let is_missing = |id: &BlockId| !self.blocks.contains(*id);
        if loss.unlisted == 0 || !patches_of(slices).iter().any(is_missing) {
            return Ok(());
        }
        let shard = self.shard;
        Err(StoreError::DataLoss(format!(
            "the log of shard {shard} has lost a change of a tree: patches that it lists are gone, and others that nothing lists are there"
        )))
    }

    /// Where the log goes on.
    fn resume(
        &self,
        needed: &[Segment],
        replay: &mut Replay<'_>,
        follows_vain_starts: bool,
    ) -> Resume {
        let last_segment = self.on_flash.found.iter().filter_map(|found| match found.kind {
            BlockKind::Log { segment, .. } => Some(segment),
            _ => None,
        });
        Resume {
            segments: needed.iter().map(|segment| (segment.number, segment.block)).collect(),
            last_segment: last_segment.max().unwrap_or(0),
            next_frame: replay.end.next_frame.unwrap_or(0),
            last_frame: replay.end.last_frame.take(),
            seq: replay.last_seq.max(1),
            follows_vain_starts,
        }
    }

    /// The units that were restored from an old image, where a block in use lacks a copy.
    fn stale_units(
        &self,
        sorted: &Sorted,
        uneven: &BTreeSet<Position>,
        replay: &Replay<'_>,
    ) -> Vec<StaleUnit> {
        let lacks_copies =
            !uneven.is_empty() || sorted.referred.iter().any(|id| self.blocks.is_degraded(*id));
        if lacks_copies { self.blocks.stale_units(&replay.units) } else { Vec::new() }
    }
}

fn patches_of(slices: &[Slice]) -> BTreeSet<BlockId> {
    slices
        .iter()
        .flat_map(|slice| slice.tree().patches().map(|(.., p)| p.id()).collect::<Vec<_>>())
        .collect()
}

/// A log that was replayed.
struct Replayable<'a> {
    /// The segments from the first that is needed to the last with events.
    needed: Vec<Segment>,
    /// Numbers of segments that are not needed, whatever can still be read the next time.
    dead: Vec<Range<u64>>,
    replay: Replay<'a>,
}

/// Replays the log from the first segment that is needed.
async fn replay_log<'a>(
    layout: &'a StoreLayout,
    shard: ShardId,
    reader: &LogReader,
    chain: &mut Chain,
    clock: &ExpiryClock,
) -> Result<Replayable<'a>> {
    let (mut limit, mut missing, mut looked_again) = (None, None, false);
    let mut newer = None;
    loop {
        let is_of_the_log = newer.is_some();
        let evidence = match (newer.take(), limit) {
            (Some(newer), _) => Some(newer),
            (None, Some(None)) => None,
            (None, limit) => newest_evidence(chain, limit.flatten(), reader).await?,
        };
        let needed = match evidence {
            Some(Evidence { log_start, .. }) => chain.from_number(log_start, reader).await?,
            None if missing.is_some() => None,
            None => Some(chain.whole(reader).await?),
        };
        let Some(needed) = needed.map(<[Segment]>::to_vec) else {
            match (evidence, missing.take()) {
                // The replay has come to the frame that names it.
                (Some(Evidence { log_start, .. }), _) if is_of_the_log => {
                    return Err(reader.damage(log_start, "it is needed, and missing"));
                }
                // It may have been lost before it was flushed, with all that was said in later ones: what is before it goes
                // on with frames that tell whether it was durable.
                (Some(Evidence { log_start, .. }), told) => {
                    limit = Some(Some(Position { segment: log_start, page: 0 }.before()));
                    missing = told.or(Some(log_start));
                }
                (None, Some(_)) if !looked_again => {
                    looked_again = true;
                    reader.read_anew();
                    limit = None;
                }
                (None, start) => {
                    let found = chain.first_number();
                    let what = format!("it is missing; the first one found is {found}");
                    return Err(reader.damage(start.unwrap_or(0), &what));
                }
            }
            continue;
        };
        let (mut replay, end) = replay_surely(layout, shard, reader, &needed, clock).await?;
        if let End::Corrupt { at, lost } = &end {
            let what = format!(
                "frame {} was durable and is damaged or missing, and so may be those up to {}",
                lost.start,
                lost.end.saturating_sub(1)
            );
            return Err(reader.damage(at.segment, &what));
        }
        if let Some(behind) = replay.behind {
            reader.refuse_lost_page(&needed, behind).await?;
        }
        let used = |needed: Vec<Segment>, replay: &Replay<'_>| {
            let beyond = |segment: &Segment| Some(segment.number) > replay.end.segment;
            needed.split(beyond).next().unwrap_or_default().to_vec()
        };
        let Some(evidence) = evidence else {
            let dead = passed_over(&needed, &replay);
            return Ok(Replayable { needed: used(needed, &replay), dead, replay });
        };
        // One that was misread when the start was looked for. What it gives up must not be replayed: what an earlier recovery
        // has cut off may be there, and would cut off all that has come behind it since.
        newer = replay.evidence.filter(|newer| newer.log_start > evidence.log_start);
        if newer.is_some() {
            continue;
        }
        if replay.last_frame >= Some(evidence.at) {
            if !reader.losses().is_empty() && replay.started {
                // Until all is in patches, the next recovery has to start where this one did.
                replay.first_checkpoint = Some(evidence.log_start);
            }
            if replay.first_checkpoint != Some(evidence.log_start) {
                return Err(reader.damage(evidence.log_start, "its checkpoint is damaged"));
            }
            replay.torn = describe_torn(&end);
            let sure = match replay.last_frame {
                // It may be gone the next time, and what came before it counts.
                Some(last) if last == evidence.at => {
                    newest_evidence(chain, Some(last.before()), reader).await?
                }
                _ => Some(evidence),
            };
            let mut dead = passed_over(&needed, &replay);
            dead.extend(sure.map(|evidence| 0..evidence.log_start));
            return Ok(Replayable { needed: used(needed, &replay), dead, replay });
        }
        // The frame that named the start is behind a place where the log was torn: it is no part of the log.
        limit = Some(replay.last_frame);
    }
}

/// Numbers of segments that the log does not go through: they were begun by starts that came to nothing, and a later one, which
/// counts for good, goes on from an earlier one.
fn passed_over(needed: &[Segment], replay: &Replay<'_>) -> Vec<Range<u64>> {
    let counts = |segment: &&Segment| replay.surely_counting.contains(&segment.number);
    needed.iter().filter(counts).map(|segment| segment.after + 1..segment.number).collect()
}

/// Replays a run of segments, once more where they may go on: a read can go wrong once.
async fn replay_surely<'a>(
    layout: &'a StoreLayout,
    shard: ShardId,
    reader: &LogReader,
    needed: &[Segment],
    clock: &ExpiryClock,
) -> Result<(Replay<'a>, End)> {
    let read = async || {
        let mut replay = Replay::new(layout, shard);
        let end = reader.scan(needed, |frame| replay.take_frame(frame, reader, clock)).await?;
        Ok::<_, StoreError>((replay, end))
    };
    let first = read().await?;
    if !is_doubtful(&first, needed, reader).await? {
        return Ok(first);
    }
    reader.read_anew();
    let second = read().await?;
    let (sequence, before) = (second.0.next_sequence(), first.0.next_sequence());
    // Who has read once that something durable follows has seen it.
    let knows_more = sequence == before && matches!(second.1, End::Corrupt { .. });
    Ok(if sequence > before || knows_more { second } else { first })
}

/// Whether the log may go on where frames were found to stop.
async fn is_doubtful(
    (replay, end): &(Replay<'_>, End),
    needed: &[Segment],
    reader: &LogReader,
) -> Result<bool> {
    match (end, replay.behind) {
        (End::Corrupt { .. } | End::Torn { .. }, _) => Ok(true),
        (End::Clean { .. }, Some(at)) => reader.goes_on(needed, at, replay.next_sequence()).await,
        (End::Clean { .. }, None) => Ok(false),
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

#[cfg(test)]
pub(super) mod tests;
