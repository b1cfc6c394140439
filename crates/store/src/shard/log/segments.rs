//! Rotation of log segments: ends one segment, starts the next, and writes its opening.
//!
//! No event in a segment is acknowledged before its successor is allocated, on another unit where
//! one has room. The first page of the successor is an *announcement*: the sequence up to which the
//! log is durable. So recovery detects the loss of the newest segment, alone or with its unit.
//!
//! An event that ends in a later segment than it begins is acknowledged when a frame of the last
//! one declares the earlier ones durable. The announcement alone is not enough: it may be on the
//! unit of an earlier segment, and be lost together with it.
//!
//! A log with copies needs neither; a log on a single unit, of which nothing else is left when the
//! unit is lost, needs no such frame.

use super::Inner;
use super::writer::{Draft, MAX_ATTEMPTS};
use crate::error::{Result, StoreError};
use crate::format::log::event::{self, Replayed};
use crate::format::log::frame::{self, FrameHeader, FrameRole};
use crate::options::Durability;
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockError, BlockKind, OpenBlock};
use softflash_ftl::{FtlError, Hint};
use std::iter;
use std::time::Duration;

/// Attempts to allocate a segment on a full device, and the pause between them.
const SPACE_ATTEMPTS: usize = 500;
const SPACE_WAIT: Duration = Duration::from_millis(20);

/// Pages of an announcement: it has no payload.
const ANNOUNCEMENT_PAGES: u32 = 1;

/// The point in the stream at which a segment starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentStart {
    /// Before any event was appended.
    OfNewWriter,
    /// While events are pending, so that memory is ahead of the log.
    InStream,
}

impl Inner {
    /// Ends the current segment and starts the next one. Tries another block where the write of the
    /// checkpoint fails.
    pub(super) async fn start_segment(&self, kind: SegmentStart) -> Result<()> {
        for _ in 1..MAX_ATTEMPTS {
            let next_frame = self.segments.position.borrow().next_frame;
            match self.try_segment(kind).await {
                Err(StoreError::Flash(error)) => {
                    tracing::warn!(shard = self.shard.0, %error, "the opening of a log segment could not be written; trying another block");
                    self.discard_segment(next_frame);
                }
                tried => return tried,
            }
        }
        self.try_segment(kind).await
    }

    /// Discards the segment that was started last. Its number and its frame sequences are used
    /// again, because an edit that is not written yet may name the segment as the first needed one.
    fn discard_segment(&self, next_frame: u64) {
        let mut position = self.segments.position.borrow_mut();
        position.open = None;
        position.next_page = u32::MAX;
        position.completed_pages = u32::MAX;
        if !planted::bug(Bug::FrameNumbersKept) {
            position.next_frame = next_frame;
        }
        if let Some((number, block)) = position.segments.pop_back() {
            position.segment = number.saturating_sub(1);
            self.blocks.delete(block);
        }
    }

    /// Starts a segment with a checkpoint.
    async fn try_segment(&self, kind: SegmentStart) -> Result<()> {
        let successor = self.segments.position.borrow_mut().successor.take();
        let (block, pages) = match successor {
            Some(block) => (block, ANNOUNCEMENT_PAGES),
            None => (self.open_block(kind).await?, 0),
        };
        {
            let mut position = self.segments.position.borrow_mut();
            if let Some(full) = position.open.take() {
                full.seal();
            }
            position.open_word_lines.leave_segment();
            position.segment += 1;
            position.next_page = pages;
            position.completed_pages = pages;
            position.began_at = position.next_frame;
            let entry = (position.segment, block.id());
            position.segments.push_back(entry);
            position.open = Some(block);
        }
        let checkpoint = self.make_checkpoint(kind)?;
        let longest = self.frame_bytes() - frame::HEADER_BYTES;
        let repeated = self.segments.recovered_frame.borrow().clone();
        let copy = repeated.iter().map(|frame| Draft {
            role: FrameRole::Copy,
            payload: &frame.payload,
            first_event: frame.header.first_event,
            sequence: Some(frame.header.sequence),
            durable: false,
        });
        let roles = iter::once(FrameRole::Opening).chain(iter::repeat(FrameRole::Checkpoint));
        let opening = checkpoint.chunks(longest).zip(roles).map(|(payload, role)| Draft {
            role,
            payload,
            first_event: u32::MAX,
            sequence: None,
            durable: false,
        });
        let mut drafts: Vec<Draft<'_>> = copy.chain(opening).collect();
        let durable = self.durability == Durability::Flash;
        let alone = drafts.len() == 1;
        drafts.iter_mut().for_each(|draft| draft.durable = durable && alone);
        for draft in drafts {
            Box::pin(self.write_frame(draft)).await?;
        }
        {
            let mut position = self.segments.position.borrow_mut();
            position.opened_at = position.next_frame;
        }
        self.progress.rotated.notify_one();
        if durable && !alone { self.flush().await } else { Ok(()) }
    }

    fn make_checkpoint(&self, kind: SegmentStart) -> Result<Bytes> {
        self.unwritten.rolling_over.set(kind == SegmentStart::InStream);
        let checkpoint = match self.checkpoint.borrow().as_ref() {
            Some(make) => make(),
            None => Vec::new(),
        };
        self.unwritten.rolling_over.set(false);
        let checkpoint = Bytes::from(checkpoint);
        if kind == SegmentStart::OfNewWriter && !checkpoint.is_empty() {
            // No event is pending: the checkpoint may name any start, also its own segment.
            let body = checkpoint.slice(event::LENGTH_BYTES.min(checkpoint.len())..);
            let made = event::decode(&body).map_err(|error| {
                StoreError::LogFailed(format!("the checkpoint cannot be read back: {error}"))
            })?;
            if let Replayed::Checkpoint(checkpoint) = made {
                self.unwritten.recorded_start.set(checkpoint.log_start);
            }
        }
        Ok(checkpoint)
    }

    /// Records on two units that the frames written are durable, before they are acknowledged.
    pub(super) async fn declare_durable(&self) -> Result<()> {
        if self.blocks.keeps_log_copies() {
            return Ok(());
        }
        if self.segment_is_full() {
            // The declaration of the earlier segments goes to the successor, if there is one.
            self.announce().await?;
        }
        self.declare_earlier_segments().await?;
        self.announce().await
    }

    /// Declares the frames of earlier segments durable in the current one, if no frame of it does.
    async fn declare_earlier_segments(&self) -> Result<()> {
        if self.blocks.log_flash().units().len() == 1 {
            return Ok(());
        }
        {
            let mut position = self.segments.position.borrow_mut();
            let programmed = position.next_page;
            let durable_before = position.open_word_lines.settle(programmed).next_frame;
            let are_declared = position.durable_frames >= position.began_at;
            if are_declared || durable_before <= position.durable_frames {
                return Ok(());
            }
            // A device that is too full for a successor acknowledges without a declaration.
            let has_room = position.next_page < self.segment_pages();
            if !has_room && position.successor.is_none() || planted::bug(Bug::SpanUndeclared) {
                return Ok(());
            }
            position.durable_frames = durable_before;
        }
        self.write(&[], &[]).await?;
        self.note_reached(self.progress.written_seq.get());
        self.close_word_lines().await?;
        match self.durability {
            Durability::Flash => Ok(()),
            Durability::Interval(_) => self.flush().await,
        }
    }

    /// Announces the current segment if it is not announced: a frame after its opening is durable
    /// and about to be acknowledged.
    async fn announce(&self) -> Result<()> {
        if planted::bug(Bug::SegmentUnannounced) {
            return Ok(());
        }
        let durable_before = {
            let mut position = self.segments.position.borrow_mut();
            let programmed = position.next_page;
            let durable_before = position.open_word_lines.settle(programmed).next_frame;
            if position.successor.is_some() || durable_before <= position.opened_at {
                return Ok(());
            }
            durable_before
        };
        let mut last = String::new();
        for _ in 0..MAX_ATTEMPTS {
            let successor = match self.open_successor() {
                // The device is full. Frames that are acknowledged without an announcement are lost
                // undetected only if this whole segment is lost.
                Err(StoreError::OutOfSpace | StoreError::WornOut { .. }) => return Ok(()),
                opened => opened?,
            };
            match self.write_announcement(&successor, durable_before).await {
                Ok(()) => {
                    self.segments.position.borrow_mut().successor = Some(successor);
                    return Ok(());
                }
                Err(error) => {
                    tracing::warn!(shard = self.shard.0, %error, "a preallocated log segment could not be announced; trying another block");
                    last = error.to_string();
                    self.blocks.delete(successor.id());
                }
            }
        }
        Err(StoreError::DataLoss(format!(
            "the announcement of a log segment failed on {MAX_ATTEMPTS} blocks, the last time with: {last}"
        )))
    }

    /// Allocates the segment after the current one.
    fn open_successor(&self) -> Result<OpenBlock> {
        let current = self.segments.position.borrow().segments.back().map(|(_, block)| *block);
        let id = self.blocks.new_id();
        Ok(self.blocks.open_avoiding(id, self.next_kind(), Hint::LOG, current)?)
    }

    async fn write_announcement(
        &self,
        successor: &OpenBlock,
        durable_before: u64,
    ) -> Result<(), FtlError> {
        let header = {
            let position = self.segments.position.borrow();
            FrameHeader {
                shard: self.shard.0,
                role: FrameRole::Announcement,
                payload_len: 0,
                segment: position.segment + 1,
                sequence: position.next_frame,
                durable_before,
                clock_ms: self.progress.written_clock_ms.get(),
                first_event: u32::MAX,
            }
        };
        let frame = self.sealed(&header, &[], successor.id(), 0);
        match successor.append(frame, true, Hint::LOG) {
            Err((error, _)) => Err(error),
            Ok((_, outcome)) => outcome.await.0,
        }
    }

    /// The block kind of the segment after the current one.
    fn next_kind(&self) -> BlockKind {
        let position = self.segments.position.borrow();
        let after = position.segments.back().map_or(0, |(number, _)| *number);
        BlockKind::Log { segment: position.segment + 1, after }
    }

    /// Opens the block of a segment that was not announced. On a full device waits for space,
    /// unless the writer is new: nothing frees space before the log has begun.
    async fn open_block(&self, kind: SegmentStart) -> Result<OpenBlock> {
        let block_kind = self.next_kind();
        let attempts = if kind == SegmentStart::OfNewWriter { 1 } else { SPACE_ATTEMPTS };
        for _ in 0..attempts {
            let id = self.blocks.new_id();
            match self.blocks.open(id, block_kind, Hint::LOG) {
                Err(BlockError::OutOfSpace) => {
                    // Compaction frees space; it works on reserved blocks.
                    self.runtime.sleep_until(self.runtime.now() + SPACE_WAIT).await;
                }
                opened => return Ok(opened?),
            }
        }
        Err(self.blocks.lack_of_room_for_log().into())
    }
}
