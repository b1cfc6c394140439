//! The task that writes the log: takes the pending events, writes them as frames, and flushes once
//! for all of them.

use super::Inner;
use super::open_word_lines::Reach;
use super::segments::SegmentStart;
use crate::error::{Result, StoreError};
use crate::format::log::event::{self, Unfilled};
use crate::format::log::frame::{self, FrameHeader, FrameRole};
use crate::options::Durability;
use futures_util::future::select;
use softflash_base::cast::saturating_u32;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time};
use softflash_blocks::{BlockId, BlockLayer, OpenBlock};
use softflash_ftl::{FtlError, Hint};
use std::pin::pin;
use std::time::Duration;

/// The longest frame, header included.
const FRAME_BYTES: usize = frame::MAX_FRAME_BYTES;
/// With interval durability, pending bytes that are written without further delay.
pub(super) const GATHER_BYTES: usize = 256 << 10;
/// With interval durability, the longest time that events wait in memory for more events.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// The longest time without a proof frame after the last frame. Without one, damage to the last
/// frame looks like a torn write.
const PROOF_TIME: Duration = Duration::from_secs(1);
/// Blocks tried for one frame before the log fails. Where one erase in forty fails, four in a row
/// fail for one segment in 40^4 = 2.6 million, eight in a row for one in 6.6 * 10^12.
pub(super) const MAX_ATTEMPTS: usize = 8;
/// Consecutive segments that are abandoned because a copy failed; the next one is used with a
/// single copy.
const MAX_ABANDONED_SEGMENTS: usize = 4;

/// The state of the last frames of the log.
#[derive(Default)]
struct Tail {
    /// The time of the first frame that may not be durable.
    unsynced_since: Option<Time>,
    /// The time of the last frame with events, if no later frame proves its durability.
    unproved_since: Option<Time>,
}

impl Tail {
    /// The time at which an empty frame is due as proof of the durability of earlier frames.
    fn proof_due(&self) -> Option<Time> {
        self.unproved_since
            .filter(|_| self.unsynced_since.is_none())
            .map(|since| since + PROOF_TIME)
    }

    /// A frame was written, with events or without.
    fn note_written(&mut self, with_events: bool, now: Time) {
        if with_events {
            self.unproved_since = Some(now);
        } else if self.unsynced_since.is_none() {
            self.unproved_since = None;
        }
        if planted::bug(Bug::SyncPostponed) {
            self.unsynced_since = None;
        }
        self.unsynced_since.get_or_insert(now);
    }
}

/// A frame to be written.
#[derive(Clone, Copy)]
pub(super) struct Draft<'a> {
    pub(super) role: FrameRole,
    pub(super) payload: &'a [u8],
    pub(super) first_event: u32,
    /// Its sequence, if not the next one.
    pub(super) sequence: Option<u64>,
    /// It is durable when the write completes.
    pub(super) durable: bool,
}

impl Inner {
    pub(super) async fn write_forever(&self) {
        if let Err(error) = self.write_until_closed().await {
            tracing::error!(shard = self.shard.0, %error, "the log has failed");
            let error = match error {
                // A restart does not help.
                StoreError::WornOut { .. } => error,
                other => StoreError::LogFailed(other.to_string()),
            };
            *self.progress.failure.borrow_mut() = Some(error);
        }
        self.progress.closed.set(true);
        self.progress.changed.notify_all();
    }

    async fn write_until_closed(&self) -> Result<()> {
        // The new segment records that all recovered frames are durable but the last one, which it
        // repeats. The opener has flushed them.
        self.start_segment(SegmentStart::OfNewWriter).await?;
        self.segments.recovered_frame.take();
        self.note_reached(0);
        self.close_word_lines().await?;
        self.flush().await?;
        self.note_durable();
        // A proof frame: recovery ignores a segment in which no frame follows the opening.
        self.write(&[], &[]).await?;
        self.note_reached(self.progress.written_seq.get());
        if self.segments.follows_failed_starts {
            // A second frame makes the proof durable even if the last frame is lost. So the next
            // start need not keep the segments of failed starts; many of these would leave the log
            // no space.
            self.write(&[], &[]).await?;
        }
        self.close_word_lines().await?;
        self.flush().await?;
        self.declare_durable().await?;
        self.note_durable();
        self.note_safe_clock();
        let mut tail = Tail::default();
        loop {
            self.gather(&tail).await;

            let rotation = self.requests.rotation.replace(false);
            if rotation {
                self.start_segment(SegmentStart::InStream).await?;
                // A proof frame, which also makes the clock in the opening valid.
                self.write(&[], &[]).await?;
                self.note_reached(self.progress.written_seq.get());
            }
            let (sync, closing) = (self.requests.sync.replace(false), self.requests.closing.get());
            let mut stream = self.unwritten.pending.replace(self.unwritten.spare.take());
            let unfilled = self.unwritten.unfilled.take();
            self.unwritten.unfilled_since.set(None);
            self.unwritten.writing_bytes.set(stream.len());
            let (seq, clock) =
                (self.unwritten.appended_seq.get(), self.requests.clock.replace(false));
            let starts = self.unwritten.appended_starts.take();
            self.fill_references(&mut stream, unfilled).await?;
            let now = self.runtime.now();
            if self.segment_is_full() {
                // A proof frame does not justify a new segment, least of all on a full device.
                tail.unproved_since = None;
            }
            let proof = !closing && tail.proof_due().is_some_and(|due| now >= due);
            if planted::bug(Bug::AcknowledgedBeforeWrite) {
                self.progress.durable_seq.set(seq);
                self.progress.changed.notify_all();
            }
            if !stream.is_empty() || clock || proof {
                self.write(&stream, &starts).await?;
                let late = planted::bug(Bug::AcknowledgedUnwritten);
                let seq = if late { self.unwritten.appended_seq.get() } else { seq };
                self.progress.written_seq.set(seq);
                self.note_reached(seq);
                tail.note_written(!stream.is_empty(), self.runtime.now());
            }
            let has_waiters = !stream.is_empty() && self.durability == Durability::Flash;
            self.recycle(stream);
            let due = match (self.durability, tail.unsynced_since) {
                (_, None) => false,
                (Durability::Flash, _) => false,
                (Durability::Interval(interval), Some(since)) => {
                    sync || closing || self.runtime.now() - since >= interval
                }
            };
            // Pending events will fill the word lines.
            if due || clock || rotation || has_waiters && self.unwritten.pending.borrow().is_empty()
            {
                self.close_word_lines().await?;
            }
            if due {
                self.flush().await?;
            }
            if due || self.durability == Durability::Flash {
                tail.unsynced_since = None;
                self.declare_durable().await?;
                self.note_durable();
            }
            self.note_safe_clock();
            self.progress.changed.notify_all();
            if closing
                && self.unwritten.pending.borrow().is_empty()
                && tail.unsynced_since.is_none()
            {
                return self.write_end().await;
            }
        }
    }

    /// Waits until the values of the stream are durable, and fills in their references: a frame on
    /// flash never refers to a value that is not.
    async fn fill_references(&self, stream: &mut [u8], unfilled: Vec<Unfilled>) -> Result<()> {
        if unfilled.is_empty() {
            return Ok(());
        }
        if !planted::bug(Bug::ReferenceBeforeValue) {
            self.values.settle(unfilled.iter().map(|reference| &reference.separated)).await?;
        }
        for reference in &unfilled {
            if let Err(error) = reference.fill(stream)
                && !planted::bug(Bug::ReferenceBeforeValue)
            {
                return Err(StoreError::LogFailed(error.to_string()));
            }
        }
        Ok(())
    }

    /// When the pending events have to be written at the latest: references wait, so that many
    /// values share a flush.
    fn gather_until(&self, interval: Duration) -> Time {
        match self.unwritten.unfilled_since.get() {
            Some(since) => since + interval / 2,
            None => self.runtime.now() + GATHER_TIME.min(interval),
        }
    }

    /// Writes an end frame: the log is durable and ends here, so recovery reads no further.
    async fn write_end(&self) -> Result<()> {
        if self.segment_is_full() {
            return Ok(());
        }
        let draft = Draft {
            role: FrameRole::End,
            payload: &[],
            first_event: u32::MAX,
            sequence: None,
            durable: self.durability == Durability::Flash,
        };
        if let Err(error) = self.try_frame(draft).await? {
            tracing::debug!(shard = self.shard.0, %error, "the end frame of the log could not be written");
        }
        self.flush().await
    }

    /// The log was written up to sequence number `seq`.
    pub(super) fn note_reached(&self, seq: u64) {
        let mut position = self.segments.position.borrow_mut();
        let safe_after = self.blocks.log_flash().safe_after(position.next_page);
        let next_frame = position.next_frame;
        let clock_ms = self.progress.written_clock_ms.get();
        position.open_word_lines.note(Reach { next_frame, seq, clock_ms }, safe_after);
        if planted::bug(Bug::OpenWordLineClockLogged) {
            self.clock.note_logged(clock_ms);
            self.progress.changed.notify_all();
        }
    }

    /// All written frames are flushed or need no flush. They are durable up to the first open word
    /// line.
    fn note_durable(&self) {
        let mut position = self.segments.position.borrow_mut();
        let programmed = position.next_page;
        let reach = position.open_word_lines.settle(programmed);
        position.durable_frames = reach.next_frame;
        self.progress.durable_seq.set(reach.seq);
        self.progress.changed.notify_all();
    }

    /// The clock is logged up to the first open word line.
    fn note_safe_clock(&self) {
        let mut position = self.segments.position.borrow_mut();
        let programmed = position.next_page;
        self.clock.note_logged(position.open_word_lines.settle(programmed).clock_ms);
    }

    /// Pads the open word lines.
    pub(super) async fn close_word_lines(&self) -> Result<()> {
        loop {
            let missing = {
                let position = self.segments.position.borrow();
                position
                    .open_word_lines
                    .end()
                    .map_or(0, |end| end.saturating_sub(position.next_page))
            };
            let bytes = (missing as usize * self.blocks.page_bytes()).min(self.frame_bytes());
            let Some(len) = bytes.checked_sub(frame::HEADER_BYTES) else { return Ok(()) };
            let padding = vec![0; len];
            let draft = Draft {
                role: FrameRole::Padding,
                payload: &padding,
                first_event: u32::MAX,
                sequence: None,
                durable: self.durability == Durability::Flash,
            };
            if let Err(error) = self.try_frame(draft).await? {
                tracing::warn!(shard = self.shard.0, %error, "the write of a log frame failed; rotating to a new segment");
                self.start_segment(SegmentStart::InStream).await?;
            }
        }
    }

    /// Waits for pending events, a request, or a due sync or proof.
    async fn gather(&self, tail: &Tail) {
        let urgent = || {
            let requested = self.requests.clock.get() || self.requests.rotation.get();
            requested || self.requests.sync.get() || self.requests.closing.get()
        };
        while self.unwritten.pending.borrow().is_empty() && !urgent() {
            let sync_due = match (self.durability, tail.unsynced_since) {
                (Durability::Interval(interval), Some(since)) => Some(since + interval),
                _ => None,
            };
            let work = self.requests.work.notified();
            match sync_due.or(tail.proof_due()) {
                Some(due) if self.runtime.now() >= due => return,
                Some(due) => drop(select(self.runtime.sleep_until(due), pin!(work)).await),
                None => work.await,
            }
        }
        if let Durability::Interval(interval) = self.durability {
            let mut until = self.gather_until(interval);
            while !urgent()
                && self.unwritten.pending.borrow().len() < GATHER_BYTES
                && self.runtime.now() < until
            {
                let may_wait = self.unwritten.unfilled_since.get().is_some();
                select(self.runtime.sleep_until(until), pin!(self.requests.work.notified())).await;
                if !may_wait && self.unwritten.unfilled_since.get().is_some() {
                    until = self.gather_until(interval);
                }
            }
        }
    }

    /// Keeps the stream's buffer for the events after the next write, unless it has grown too
    /// large: growing a new one costs several copies.
    fn recycle(&self, mut stream: Vec<u8>) {
        self.unwritten.writing_bytes.set(0);
        if stream.capacity() <= 4 * FRAME_BYTES {
            stream.clear();
            self.unwritten.spare.replace(stream);
        }
    }

    /// Writes a stream of whole events as frames. They are durable if every acknowledged write is
    /// durable. `starts` has the end offset of each edit in the stream, and the first needed
    /// segment that the edit records.
    pub(super) async fn write(&self, stream: &[u8], starts: &[(usize, u64)]) -> Result<()> {
        let durable = self.durability == Durability::Flash;
        let (mut at, mut next_event) = (0, 0);
        loop {
            let len = (stream.len() - at).min(self.room().await?);
            let end = at + len;
            let first_event = if next_event < end { (next_event - at) as u32 } else { u32::MAX };
            while next_event < end {
                next_event += event_len(stream, next_event);
            }
            let payload = stream.get(at..end).unwrap_or_default();
            let alone = len == stream.len();
            let role = FrameRole::Stream;
            let durable = durable && alone;
            self.write_frame(Draft { role, payload, first_event, sequence: None, durable }).await?;
            at = end;
            // The checkpoint of a segment that starts now must not name an earlier start than these
            // edits.
            if let Some((_, start)) = starts.iter().rfind(|(end, _)| *end <= at) {
                self.unwritten.recorded_start.set(*start);
            }
            if at >= stream.len() {
                // A durable write does not make earlier writes durable.
                let unflushed = self.durability == Durability::Flash
                    && !alone
                    && !planted::bug(Bug::StreamNotFlushed);
                return if unflushed { self.flush().await } else { Ok(()) };
            }
        }
    }

    pub(super) async fn flush(&self) -> Result<()> {
        Ok(self.blocks.log_flash().flush(Hint::LOG).await?)
    }

    /// The maximum payload of the next frame. Starts a new segment where the current one is full.
    async fn room(&self) -> Result<usize> {
        let page = self.blocks.page_bytes();
        let pages = self.segment_pages();
        loop {
            let next_page = self.segments.position.borrow().next_page;
            if next_page < pages {
                let left = (pages - next_page) as usize * page;
                return Ok(left.min(self.frame_bytes()) - frame::HEADER_BYTES);
            }
            self.start_segment(SegmentStart::InStream).await?;
        }
    }

    pub(super) fn segment_is_full(&self) -> bool {
        self.segments.position.borrow().next_page >= self.segment_pages()
    }

    pub(super) fn segment_pages(&self) -> u32 {
        (self.blocks.capacity_bytes() / self.blocks.page_bytes()) as u32
    }

    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes.get()
    }

    pub(super) async fn write_frame(&self, draft: Draft<'_>) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_frame(draft).await? {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(shard = self.shard.0, %error, "the write of a log frame failed; rotating to a new segment");
                    if draft.role != FrameRole::Stream {
                        // The caller's segment is unusable without its checkpoint.
                        return Err(error.into());
                    }
                    self.start_segment(SegmentStart::InStream).await?;
                }
            }
        }
        Err(StoreError::DataLoss(format!(
            "the write of a log frame failed on {MAX_ATTEMPTS} blocks"
        )))
    }

    /// Writes one frame to the current segment. The inner error is the device's.
    async fn try_frame(&self, draft: Draft<'_>) -> Result<Result<(), FtlError>> {
        let Draft { role, payload, first_event, sequence, durable } = draft;
        let page_bytes = self.blocks.page_bytes();
        let pages = frame::pages(payload.len(), page_bytes);
        let clock_ms = self.clock.now_ms();
        let outcome = {
            let mut position = self.segments.position.borrow_mut();
            let Some(open) = position.open.as_ref() else { return Err(StoreError::Closed) };
            let header = FrameHeader {
                shard: self.shard.0,
                role,
                payload_len: saturating_u32(payload.len()),
                segment: position.segment,
                sequence: sequence.unwrap_or(position.next_frame),
                durable_before: position.declared()
                    + u64::from(planted::bug(Bug::DurableBeforeTooHigh)),
                clock_ms,
                first_event,
            };
            // The reader expects both of every frame: it checks the page by the checksum, and takes
            // a frame for lost that a later one declares durable.
            assert!(
                position.durable_frames <= header.sequence,
                "shard {}: frame {} would declare frame {} durable, which is not written",
                self.shard,
                header.sequence,
                position.durable_frames
            );
            let buffer = self.sealed(&header, payload, open.id(), position.next_page);
            let durable = durable && !planted::bug(Bug::FrameNotForced);
            match open.append(buffer, durable, Hint::LOG) {
                Err((error, _)) => return Ok(Err(error)),
                Ok((page, outcome)) => {
                    assert_eq!(
                        page, position.next_page,
                        "shard {}: frame {} goes to the page that its checksum is bound to",
                        self.shard, header.sequence
                    );
                    position.next_page += pages as u32;
                    outcome
                }
            }
        };
        if let (Err(error), _) = outcome.await {
            return Ok(Err(error));
        }
        if let Some(error) = self.lacks_copy() {
            return Ok(Err(error));
        }
        {
            let mut position = self.segments.position.borrow_mut();
            position.completed_pages = position.next_page;
            position.next_frame += u64::from(sequence.is_none());
        }
        self.progress
            .bytes_written
            .set(self.progress.bytes_written.get() + (pages * page_bytes) as u64);
        self.progress.written_clock_ms.set(clock_ms);
        Ok(Ok(()))
    }

    /// A frame sealed for this page of a block, padded to whole pages.
    pub(super) fn sealed(
        &self,
        header: &FrameHeader,
        payload: &[u8],
        block: BlockId,
        page: u32,
    ) -> IoBuf {
        let page_bytes = self.blocks.page_bytes();
        let pages = frame::pages(payload.len(), page_bytes);
        let mut buffer = self.blocks.flash().buffer(pages * page_bytes);
        let end = frame::HEADER_BYTES + payload.len();
        if let Some(place) = buffer.get_mut(frame::HEADER_BYTES..end) {
            place.copy_from_slice(payload);
        }
        if let Some(padding) = buffer.get_mut(end..) {
            padding.fill(0);
        }
        frame::seal(&mut buffer, header, self.blocks.identity(block), page);
        buffer
    }
}

impl Inner {
    /// The error of a failed copy, if the frame should be written again to a segment with all
    /// copies. A single copy is accepted where several segments in a row have failed.
    fn lacks_copy(&self) -> Option<FtlError> {
        let position = self.segments.position.borrow();
        let Some(error) = position.open.as_ref().and_then(OpenBlock::lacks_copy) else {
            self.segments.abandoned_in_a_row.set(0);
            return None;
        };
        let abandoned = self.segments.abandoned_in_a_row.get() + 1;
        (abandoned < MAX_ABANDONED_SEGMENTS).then(|| {
            self.segments.abandoned_in_a_row.set(abandoned);
            error
        })
    }
}

/// Bytes of the longest frame, header included: a fraction of a segment.
pub(super) fn longest_frame(blocks: &BlockLayer) -> usize {
    FRAME_BYTES.min(blocks.capacity_bytes() / 4).max(blocks.page_bytes())
}

/// Bytes of the event at `at`, including its length field.
fn event_len(stream: &[u8], at: usize) -> usize {
    let len = stream.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    event::LENGTH_BYTES + len as usize
}
