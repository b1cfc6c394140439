//! Scrub of the log: reads the log as recovery would, while the writer continues.

use super::Log;
use super::chain::Chain;
use super::reader::LogReader;
use crate::error::{Result, StoreError};
use crate::format::log::{End, Position};
use softflash_blocks::{BlockKind, Found};

/// The written part of the log at one point in time.
struct Extent {
    segments: Vec<Found>,
    /// The page after its end.
    end: Position,
    /// The sequence of the next frame.
    next_frame: u64,
}

impl Log {
    /// Reads every copy of the written log. Returns whether all frames were found. Blocks that are
    /// hard to read, or that differ between copies, are reported to the block layer.
    ///
    /// # Errors
    /// Errors of the device other than lost data.
    pub async fn is_whole(&self) -> Result<bool> {
        let extent = self.extent();
        let reader = LogReader::for_scrub(self.inner.blocks.clone(), self.inner.shard, extent.end);
        let has_all = match frame_after(&reader, &extent).await {
            Err(StoreError::DataLoss(_)) => false,
            next_frame => next_frame? == Some(extent.next_frame),
        };
        // Segments that were deleted during the scrub are not lost.
        let remaining = self.segments();
        Ok(has_all || !extent.segments.iter().all(|segment| remaining.contains(&segment.id)))
    }

    fn extent(&self) -> Extent {
        let position = self.inner.segments.position.borrow();
        let mut after = 0;
        let segments = position.segments.iter().map(|&(segment, id)| {
            let kind = BlockKind::Log { segment, after };
            after = segment;
            Found { id, kind }
        });
        Extent {
            segments: segments.collect(),
            end: Position { segment: position.segment, page: position.completed_pages },
            next_frame: position.next_frame,
        }
    }
}

/// The sequence after the last frame found; `None` where durable frames are missing.
async fn frame_after(reader: &LogReader, extent: &Extent) -> Result<Option<u64>> {
    let mut chain = Chain::of(&extent.segments, reader).await?;
    let segments = chain.whole(reader).await?;
    Ok(match reader.scan(segments, |_| Ok(())).await? {
        End::Clean { next_sequence, .. } | End::Torn { next_sequence, .. } => next_sequence,
        End::Corrupt { .. } => None,
    })
}
