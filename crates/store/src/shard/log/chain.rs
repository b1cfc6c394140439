//! The segments of a log as they are found on the flash, and where in them recovery has to start.

use super::reader::LogReader;
use crate::block_layer::{BlockId, BlockKind, Found};
use crate::error::Result;
use crate::format::FormatError;
use crate::format::log::{EventStream, Frame, Position, Replayed};

/// A segment that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its place in the log.
    pub number: u64,
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
}

/// The segments of a log without a gap, up to the last, in order.
///
/// Segments before a gap were given back and not erased yet. Of two with one number the one with the later block
/// counts: a recovery that did not find the first has written it.
///
/// # Errors
/// Those of the reader.
pub async fn chain_of(found: &[Found], reader: &LogReader) -> Result<Vec<Segment>> {
    let mut segments: Vec<Segment> = found
        .iter()
        .filter_map(|found| match found.kind {
            BlockKind::Log { segment } => {
                Some(Segment { number: segment, block: found.id, superseded_from: None })
            }
            _ => None,
        })
        .collect();
    segments.sort_unstable_by_key(|segment| (segment.number, std::cmp::Reverse(segment.block)));
    segments.dedup_by_key(|segment| segment.number);
    let adjoin = |pair: &[Segment]| matches!(pair, [a, b] if a.number + 1 == b.number);
    let start = segments.windows(2).rposition(|pair| !adjoin(pair)).map_or(0, |gap| gap + 1);
    let mut chain = segments.split_off(start);
    let mut lowest: Option<u64> = None;
    for segment in chain.iter_mut().rev() {
        segment.superseded_from = lowest;
        let first = reader.first_sequence(segment).await?;
        lowest = [lowest, first].into_iter().flatten().min();
    }
    Ok(chain)
}

/// The newest evidence of where the log starts, in frames not behind `limit`.
///
/// # Errors
/// Those of the reader.
pub async fn newest_evidence(
    chain: &[Segment],
    limit: Option<Position>,
    reader: &LogReader,
) -> Result<Option<Evidence>> {
    for last in (0..chain.len()).rev() {
        let alone = evidence_in(chain.get(last..=last), limit, reader).await?;
        // An event that starts in the segment before is seen only together with it.
        let joined = match last.checked_sub(1) {
            Some(before) => evidence_in(chain.get(before..=last), limit, reader).await?,
            None => None,
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
    segments: Option<&[Segment]>,
    limit: Option<Position>,
    reader: &LogReader,
) -> Result<Option<Evidence>> {
    let (mut stream, mut newest) = (EventStream::default(), None);
    let note = |Frame { at, header, payload }: Frame| {
        if limit.is_some_and(|limit| at > limit) {
            return Ok(());
        }
        let noted = stream.feed(&header, payload, |event| {
            let log_start = match event {
                Replayed::Checkpoint(checkpoint) => checkpoint.log_start,
                Replayed::Edit(edit) => edit.log_start,
                Replayed::Batch { .. } | Replayed::Commit(_) => return Ok(()),
            };
            newest = Some(Evidence { log_start, at });
            Ok::<_, FormatError>(())
        });
        noted.map_err(|error| reader.refuse(error))
    };
    reader.scan(segments.unwrap_or_default(), note).await?;
    Ok(newest)
}
