//! The patrol's look at the log: it is read as a recovery would read it, while it goes on.

use super::Log;
use super::chain::Chain;
use super::reader::LogReader;
use crate::error::{Result, StoreError};
use crate::format::log::{End, Position};
use softflash_blocks::{BlockKind, Found};

/// The log as far as it was written at some moment.
struct Extent {
    segments: Vec<Found>,
    /// The page behind it.
    end: Position,
    /// The sequence of the frame behind it.
    next_frame: u64,
}

impl Log {
    /// Reads all that is written, every copy of it. Says whether all frames were found; what is hard to read, or not whole in
    /// all copies, is noted in the block layer.
    ///
    /// # Errors
    /// The device's, lost data excepted.
    pub async fn is_whole(&self) -> Result<bool> {
        let extent = self.extent();
        let reader = LogReader::patrolling(self.inner.blocks.clone(), self.inner.shard, extent.end);
        let has_all = match frame_behind(&reader, &extent).await {
            Err(StoreError::DataLoss(_)) => false,
            next_frame => next_frame? == Some(extent.next_frame),
        };
        // What was given back meanwhile is missing by right.
        let kept = self.segments();
        Ok(has_all || !extent.segments.iter().all(|segment| kept.contains(&segment.id)))
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
            end: Position { segment: position.segment, page: position.landed_pages },
            next_frame: position.next_frame,
        }
    }
}

/// The sequence of the frame behind the last one that is found; `None` where some that were durable are missing.
async fn frame_behind(reader: &LogReader, extent: &Extent) -> Result<Option<u64>> {
    let mut chain = Chain::of(&extent.segments, reader).await?;
    let segments = chain.whole(reader).await?;
    Ok(match reader.scan(segments, |_| Ok(())).await? {
        End::Clean { next_sequence, .. } | End::Torn { next_sequence, .. } => next_sequence,
        End::Corrupt { .. } => None,
    })
}
