//! The task that writes the log: takes what has gathered, frames it, and waits for the flash once for all.

use super::Inner;
use crate::block_layer::BlockKind;
use crate::error::{Result, StoreError};
use crate::format::log::event::{self, Replayed};
use crate::format::log::frame::{self, FrameHeader};
use crate::options::Durability;
use bytes::Bytes;
use futures_util::future::select;
use softflash_base::Time;
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
/// Blocks that are tried for one frame before the log gives up.
const MAX_ATTEMPTS: usize = 4;
/// How often and how long a full device is waited for when a segment is needed.
const SPACE_ATTEMPTS: usize = 500;
const SPACE_WAIT: Duration = Duration::from_millis(20);

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

/// When a segment starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment {
    /// With nothing appended since recovery.
    OfNewWriter,
    /// While events wait to be written, that memory is ahead by.
    InStream,
}

impl Inner {
    pub(super) async fn write_forever(&self) {
        if let Err(error) = self.write_until_closed().await {
            tracing::error!(shard = self.shard.0, %error, "the log has failed");
            *self.failure.borrow_mut() = Some(error.to_string());
        }
        self.closed.set(true);
        self.progress.notify_all();
    }

    async fn write_until_closed(&self) -> Result<()> {
        // The new segment's frames say that what recovery has read is durable: the opener has seen to that.
        self.start_segment(Segment::OfNewWriter).await?;
        self.flush().await?;
        self.durable_seq.set(self.written_seq.get());
        self.progress.notify_all();
        let mut tail = Tail::default();
        loop {
            self.gather(&tail).await;
            let (hurry, closing) = (self.hurry.replace(false), self.closing.get());
            let stream = std::mem::take(&mut *self.pending.borrow_mut());
            let (seq, clock) = (self.appended_seq.get(), self.clock_wanted.replace(false));
            let start = self.appended_start.take();
            let now = self.runtime.now();
            if self.segment_is_full() {
                // A proof is not worth a segment of its own, least of all on a full device.
                tail.unproved_since = None;
            }
            let proof = tail.proof_due().is_some_and(|due| closing || now >= due);
            if !stream.is_empty() || clock || proof {
                self.write(&stream).await?;
                self.told_start.set(start.unwrap_or(self.told_start.get()));
                self.written_seq.set(seq);
                tail.note_written(!stream.is_empty(), self.runtime.now());
            }
            self.recycle(stream);
            let due = match (self.durability, tail.unsynced_since) {
                (_, None) => false,
                (Durability::Flash, _) => false,
                (Durability::Interval(interval), Some(since)) => {
                    hurry || closing || self.runtime.now() - since >= interval
                }
            };
            if due {
                self.flush().await?;
            }
            if due || self.durability == Durability::Flash {
                tail.unsynced_since = None;
                self.durable_seq.set(self.written_seq.get());
                let mut position = self.position.borrow_mut();
                position.durable_frames = position.next_frame;
            }
            self.progress.notify_all();
            if closing && self.pending.borrow().is_empty() && tail.proof_due().is_none() {
                return Ok(());
            }
        }
    }

    /// Waits until there is something to do.
    async fn gather(&self, tail: &Tail) {
        let urgent = || self.hurry.get() || self.closing.get() || self.clock_wanted.get();
        while self.pending.borrow().is_empty() && !urgent() {
            let sync = match (self.durability, tail.unsynced_since) {
                (Durability::Interval(interval), Some(since)) => Some(since + interval),
                _ => None,
            };
            let work = self.work.notified();
            match sync.or(tail.proof_due()) {
                Some(due) if self.runtime.now() >= due => return,
                Some(due) => drop(select(self.runtime.sleep_until(due), pin!(work)).await),
                None => work.await,
            }
        }
        if let Durability::Interval(interval) = self.durability {
            let until = self.runtime.now() + GATHER_TIME.min(interval);
            while !urgent()
                && self.pending.borrow().len() < GATHER_BYTES
                && self.runtime.now() < until
            {
                select(self.runtime.sleep_until(until), pin!(self.work.notified())).await;
            }
        }
    }

    /// Keeps the stream's memory for the next events, unless it has grown beyond use.
    fn recycle(&self, mut stream: Vec<u8>) {
        let mut pending = self.pending.borrow_mut();
        if pending.capacity() == 0 && stream.capacity() <= 4 * FRAME_BYTES {
            stream.clear();
            *pending = stream;
        }
    }

    /// Writes a stream of whole events as frames; they are durable if every acknowledgement is.
    async fn write(&self, stream: &[u8]) -> Result<()> {
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
            self.write_frame(payload, first_event, false, durable && alone).await?;
            at = end;
            if at >= stream.len() {
                // A durable write says nothing of those before it.
                return if durable && !alone { self.flush().await } else { Ok(()) };
            }
        }
    }

    async fn flush(&self) -> Result<()> {
        Ok(self.blocks.log_flash().flush(Hint::LOG).await?)
    }

    /// Bytes of payload that the next frame can take; starts a segment where the current one is full.
    async fn room(&self) -> Result<usize> {
        let page = self.blocks.page_bytes();
        let pages = self.segment_pages();
        loop {
            let next_page = self.position.borrow().next_page;
            if next_page < pages {
                let left = (pages - next_page) as usize * page;
                return Ok(left.min(self.frame_bytes()) - frame::HEADER_BYTES);
            }
            self.start_segment(Segment::InStream).await?;
        }
    }

    fn segment_is_full(&self) -> bool {
        self.position.borrow().next_page >= self.segment_pages()
    }

    fn segment_pages(&self) -> u32 {
        (self.blocks.capacity_bytes() / self.blocks.page_bytes()) as u32
    }

    /// The longest frame, header included: a fraction of a segment.
    fn frame_bytes(&self) -> usize {
        FRAME_BYTES.min(self.blocks.capacity_bytes() / 4).max(self.blocks.page_bytes())
    }

    /// Ends the current segment and starts the next, in another block where one fails to take its checkpoint.
    async fn start_segment(&self, kind: Segment) -> Result<()> {
        for _ in 1..MAX_ATTEMPTS {
            let next_frame = self.position.borrow().next_frame;
            match self.try_segment(kind).await {
                Err(StoreError::Flash(error)) => {
                    tracing::warn!(shard = self.shard.0, %error, "a log segment failed as it began");
                    self.take_segment_back(next_frame);
                }
                tried => return tried,
            }
        }
        self.try_segment(kind).await
    }

    /// The segment that was begun last is not: its number and its frames' are used again, in a later block, which
    /// is why that counts.
    fn take_segment_back(&self, next_frame: u64) {
        let mut position = self.position.borrow_mut();
        position.open = None;
        position.next_page = u32::MAX;
        position.next_frame = next_frame;
        if let Some((_, block)) = position.segments.pop_back() {
            position.segment -= 1;
            self.blocks.delete(block);
        }
    }

    /// Starts a segment with a checkpoint.
    async fn try_segment(&self, kind: Segment) -> Result<()> {
        let block = self.open_block().await?;
        {
            let mut position = self.position.borrow_mut();
            if let Some(full) = position.open.take() {
                full.seal();
            }
            position.segment += 1;
            position.next_page = 0;
            let entry = (position.segment, block.id());
            position.segments.push_back(entry);
            position.open = Some(block);
        }
        let checkpoint = self.make_checkpoint(kind)?;
        let durable = self.durability == Durability::Flash;
        let longest = self.frame_bytes() - frame::HEADER_BYTES;
        let alone = checkpoint.len() <= longest;
        for chunk in checkpoint.chunks(longest) {
            Box::pin(self.write_frame(chunk, u32::MAX, true, durable && alone)).await?;
        }
        if durable && !alone { self.flush().await } else { Ok(()) }
    }

    fn make_checkpoint(&self, kind: Segment) -> Result<Bytes> {
        self.rolling_over.set(kind == Segment::InStream);
        let checkpoint = match self.checkpoint.borrow().as_ref() {
            Some(make) => make(),
            None => Vec::new(),
        };
        self.rolling_over.set(false);
        let checkpoint = Bytes::from(checkpoint);
        if kind == Segment::OfNewWriter && !checkpoint.is_empty() {
            // Nothing is on its way yet: this one may name any start, also its own segment.
            let body = checkpoint.slice(event::LENGTH_BYTES.min(checkpoint.len())..);
            let made = event::decode(&body).map_err(|error| {
                StoreError::LogFailed(format!("the checkpoint cannot be read back: {error}"))
            })?;
            if let Replayed::Checkpoint(checkpoint) = made {
                self.told_start.set(checkpoint.log_start);
            }
        }
        Ok(checkpoint)
    }

    async fn open_block(&self) -> Result<crate::block_layer::OpenBlock> {
        let segment = self.position.borrow().segment + 1;
        for _ in 0..SPACE_ATTEMPTS {
            let id = self.blocks.new_id();
            match self.blocks.open(id, BlockKind::Log { segment }, Hint::LOG) {
                Err(StoreError::OutOfSpace) => {
                    // Compaction gives space back; what it needs for that is kept in reserve.
                    self.runtime.sleep_until(self.runtime.now() + SPACE_WAIT).await;
                }
                opened => return opened,
            }
        }
        Err(StoreError::OutOfSpace)
    }

    async fn write_frame(
        &self,
        payload: &[u8],
        first_event: u32,
        checkpoint: bool,
        durable: bool,
    ) -> Result<()> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_frame(payload, first_event, checkpoint, durable).await? {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::warn!(shard = self.shard.0, %error, "a log segment failed; going on in another");
                    if checkpoint {
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
    async fn try_frame(
        &self,
        payload: &[u8],
        first_event: u32,
        checkpoint: bool,
        durable: bool,
    ) -> Result<Result<(), FtlError>> {
        let page_bytes = self.blocks.page_bytes();
        let pages = frame::pages(payload.len(), page_bytes);
        let clock_ms = self.clock.now_ms();
        let outcome = {
            let mut position = self.position.borrow_mut();
            let Some(open) = position.open.as_ref() else { return Err(StoreError::Closed) };
            let header = FrameHeader {
                shard: self.shard.0,
                checkpoint,
                payload_len: payload.len() as u32,
                segment: position.segment,
                sequence: position.next_frame,
                durable_before: position.durable_frames,
                clock_ms,
                first_event,
            };
            let mut buffer = self.blocks.flash().buffer(pages * page_bytes);
            let end = frame::HEADER_BYTES + payload.len();
            if let Some(place) = buffer.get_mut(frame::HEADER_BYTES..end) {
                place.copy_from_slice(payload);
            }
            if let Some(padding) = buffer.get_mut(end..) {
                padding.fill(0);
            }
            let identity = self.blocks.identity(open.id());
            frame::seal(&mut buffer, &header, identity, position.next_page);
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
        self.position.borrow_mut().next_frame += 1;
        self.bytes_written.set(self.bytes_written.get() + (pages * page_bytes) as u64);
        self.clock.note_logged(clock_ms);
        Ok(Ok(()))
    }
}

/// Bytes of the event at `at`, its length included.
fn event_len(stream: &[u8], at: usize) -> usize {
    let len = stream.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes);
    event::LENGTH_BYTES + len as usize
}
