//! The segments of a log as they are found on the flash, and where in them recovery has to start.

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
    /// Its place in the log.
    pub number: u64,
    /// The segment that it goes on from; 0 for none.
    pub after: u64,
    /// Its block.
    pub block: BlockId,
    /// The lowest sequence with which a later segment starts: frames from there on are not part of the log.
    pub superseded_from: Option<u64>,
}

/// What the log says of the first segment that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The segment.
    pub log_start: u64,
    /// The frame that completes the event which says so.
    pub at: Position,
    /// That frame is part of the stream, not of a segment's opening.
    in_stream: bool,
}

impl Evidence {
    /// What an event says, which a frame of this role at this place completes.
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

/// The segments of a log, in order: the last one that was begun, the one that it goes on from, and so on.
///
/// The last segment is part of the log once there is an event, or a proof, behind its opening. Until then nothing was
/// given back for its sake, so that it can be left out; and it is left out, as an opening that a power cut struck may
/// be readable now and not the next time. The next segment goes on from where this one would have. Of two with one
/// number the one with the later block counts: a recovery that did not find the first has written it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    segments: Vec<Segment>,
    /// The place from which on it is known where segments are superseded. Most of those before it were given back and have not
    /// been erased yet; a large device has thousands of them, and nobody looks into them.
    settled_from: usize,
    /// The lowest sequence with which one of those from there on starts.
    lowest: Option<u64>,
    /// What is said of the end of the log by a segment that was allocated ahead of need.
    announced: Option<Announced>,
}

/// What a segment that does not count says of the log before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Announced {
    /// The block of the segment that says so.
    pub by: BlockId,
    /// The segment in front of that one; more was durable in it than its opening.
    pub segment: u64,
    /// Frames below this sequence were durable.
    pub durable_before: u64,
}

impl Chain {
    /// Puts the segments that were found in order.
    ///
    /// # Errors
    /// Those of the reader; [`StoreError::DataLoss`](crate::StoreError::DataLoss) where the last segment stops at
    /// a page that was whole once.
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
        while let Some(segment) = next.and_then(|number| begun.remove(&number)) {
            if segments.is_empty()
                && let Some(stop) = reader.stops_unproved(&segment).await?
            {
                reader.refuse_lost_page(&[segment], stop).await?;
                // Of several the first one met is the last one written.
                if announced.is_none()
                    && let Some(durable_before) = reader.announcement(&segment).await?
                {
                    let Segment { after, block, .. } = segment;
                    announced = Some(Announced { by: block, segment: after, durable_before });
                }
                next = begun.keys().next_back().copied();
                continue;
            }
            // Where that one is missing, as it was never flushed or has been given back, the frames tell whether it matters.
            next = begun.range(..=segment.after).next_back().map(|(number, _)| *number);
            segments.push(segment);
        }
        segments.reverse();
        Ok(Chain { settled_from: segments.len(), segments, lowest: None, announced })
    }

    /// What segments behind the last one that counts say of the end of the log.
    pub fn announced(&self) -> Option<Announced> {
        self.announced
    }

    /// Whether no segment counts: the log was never begun, or is lost as a whole.
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

    /// The segments from the one with this number on, if that is there.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn from_number(
        &mut self,
        number: u64,
        reader: &LogReader,
    ) -> Result<Option<&[Segment]>> {
        match self.segments.iter().position(|segment| segment.number == number) {
            Some(first) => self.settled(first..self.segments.len(), reader).await.map(Some),
            None => Ok(None),
        }
    }

    /// All segments.
    ///
    /// # Errors
    /// Those of the reader.
    pub async fn whole(&mut self, reader: &LogReader) -> Result<&[Segment]> {
        self.settled(0..self.segments.len(), reader).await
    }

    /// Some of the segments, ready to be read.
    async fn settled(&mut self, places: Range<usize>, reader: &LogReader) -> Result<&[Segment]> {
        while let Some(place) = self.settled_from.checked_sub(1)
            && place >= places.start
        {
            if let Some(behind) = self.segments.get(self.settled_from) {
                let mut first = reader.first_sequence(behind).await?;
                if first.is_none() {
                    reader.read_anew();
                    first = reader.first_sequence(behind).await?;
                }
                self.lowest = [self.lowest, first].into_iter().flatten().min();
            }
            if let Some(segment) = self.segments.get_mut(place) {
                segment.superseded_from = self.lowest;
            }
            self.settled_from = place;
        }
        Ok(self.segments.get(places).unwrap_or_default())
    }
}

/// The newest evidence of where the log starts, in frames not behind `limit`.
///
/// # Errors
/// Those of the reader.
pub async fn newest_evidence(
    chain: &mut Chain,
    limit: Option<Position>,
    reader: &LogReader,
) -> Result<Option<Evidence>> {
    for last in (0..chain.segments.len()).rev() {
        let segment = chain.settled(last..last + 1, reader).await?;
        let alone = evidence_in(segment, limit, reader).await?;
        // An event that starts in the segment before is seen only together with it, and is older than all that start in
        // this one.
        let is_newest = alone.is_some_and(|alone| alone.in_stream);
        let joined = match last.checked_sub(1) {
            Some(before) if !is_newest => {
                let both = chain.settled(before..last + 1, reader).await?;
                evidence_in(both, limit, reader).await?
            }
            _ => None,
        };
        let newest = [alone, joined].into_iter().flatten().max_by_key(|evidence| evidence.at);
        // A segment whose checkpoint is not whole was begun just before a crash.
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
