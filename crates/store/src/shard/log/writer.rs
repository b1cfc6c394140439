//! The task that writes the log: takes what has gathered, frames it, and waits for the flash once for all.

use super::Inner;
use super::open_word_lines::Reach;
use super::segments::Segment;
use crate::error::{Result, StoreError};
use crate::format::log::event;
use crate::format::log::frame::{self, FrameHeader, FrameRole};
use crate::options::Durability;
use futures_util::future::select;
use softflash_base::planted::{self, Bug};
use softflash_base::{IoBuf, Time};
use softflash_blocks::{BlockId, BlockLayer, OpenBlock};
use softflash_ftl::{FtlError, Hint};
use std::pin::pin;
use std::time::Duration;

/// The longest frame, header included.
const FRAME_BYTES: usize = frame::MAX_FRAME_BYTES;
/// With interval durability, bytes that are written without waiting for more.
const GATHER_BYTES: usize = 256 << 10;
/// With interval durability, the longest that events wait in memory for company.
const GATHER_TIME: Duration = Duration::from_millis(5);
/// How long a frame may be the last one where its segment has room for another: until then, damage to it looks like a
/// torn write.
const PROOF_TIME: Duration = Duration::from_secs(1);
/// Blocks that are tried for one frame before the log fails. Where one erase in forty fails, four in a row fail for one segment in
/// 40^4 = 2.6 million, eight for one in 6.6 * 10^12.
pub(super) const MAX_ATTEMPTS: usize = 8;
/// Segments in a row that are abandoned because a copy failed; the next one is used with a single copy.
const MAX_SHORT_SEGMENTS: usize = 4;
/// What is known of the end of the log.
#[derive(Default)]
struct Tail {
    /// Since when there are frames that may not be durable.
    unsynced_since: Option<Time>,
    /// Since when there are frames of which no later one says that they were durable.
    unproved_since: Option<Time>,
}

impl Tail {
    /// When a frame is to be written only to prove that those before it were durable.
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
        self.unsynced_since.get_or_insert(now);
    }
}

/// A frame to be written.
#[derive(Clone, Copy)]
pub(super) struct Draft<'a> {
    pub(super) role: FrameRole,
    pub(super) payload: &'a [u8],
    pub(super) first_event: u32,
    /// Its sequence, where that is not the next one.
    pub(super) sequence: Option<u64>,
    /// It is durable when it is written.
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
        // The new segment's frames say that what recovery has read is durable, but for the last frame, which is
        // written again: the opener has seen to that.
        self.start_segment(Segment::OfNewWriter).await?;
        self.segments.recovered_frame.take();
        self.note_reached(0);
        self.make_durable().await?;
        // A recovery leaves a segment out that has nothing behind its opening; from here on, it counts.
        self.write(&[], &[]).await?;
        self.note_reached(self.progress.written_seq.get());
        if self.segments.follows_vain_starts {
            // What is behind it makes that sure, also for a start that comes soon: it needs to keep nothing of those before, of
            // which many in a row would leave it no room to begin in.
            self.write(&[], &[]).await?;
        }
        self.make_durable().await?;
        self.note_safe_clock();
        let mut tail = Tail::default();
        loop {
            self.gather(&tail).await;

            let renewal = self.wanted.renewal.replace(false);
            if renewal {
                self.start_segment(Segment::InStream).await?;
                // It counts, and so does the clock in it.
                self.write(&[], &[]).await?;
                self.note_reached(self.progress.written_seq.get());
            }
            let (hurry, closing) = (self.wanted.hurry.replace(false), self.wanted.closing.get());
            let stream = std::mem::take(&mut *self.stream.pending.borrow_mut());
            self.stream.writing_bytes.set(stream.len());
            let (seq, clock) = (self.stream.appended_seq.get(), self.wanted.clock.replace(false));
            let starts = self.stream.appended_starts.take();
            let now = self.runtime.now();
            if self.segment_is_full() {
                // A proof is not worth a segment of its own, least of all on a full device.
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
                let seq = if late { self.stream.appended_seq.get() } else { seq };
                self.progress.written_seq.set(seq);
                self.note_reached(seq);
                tail.note_written(!stream.is_empty(), self.runtime.now());
            }
            let awaited = !stream.is_empty() && self.durability == Durability::Flash;
            self.recycle(stream);
            let due = match (self.durability, tail.unsynced_since) {
                (_, None) => false,
                (Durability::Flash, _) => false,
                (Durability::Interval(interval), Some(since)) => {
                    hurry || closing || self.runtime.now() - since >= interval
                }
            };
            // Where more is waiting, that will fill the word lines.
            if due || clock || renewal || awaited && self.stream.pending.borrow().is_empty() {
                self.close_word_lines().await?;
            }
            if due {
                self.flush().await?;
            }
            if due || self.durability == Durability::Flash {
                tail.unsynced_since = None;
                self.announce().await?;
                self.note_durable();
            }
            self.note_safe_clock();
            self.progress.changed.notify_all();
            if closing && self.stream.pending.borrow().is_empty() && tail.unsynced_since.is_none() {
                return self.write_end().await;
            }
        }
    }

    /// Says that the log ends here, and that all of it is durable: who reads it need not look for more.
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
            tracing::debug!(shard = self.shard.0, %error, "the log ends without a frame that says so");
        }
        self.flush().await
    }

    /// The log was written up to sequence number `seq`.
    fn note_reached(&self, seq: u64) {
        let mut position = self.segments.position.borrow_mut();
        let safe_after = self.blocks.log_flash().safe_after(position.next_page);
        let next_frame = position.next_frame;
        let clock_ms = self.progress.written_clock_ms.get();
        position.open_word_lines.note(Reach { next_frame, seq, clock_ms }, safe_after);
        if planted::bug(Bug::ExposedClockLogged) {
            self.clock.note_logged(clock_ms);
            self.progress.changed.notify_all();
        }
    }

    /// What was written is flushed or need not be: it is durable as far as no later write can take it along.
    fn note_durable(&self) {
        let mut position = self.segments.position.borrow_mut();
        let programmed = position.next_page;
        let reach = position.open_word_lines.settle(programmed);
        position.durable_frames = reach.next_frame;
        self.progress.durable_seq.set(reach.seq);
        self.progress.changed.notify_all();
    }

    /// Makes all that was written durable.
    async fn make_durable(&self) -> Result<()> {
        self.close_word_lines().await?;
        self.flush().await?;
        self.announce().await?;
        self.note_durable();
        Ok(())
    }

    /// A restart finds the clock that was written, as far as no later write can take it along.
    fn note_safe_clock(&self) {
        let mut position = self.segments.position.borrow_mut();
        let programmed = position.next_page;
        self.clock.note_logged(position.open_word_lines.settle(programmed).clock_ms);
    }

    /// Fills the word lines that hold part of what was written.
    async fn close_word_lines(&self) -> Result<()> {
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
                tracing::warn!(shard = self.shard.0, %error, "a log segment failed; going on in another");
                self.start_segment(Segment::InStream).await?;
            }
        }
    }

    /// Waits until there is something to do.
    async fn gather(&self, tail: &Tail) {
        let urgent = || {
            let wanted = self.wanted.clock.get() || self.wanted.renewal.get();
            wanted || self.wanted.hurry.get() || self.wanted.closing.get()
        };
        while self.stream.pending.borrow().is_empty() && !urgent() {
            let sync = match (self.durability, tail.unsynced_since) {
                (Durability::Interval(interval), Some(since)) => Some(since + interval),
                _ => None,
            };
            let work = self.wanted.work.notified();
            match sync.or(tail.proof_due()) {
                Some(due) if self.runtime.now() >= due => return,
                Some(due) => drop(select(self.runtime.sleep_until(due), pin!(work)).await),
                None => work.await,
            }
        }
        if let Durability::Interval(interval) = self.durability {
            let until = self.runtime.now() + GATHER_TIME.min(interval);
            while !urgent()
                && self.stream.pending.borrow().len() < GATHER_BYTES
                && self.runtime.now() < until
            {
                select(self.runtime.sleep_until(until), pin!(self.wanted.work.notified())).await;
            }
        }
    }

    /// Keeps the stream's memory for the next events, unless it has grown beyond use.
    fn recycle(&self, mut stream: Vec<u8>) {
        self.stream.writing_bytes.set(0);
        let mut pending = self.stream.pending.borrow_mut();
        if pending.capacity() == 0 && stream.capacity() <= 4 * FRAME_BYTES {
            stream.clear();
            *pending = stream;
        }
    }

    /// Writes a stream of whole events as frames; they are durable if every acknowledgement is. `starts` says where in
    /// it edits end, and the first segment that each says is needed.
    async fn write(&self, stream: &[u8], starts: &[(usize, u64)]) -> Result<()> {
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
            // A segment that begins now comes behind these edits: its checkpoint must not take back what they say.
            if let Some((_, start)) = starts.iter().rfind(|(end, _)| *end <= at) {
                self.stream.recorded_start.set(*start);
            }
            if at >= stream.len() {
                // A durable write says nothing of those before it.
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

    /// Bytes of payload that the next frame can take; starts a segment where the current one is full.
    async fn room(&self) -> Result<usize> {
        let page = self.blocks.page_bytes();
        let pages = self.segment_pages();
        loop {
            let next_page = self.segments.position.borrow().next_page;
            if next_page < pages {
                let left = (pages - next_page) as usize * page;
                return Ok(left.min(self.frame_bytes()) - frame::HEADER_BYTES);
            }
            self.start_segment(Segment::InStream).await?;
        }
    }

    fn segment_is_full(&self) -> bool {
        self.segments.position.borrow().next_page >= self.segment_pages()
    }

    fn segment_pages(&self) -> u32 {
        (self.blocks.capacity_bytes() / self.blocks.page_bytes()) as u32
    }

    pub(super) fn frame_bytes(&self) -> usize {
        longest_frame(&self.blocks)
    }

    pub(super) async fn write_frame(&self, draft: Draft<'_>) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_frame(draft).await? {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(shard = self.shard.0, %error, "a log segment failed; going on in another");
                    if draft.role != FrameRole::Stream {
                        // The caller's segment is of no use without its checkpoint.
                        return Err(error.into());
                    }
                    self.start_segment(Segment::InStream).await?;
                }
            }
        }
        Err(StoreError::DataLoss(format!("{MAX_ATTEMPTS} blocks failed to take a log frame")))
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
                payload_len: payload.len() as u32,
                segment: position.segment,
                sequence: sequence.unwrap_or(position.next_frame),
                durable_before: position.durable_frames
                    + u64::from(planted::bug(Bug::DurableBeforeTooHigh)),
                clock_ms,
                first_event,
            };
            let buffer = self.sealed(&header, payload, open.id(), position.next_page);
            let durable = durable && !planted::bug(Bug::FrameNotForced);
            match open.append(buffer, durable, Hint::LOG) {
                Err((error, _)) => return Ok(Err(error)),
                Ok((_, outcome)) => {
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
            position.landed_pages = position.next_page;
            position.next_frame += u64::from(sequence.is_none());
        }
        self.progress
            .bytes_written
            .set(self.progress.bytes_written.get() + (pages * page_bytes) as u64);
        self.progress.written_clock_ms.set(clock_ms);
        Ok(Ok(()))
    }

    /// A frame as it goes to this page of a block, padded to whole pages.
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
    /// Why what was just written should be written again, to a segment that takes all copies. It is enough to have one where
    /// several segments in a row fail.
    fn lacks_copy(&self) -> Option<FtlError> {
        let position = self.segments.position.borrow();
        let Some(error) = position.open.as_ref().and_then(OpenBlock::lacks_copy) else {
            self.segments.left_short.set(0);
            return None;
        };
        let left = self.segments.left_short.get() + 1;
        (left < MAX_SHORT_SEGMENTS).then(|| {
            self.segments.left_short.set(left);
            error
        })
    }
}

/// Bytes of the longest frame, header included: a fraction of a segment.
pub(super) fn longest_frame(blocks: &BlockLayer) -> usize {
    FRAME_BYTES.min(blocks.capacity_bytes() / 4).max(blocks.page_bytes())
}

/// Bytes of the event at `at`, its length included.
fn event_len(stream: &[u8], at: usize) -> usize {
    let len = stream.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    event::LENGTH_BYTES + len as usize
}
