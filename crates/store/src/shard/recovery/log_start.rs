//! The search for the start of the log, and the replay from there.
//!
//! The start is the first segment that recovery needs. Checkpoints and edits record it, and the
//! newest record counts, if it is part of the log: only the replay from a start shows whether the
//! log reaches the record of it. So the search takes a record, replays, and ends or takes another
//! one. It is in one of two states ([`Source`]):
//!
//! | the record is | what is found | what follows |
//! |---|---|---|
//! | `Newest` in some frames | no record, and no start was missing | all segments are replayed: the end |
//! | | no record, and a start was missing | all frames are read again, once; then the log is damaged |
//! | | its segment is missing | `Newest` in the frames before that segment |
//! | `NamedInLog` | its segment is missing | the log is damaged |
//! | either | the replay reads a record of a later start | `NamedInLog` with that record |
//! | | the replay ends before the record | `Newest` in the frames that were replayed |
//! | | the replay reaches the record | the end |

use super::replay::Replay;
use crate::error::{Result, StoreError};
use crate::format::log::{End, Position};
use crate::layout::StoreLayout;
use crate::shard::clock::ExpiryClock;
use crate::shard::log::chain::{Chain, Evidence, Segment, newest_evidence};
use crate::shard::log::reader::LogReader;
use softflash_base::ShardId;
use std::ops::Range;

/// A log that was replayed.
pub(super) struct Replayable<'a> {
    /// The segments from the first needed one to the last one with events.
    pub(super) needed: Vec<Segment>,
    /// Numbers of segments that no later start needs, even if it can read fewer frames.
    pub(super) dead: Vec<Range<u64>>,
    pub(super) replay: Replay<'a>,
}

/// The frames in which the search looks for a record.
#[derive(Clone, Copy)]
enum Frames {
    /// All.
    All,
    /// Those up to this position.
    UpTo(Position),
    /// None is left.
    Exhausted,
}

/// The state of the search: where the record of the start comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The newest record in these frames, which may not be part of the log.
    Newest(Frames),
    /// A record that a replay has reached, so it is part of the log.
    NamedInLog(Evidence),
}

/// The search for the start of the log of a shard.
pub(super) struct StartSearch<'r, 'a> {
    layout: &'a StoreLayout,
    shard: ShardId,
    reader: &'r LogReader,
    chain: &'r mut Chain,
    clock: &'r ExpiryClock,
    source: Source,
    /// The first start that was found missing. The log is not replayed without a start then.
    missing: Option<u64>,
    /// All frames were read again after a start was missing.
    has_read_again: bool,
}

impl<'r, 'a> StartSearch<'r, 'a> {
    pub(super) fn new(
        layout: &'a StoreLayout,
        shard: ShardId,
        reader: &'r LogReader,
        chain: &'r mut Chain,
        clock: &'r ExpiryClock,
    ) -> StartSearch<'r, 'a> {
        let source = Source::Newest(Frames::All);
        let (missing, has_read_again) = (None, false);
        StartSearch { layout, shard, reader, chain, clock, source, missing, has_read_again }
    }

    /// Replays the log from the first needed segment.
    pub(super) async fn replay_log(mut self) -> Result<Replayable<'a>> {
        loop {
            let record = self.record().await?;
            let Some(needed) = self.segments_from(record).await? else {
                self.pass_over_missing(record)?;
                continue;
            };
            let (replay, end) = self.replay_from(&needed).await?;
            let Some(record) = record else {
                let dead = bypassed_segments(&needed, &replay);
                return Ok(Replayable { needed: with_events(needed, &replay), dead, replay });
            };
            if let Some(later) = replay.evidence.filter(|it| it.log_start > record.log_start) {
                self.start_later(later);
            } else if replay.last_frame < Some(record.at) {
                self.look_in_replayed(replay.last_frame);
            } else {
                return self.settle(record, needed, replay, &end).await;
            }
        }
    }

    /// The record of the start in this state; none where no frame has one.
    async fn record(&mut self) -> Result<Option<Evidence>> {
        let limit = match self.source {
            Source::NamedInLog(record) => return Ok(Some(record)),
            Source::Newest(Frames::Exhausted) => return Ok(None),
            Source::Newest(Frames::UpTo(limit)) => Some(limit),
            Source::Newest(Frames::All) => None,
        };
        newest_evidence(self.chain, limit, self.reader).await
    }

    /// The segments from the recorded start on, or all where no frame records one; nothing where
    /// the start is missing.
    async fn segments_from(&mut self, record: Option<Evidence>) -> Result<Option<Vec<Segment>>> {
        let segments = match record {
            Some(Evidence { log_start, .. }) => {
                self.chain.starting_at(log_start, self.reader).await?
            }
            None if self.missing.is_some() => None,
            None => Some(self.chain.whole(self.reader).await?),
        };
        Ok(segments.map(<[Segment]>::to_vec))
    }

    /// The start is missing: goes on without its record.
    fn pass_over_missing(&mut self, record: Option<Evidence>) -> Result<()> {
        match (record, self.source) {
            // The replay has reached the frame that names the start.
            (Some(Evidence { log_start, .. }), Source::NamedInLog(_)) => {
                Err(self.reader.damage(log_start, "it is needed and missing"))
            }
            // The start may have been lost before it was flushed, and with it all later frames. The
            // frames before it show whether it was durable.
            (Some(Evidence { log_start, .. }), Source::Newest(_)) => {
                self.missing.get_or_insert(log_start);
                let before = Position { segment: log_start, page: 0 }.before();
                self.source = Source::Newest(Frames::UpTo(before));
                Ok(())
            }
            (None, _) => self.read_again(),
        }
    }

    /// No record is left, and a start was missing: a read error that hides both may be transient.
    fn read_again(&mut self) -> Result<()> {
        let missing = self.missing.take();
        if self.has_read_again {
            let found = self.chain.first_number();
            let reason = format!("it is missing; the first segment found is {found}");
            return Err(self.reader.damage(missing.unwrap_or(0), &reason));
        }
        self.has_read_again = true;
        self.reader.clear_cache();
        self.source = Source::Newest(Frames::All);
        Ok(())
    }

    /// Replays these segments.
    ///
    /// # Errors
    /// [`StoreError::DataLoss`] if durable frames are lost.
    async fn replay_from(&self, needed: &[Segment]) -> Result<(Replay<'a>, End)> {
        let StartSearch { layout, shard, reader, clock, .. } = *self;
        let (replay, end) = replay_with_retry(layout, shard, reader, needed, clock).await?;
        if let End::Corrupt { at, lost } = &end {
            let reason = format!(
                "frame {} was durable and is damaged or missing, as may be the frames up to {}",
                lost.start,
                lost.end.saturating_sub(1)
            );
            return Err(reader.damage(at.segment, &reason));
        }
        if let Some(position) = replay.next_position {
            reader.refuse_lost_page(needed, position).await?;
        }
        Ok((replay, end))
    }

    /// A record was misread in the search for the start: the log names a later one. The segments
    /// before that one must not be replayed: they may hold events that an earlier recovery cut off,
    /// at which this replay would cut all later events.
    fn start_later(&mut self, later: Evidence) {
        self.source = Source::NamedInLog(later);
    }

    /// The frame with the record lies after a torn write, so it is not part of the log.
    fn look_in_replayed(&mut self, last_frame: Option<Position>) {
        self.source = Source::Newest(last_frame.map_or(Frames::Exhausted, Frames::UpTo));
    }

    /// The replay has reached the record of its start: the log begins there.
    async fn settle(
        self,
        record: Evidence,
        needed: Vec<Segment>,
        mut replay: Replay<'a>,
        end: &End,
    ) -> Result<Replayable<'a>> {
        if !self.reader.losses().is_empty() && replay.started {
            // Until all events are in patches, the next recovery must start at the same segment.
            replay.first_checkpoint = Some(record.log_start);
        }
        if replay.first_checkpoint != Some(record.log_start) {
            return Err(self.reader.damage(record.log_start, "its checkpoint is damaged"));
        }
        replay.torn = describe_torn(end);
        let confirmed = match replay.last_frame {
            // The last frame may be unreadable in the next start, which then uses the record before
            // it.
            Some(last) if last == record.at => {
                newest_evidence(self.chain, Some(last.before()), self.reader).await?
            }
            _ => Some(record),
        };
        let mut dead = bypassed_segments(&needed, &replay);
        dead.extend(confirmed.map(|record| 0..record.log_start));
        Ok(Replayable { needed: with_events(needed, &replay), dead, replay })
    }
}

/// The segments up to the last one with events.
fn with_events(needed: Vec<Segment>, replay: &Replay<'_>) -> Vec<Segment> {
    let beyond = |segment: &Segment| Some(segment.number) > replay.end.segment;
    needed.split(beyond).next().unwrap_or_default().to_vec()
}

/// Numbers of segments that the log bypasses: failed starts have written them, and a later valid
/// segment follows an earlier one.
fn bypassed_segments(needed: &[Segment], replay: &Replay<'_>) -> Vec<Range<u64>> {
    let is_confirmed = |segment: &&Segment| replay.confirmed_segments.contains(&segment.number);
    needed.iter().filter(is_confirmed).map(|segment| segment.after + 1..segment.number).collect()
}

/// Replays consecutive segments. Replays them again if the log may continue after the end found: a
/// read error may be transient.
async fn replay_with_retry<'a>(
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
    if !may_continue(&first, needed, reader).await? {
        return Ok(first);
    }
    reader.clear_cache();
    let second = read().await?;
    let (sequence, before) = (second.0.next_sequence(), first.0.next_sequence());
    // Proof of a later durable frame counts even if only one of the reads has found it.
    let proves_loss = sequence == before && matches!(second.1, End::Corrupt { .. });
    Ok(if sequence > before || proves_loss { second } else { first })
}

/// Whether the log may continue after the end found.
async fn may_continue(
    (replay, end): &(Replay<'_>, End),
    needed: &[Segment],
    reader: &LogReader,
) -> Result<bool> {
    match (end, replay.next_position) {
        (End::Corrupt { .. } | End::Torn { .. }, _) => Ok(true),
        (End::Clean { .. }, Some(at)) => {
            reader.continues_at(needed, at, replay.next_sequence()).await
        }
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
mod tests;
