//! The chain of segments found on the flash, and the segment at which recovery starts.

use super::reader::LogReader;
use crate::error::Result;
use crate::format::FormatError;
use crate::format::log::frame::FrameRole;
use crate::format::log::{EventStream, Frame, Position, Replayed};
use softflash_blocks::{BlockId, BlockKind, Found};
use std::collections::BTreeMap;
use std::ops::Range;

/// A segment that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its number in the log.
    pub number: u64,
    /// The segment that it follows; 0 for none.
    pub after: u64,
    /// Its block.
    pub block: BlockId,
    /// The lowest first sequence of a later segment. Frames from that sequence on are not part of
    /// the log.
    pub superseded_from: Option<u64>,
}

/// A record of the first needed segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The segment.
    pub log_start: u64,
    /// The frame that completes the event with this record.
    pub at: Position,
    /// That frame is part of the stream, not of a segment's opening.
    in_stream: bool,
}

impl Evidence {
    /// The record in an event that a frame of this role at this position completes.
    pub fn of(event: &Replayed, at: Position, role: FrameRole) -> Option<Evidence> {
        let log_start = match event {
            Replayed::Checkpoint(checkpoint) => checkpoint.log_start,
            Replayed::Edit(edit) => edit.log_start,
            Replayed::Batch { .. }
            | Replayed::Commit(_)
            | Replayed::Units(_)
            | Replayed::Groups(_) => return None,
        };
        Some(Evidence { log_start, at, in_stream: role == FrameRole::Stream })
    }
}

/// The segments of a log in order: the last one, its predecessor, and so on.
///
/// The last segment is part of the log once an event, or a proof frame, follows its opening. Until
/// then no segment was deleted on its account, so recovery can ignore it. Recovery must ignore it:
/// an opening that a power cut interrupted may be readable in this start and unreadable in the next
/// one. The next segment then follows the predecessor of the ignored one. Of two segments with the
/// same number the one with the later block is valid: a recovery that did not find the first one
/// has written the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    segments: Vec<Segment>,
    /// The index from which on `superseded_from` is set. Most earlier segments are deleted and not
    /// erased yet; a large device has thousands of them, and recovery does not read them.
    bounded_from: usize,
    /// The lowest first sequence of the segments from that index on.
    lowest_sequence: Option<u64>,
    /// The announcement of a preallocated segment about the end of the log.
    announced: Option<Announced>,
}

/// The announcement in a segment that is not part of the log yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The block of the announcing segment.
    pub by: BlockId,
    /// The segment before the announcing one. Frames after its opening were durable.
    pub segment: u64,
    /// Frames below this sequence were durable.
    pub durable_before: u64,
}

impl Chain {
    /// Orders the segments that were found.
    ///
    /// # Errors
    /// Errors of the reader. [`StoreError::DataLoss`](crate::StoreError::DataLoss) where the last
    /// segment ends at a page that was once programmed completely.
    pub async fn of(found: &[Found], reader: &LogReader) -> Result<Chain> {
        let mut begun: BTreeMap<u64, Segment> = BTreeMap::new();
        for Found { id, kind } in found {
            let BlockKind::Log { segment: number, after } = *kind else { continue };
            let segment = Segment { number, after, block: *id, superseded_from: None };
            let kept = begun.entry(number).or_insert(segment);
            if kept.block < *id {
                *kept = segment;
            }
        }
        let (mut segments, mut announced) = (Vec::new(), None::<Announced>);
        let mut next = begun.keys().next_back().copied();
        // The earliest segment that a later one follows: those between are no part of the log. A
        // start has passed over them, and may have begun to erase them.
        let mut followed = u64::MAX;
        while let Some(segment) = next.and_then(|number| begun.remove(&number)) {
            if segments.is_empty()
                && let Some(stop) = reader.unproved_end(&segment).await?
            {
                if segment.number <= followed {
                    reader.refuse_lost_page(&[segment], stop).await?;
                }
                followed = followed.min(segment.after);
                // The first announcement found is the newest one.
                if announced.is_none()
                    && let Some(durable_before) = reader.announcement(&segment).await?
                {
                    let Segment { after, block, .. } = segment;
                    announced = Some(Announced { by: block, segment: after, durable_before });
                }
                next = begun.keys().next_back().copied();
                continue;
            }
            // The predecessor may be missing: never flushed, or deleted. The frames show whether it
            // is needed.
            next = begun.range(..=segment.after).next_back().map(|(number, _)| *number);
            segments.push(segment);
        }
        segments.reverse();
        Ok(Chain { bounded_from: segments.len(), segments, lowest_sequence: None, announced })
    }

    /// The announcement in a segment after the end of the log.
    pub fn announced(&self) -> Option<Announced> {
        self.announced
    }

    /// Whether the log has no segment: it was never started, or it is completely lost.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// The number of the last segment; 0 where there is none.
    pub fn last_number(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.number)
    }

    /// The number of the first segment that was found; 0 where there is none.
    pub fn first_number(&self) -> u64 {
        self.segments.first().map_or(0, |segment| segment.number)
    }

    /// The segments from this number on; `None` where that segment is missing.
    ///
    /// # Errors
    /// Errors of the reader.
    pub async fn starting_at(
        &mut self,
        number: u64,
        reader: &LogReader,
    ) -> Result<Option<&[Segment]>> {
        match self.segments.iter().position(|segment| segment.number == number) {
            Some(first) => self.bounded(first..self.segments.len(), reader).await.map(Some),
            None => Ok(None),
        }
    }

    /// All segments.
    ///
    /// # Errors
    /// Errors of the reader.
    pub async fn whole(&mut self, reader: &LogReader) -> Result<&[Segment]> {
        self.bounded(0..self.segments.len(), reader).await
    }

    /// A range of segments with `superseded_from` set.
    async fn bounded(&mut self, places: Range<usize>, reader: &LogReader) -> Result<&[Segment]> {
        while let Some(place) = self.bounded_from.checked_sub(1)
            && place >= places.start
        {
            if let Some(next) = self.segments.get(self.bounded_from) {
                let mut first = reader.first_sequence(next).await?;
                if first.is_none() {
                    reader.clear_cache();
                    first = reader.first_sequence(next).await?;
                }
                self.lowest_sequence = [self.lowest_sequence, first].into_iter().flatten().min();
            }
            if let Some(segment) = self.segments.get_mut(place) {
                segment.superseded_from = self.lowest_sequence;
            }
            self.bounded_from = place;
        }
        Ok(self.segments.get(places).unwrap_or_default())
    }
}

/// The newest record of the first needed segment, in frames up to `limit`.
///
/// # Errors
/// Errors of the reader.
pub async fn newest_evidence(
    chain: &mut Chain,
    limit: Option<Position>,
    reader: &LogReader,
) -> Result<Option<Evidence>> {
    for last in (0..chain.segments.len()).rev() {
        let segment = chain.bounded(last..last + 1, reader).await?;
        let alone = evidence_in(segment, limit, reader).await?;
        // An event that starts in the previous segment can be decoded only together with that
        // segment. It is older than all events that start in this segment.
        let is_newest = alone.is_some_and(|alone| alone.in_stream);
        let joined = match last.checked_sub(1) {
            Some(before) if !is_newest => {
                let both = chain.bounded(before..last + 1, reader).await?;
                evidence_in(both, limit, reader).await?
            }
            _ => None,
        };
        let newest = [alone, joined].into_iter().flatten().max_by_key(|evidence| evidence.at);
        // A segment without a complete checkpoint was started just before a crash.
        if newest.is_some() {
            return Ok(newest);
        }
    }
    Ok(None)
}

async fn evidence_in(
    segments: &[Segment],
    limit: Option<Position>,
    reader: &LogReader,
) -> Result<Option<Evidence>> {
    let (mut stream, mut newest) = (EventStream::default(), None);
    let note = |Frame { at, header, payload }: Frame| {
        if limit.is_some_and(|limit| at > limit) {
            return Ok(());
        }
        let noted = stream.feed(&header, payload, |event| {
            newest = Evidence::of(&event, at, header.role).or(newest);
            Ok::<_, FormatError>(())
        });
        noted.map_err(|error| reader.refuse(error))
    };
    reader.scan(segments, note).await?;
    Ok(newest)
}
