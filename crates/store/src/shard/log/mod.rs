//! The shard's write-ahead log: a chain of blocks (*segments*). A change is durable once it is in
//! the log.
//!
//! Events are appended to a stream in memory and become visible at once. One task writes the
//! pending events as frames, so that many writers share one flash flush (group commit). Segments
//! that recovery does not need are deleted. Each segment starts with a checkpoint, so recovery can
//! start at any segment that the log names.
//!
//! A checkpoint describes memory, which is ahead of the log by the pending events. So a checkpoint
//! in the middle of the stream names only a start that earlier frames already record. Edits after
//! it can name its own segment, because they are written after the pending events.

pub mod chain;
mod lost_log;
mod open_word_lines;
mod piece;
mod piece_cache;
pub mod reader;
mod scrub;
mod segments;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::format::log::event::{self, Edit, Event, PatchEntry};

use super::clock::ExpiryClock;
use super::values::ValueLog;
use crate::error::{Result, StoreError};
use crate::format::log::Frame;
use crate::options::Durability;
use event::Unfilled;
use open_word_lines::{OpenWordLines, Reach};
use softflash_base::planted::{self, Bug};
use softflash_base::{ShardId, Time};
use softflash_blocks::{BlockId, BlockLayer, OpenBlock};
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::rc::Rc;
use writer::{GATHER_BYTES, longest_frame};

/// Encodes a checkpoint as an event stream; the callback determines `log_start`.
pub type CheckpointMaker = Box<dyn Fn() -> Vec<u8>>;

/// A shard's log. A clone is the same log.
#[derive(Clone)]
pub struct Log {
    inner: Rc<Inner>,
}

struct Inner {
    shard: ShardId,
    blocks: BlockLayer,
    runtime: RuntimeHandle,
    clock: Rc<ExpiryClock>,
    values: ValueLog,
    durability: Durability,
    /// The most bytes of a frame.
    frame_bytes: Cell<usize>,
    checkpoint: RefCell<Option<CheckpointMaker>>,
    unwritten: Unwritten,
    requests: Requests,
    progress: Progress,
    undecided: Undecided,
    segments: Segments,
}

/// Events that are not completely written yet.
struct Unwritten {
    /// Events that were appended and that the writer has not taken.
    pending: RefCell<Vec<u8>>,
    /// The references in `pending`, in order.
    unfilled: RefCell<Vec<Unfilled>>,
    /// When the first of them was appended.
    unfilled_since: Cell<Option<Time>>,
    /// An empty buffer for the events after those, if one was kept.
    spare: RefCell<Vec<u8>>,
    /// Bytes of events that the writer has taken and is writing.
    writing_bytes: Cell<usize>,
    appended_seq: Cell<u64>,
    /// The end offset of each edit in `pending`, and the first needed segment that the edit
    /// records.
    appended_starts: RefCell<Vec<(usize, u64)>>,
    /// The first needed segment that the written log records, in an edit or in the first
    /// checkpoint.
    recorded_start: Cell<u64>,
    /// A checkpoint is being encoded for a segment that starts in the middle of the stream.
    rolling_over: Cell<bool>,
}

/// Requests to the writer.
#[derive(Default)]
struct Requests {
    /// Notified on each request and on new events.
    work: Notify,
    /// A task waits until all events appended so far are durable.
    sync: Cell<bool>,
    /// A frame is requested for the clock that it carries.
    clock: Cell<bool>,
    /// A new segment is requested.
    rotation: Cell<bool>,
    closing: Cell<bool>,
}

/// The writer's progress.
struct Progress {
    /// Notified when a frame was written, or the log has failed.
    changed: Notify,
    /// Notified when a segment has begun.
    rotated: Notify,
    /// The last sequence number written to the device, durable or not.
    written_seq: Cell<u64>,
    /// All events up to this sequence number are durable.
    durable_seq: Cell<u64>,
    /// The clock in the last frame.
    written_clock_ms: Cell<u64>,
    bytes_written: Cell<u64>,
    failure: RefCell<Option<StoreError>>,
    closed: Cell<bool>,
}

/// The longest frame is at least this part of a segment.
const LEAST_FRAME: usize = 64;

/// Prepares without a commit.
#[derive(Default)]
struct Undecided {
    /// Their transactions, by sequence number.
    holds: RefCell<BTreeMap<u64, u64>>,
    /// No task waits for their commits; the next recovery resolves them.
    is_abandoned: Cell<bool>,
}

/// The chain of segments, and the writer's place in it.
struct Segments {
    position: RefCell<Position>,
    /// Consecutive segments that were abandoned because one of two copies failed.
    abandoned_in_a_row: Cell<usize>,
    /// The last recovered frame, which the first segment repeats.
    recovered_frame: RefCell<Option<Frame>>,
    /// Earlier failed starts have left segments that cannot be deleted yet.
    follows_failed_starts: bool,
}

/// The writer's place in the chain of segments.
#[derive(Default)]
struct Position {
    open: Option<OpenBlock>,
    /// The current segment; the next frame goes to page `next_page` of it.
    segment: u64,
    next_page: u32,
    /// Pages of the current segment whose writes have completed.
    completed_pages: u32,
    next_frame: u64,
    /// Frames below this sequence are durable.
    durable_frames: u64,
    /// The first recovered frame that no frame may declare durable yet.
    undeclared: Option<u64>,
    /// Frames that a power cut in a later write can destroy.
    open_word_lines: OpenWordLines,
    /// The sequence of the first frame of the current segment, and of the first one after its
    /// opening.
    began_at: u64,
    opened_at: u64,
    /// The next segment, which announces the current one.
    successor: Option<OpenBlock>,
    /// All segments that are not deleted, oldest first.
    segments: VecDeque<(u64, BlockId)>,
}

impl Position {
    /// The sequence below which the next frame declares frames durable.
    fn declared(&self) -> u64 {
        self.undeclared.map_or(self.durable_frames, |first| first.min(self.durable_frames))
    }
}

/// The state in which recovery hands the log to its writer.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// The needed segments, oldest first.
    pub segments: Vec<(u64, BlockId)>,
    /// The number of the last segment found, needed or not.
    pub last_segment: u64,
    /// The next frame's sequence.
    pub next_frame: u64,
    /// The first frame that is in one of two copies only and that no frame declares durable. If
    /// that copy is lost before the log is rewritten, the log ends in front of it, and that is no
    /// loss, unless a later frame has declared it durable.
    pub undeclared: Option<u64>,
    /// The last frame with events. Its write may have been interrupted by the power cut, so that a
    /// later start may fail to read it. So the writer writes it again.
    pub last_frame: Option<Frame>,
    /// The last sequence number found.
    pub seq: u64,
    /// Earlier failed starts have left segments that cannot be deleted yet.
    pub follows_failed_starts: bool,
}

impl Log {
    /// A log that continues after recovery. It writes nothing before [`start`](Log::start).
    pub fn new(
        shard: ShardId,
        blocks: BlockLayer,
        runtime: RuntimeHandle,
        clock: Rc<ExpiryClock>,
        values: ValueLog,
        durability: Durability,
        resume: Resume,
    ) -> Log {
        let last_frame = resume.last_frame.as_ref().map(|frame| frame.header.sequence);
        let durable_frames = last_frame.unwrap_or(resume.next_frame);
        let reach = Reach { next_frame: durable_frames, ..Reach::default() };
        let position = Position {
            open: None,
            segment: resume.last_segment,
            next_page: u32::MAX,
            completed_pages: u32::MAX,
            next_frame: resume.next_frame,
            durable_frames,
            undeclared: resume.undeclared,
            open_word_lines: OpenWordLines::new(reach),
            began_at: 0,
            opened_at: 0,
            successor: None,
            segments: resume.segments.into(),
        };
        let frame_bytes = Cell::new(longest_frame(&blocks));
        let inner = Inner {
            frame_bytes,
            shard,
            blocks,
            runtime,
            clock,
            values,
            durability,
            checkpoint: RefCell::default(),
            unwritten: Unwritten {
                pending: RefCell::default(),
                unfilled: RefCell::default(),
                unfilled_since: Cell::new(None),
                spare: RefCell::default(),
                writing_bytes: Cell::new(0),
                appended_seq: Cell::new(resume.seq),
                appended_starts: RefCell::default(),
                recorded_start: Cell::new(0),
                rolling_over: Cell::new(false),
            },
            requests: Requests::default(),
            progress: Progress {
                changed: Notify::new(),
                rotated: Notify::new(),
                written_seq: Cell::new(resume.seq),
                durable_seq: Cell::new(0),
                written_clock_ms: Cell::new(0),
                bytes_written: Cell::new(0),
                failure: RefCell::default(),
                closed: Cell::new(false),
            },
            undecided: Undecided::default(),
            segments: Segments {
                position: RefCell::new(position),
                abandoned_in_a_row: Cell::new(0),
                recovered_frame: RefCell::new(resume.last_frame),
                follows_failed_starts: resume.follows_failed_starts,
            },
        };
        Log { inner: Rc::new(inner) }
    }

    /// Limits the frames to so many bytes, at least to the longest or a sixty-fourth of a segment:
    /// an opening of many frames must leave room for others.
    pub fn limit_frames(&self, bytes: usize) {
        let longest = self.inner.frame_bytes.get();
        let least = self.inner.blocks.capacity_bytes() / LEAST_FRAME;
        self.inner.frame_bytes.set(bytes.clamp(least.min(longest), longest));
    }

    /// Starts the writer; `checkpoint` describes the shard at the start of each segment.
    pub fn start(&self, checkpoint: CheckpointMaker) {
        *self.inner.checkpoint.borrow_mut() = Some(checkpoint);
        let inner = Rc::clone(&self.inner);
        self.inner.runtime.spawn(Box::pin(async move { inner.write_forever().await }));
    }

    /// Declares the recovered frames durable: no recovery needs those that are in one copy only.
    pub fn declare_recovered(&self) {
        self.inner.segments.position.borrow_mut().undeclared = None;
    }

    /// Appends an event with its sequence number. Returns the number of a segment that is not later
    /// than the segment to which the event will be written.
    pub fn append(&self, event: &Event<'_>, seq: u64) -> u64 {
        let mut pending = self.inner.unwritten.pending.borrow_mut();
        let before = pending.len();
        let mut unfilled = self.inner.unwritten.unfilled.borrow_mut();
        event::encode_unfilled(event, &mut pending, &mut unfilled);
        if !unfilled.is_empty() && self.inner.unwritten.unfilled_since.get().is_none() {
            self.inner.unwritten.unfilled_since.set(Some(self.inner.runtime.now()));
        }
        drop(unfilled);
        // The writer waits for a first event, then for enough of them.
        let is_awaited = before == 0 || before < GATHER_BYTES && pending.len() >= GATHER_BYTES;
        if let Event::Edit(edit) = event {
            self.inner.unwritten.appended_starts.borrow_mut().push((pending.len(), edit.log_start));
        }
        drop(pending);
        let last = self.inner.unwritten.appended_seq.replace(seq);
        assert!(last <= seq, "shard {}: event {seq} is behind event {last}", self.inner.shard);
        if is_awaited {
            self.inner.requests.work.notify_one();
        }
        self.segment()
    }

    /// The current segment. While a checkpoint in the middle of the stream is encoded: the first
    /// needed segment that the written log records.
    pub fn segment(&self) -> u64 {
        if self.inner.unwritten.rolling_over.get() && !planted::bug(Bug::CheckpointAheadOfLog) {
            return self.inner.unwritten.recorded_start.get();
        }
        self.inner.segments.position.borrow().segment
    }

    /// The oldest segment that is not deleted.
    pub fn oldest_segment(&self) -> u64 {
        let position = self.inner.segments.position.borrow();
        position.segments.front().map_or(position.segment, |(number, _)| *number)
    }

    /// Bytes appended and not completely written.
    pub fn backlog_bytes(&self) -> usize {
        self.inner.unwritten.pending.borrow().len() + self.inner.unwritten.writing_bytes.get()
    }

    /// Whether all events up to `seq` are durable and every transaction among them is committed.
    pub fn is_stable(&self, seq: u64) -> bool {
        self.inner.is_stable(seq)
    }

    /// Waits until all events up to `seq` are durable and every transaction among them is
    /// committed.
    ///
    /// # Errors
    /// [`StoreError::Closed`] where the commit of a transaction among them was abandoned.
    pub async fn stable(&self, seq: u64) -> Result<()> {
        let undecidable = |log: &Inner| log.undecided.is_abandoned.get() && log.is_undecided(seq);
        self.wait_until(|log| log.is_stable(seq) || undecidable(log)).await?;
        if undecidable(&self.inner) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Ends all waits for commits: the coordinator may have stopped.
    pub fn abandon_undecided(&self) {
        self.inner.undecided.is_abandoned.set(true);
        self.inner.progress.changed.notify_all();
    }

    /// As [`stable`](Log::stable), with a sync before the end of the interval.
    pub async fn stable_soon(&self, seq: u64) -> Result<()> {
        self.request_sync(seq);
        self.stable(seq).await
    }

    /// Waits until all events up to `seq` are durable. Undecided transactions do not delay it.
    pub async fn written(&self, seq: u64) -> Result<()> {
        self.wait_until(|log| log.progress.durable_seq.get() >= seq).await
    }

    /// As [`written`](Log::written), with a sync before the end of the interval.
    pub async fn written_soon(&self, seq: u64) -> Result<()> {
        self.request_sync(seq);
        self.written(seq).await
    }

    /// Waits until all writes up to `seq` are durable; returns at once where the store's durability
    /// is an interval.
    pub async fn durable(&self, seq: u64) -> Result<()> {
        match self.inner.durability {
            Durability::Flash => self.stable(seq).await,
            Durability::Interval(_) => self.check(),
        }
    }

    /// Begins a sync, before the end of the interval, if events up to `seq` are not durable.
    pub fn request_sync(&self, seq: u64) {
        if self.inner.progress.durable_seq.get() < seq {
            self.inner.requests.sync.set(true);
            self.inner.requests.work.notify_one();
        }
    }

    async fn wait_until(&self, met: impl Fn(&Inner) -> bool) -> Result<()> {
        while !met(&self.inner) {
            self.check()?;
            if self.inner.progress.closed.get() {
                return Err(StoreError::Closed);
            }
            self.inner.progress.changed.notified().await;
        }
        Ok(())
    }

    /// The log is not stable from `seq` on until [`release_hold`](Log::release_hold) is called for
    /// the transaction.
    pub fn hold(&self, seq: u64, transaction: u64) {
        self.inner.undecided.holds.borrow_mut().insert(seq, transaction);
    }

    /// The lowest sequence number of an undecided transaction other than `but_for`; `u64::MAX`
    /// where there is none.
    pub fn undecided_from(&self, but_for: Option<u64>) -> u64 {
        let holds = self.inner.undecided.holds.borrow();
        let mut others = holds.iter().filter(|(_, held)| Some(**held) != but_for);
        others.next().map_or(u64::MAX, |(seq, _)| *seq)
    }

    /// The transaction is committed.
    pub fn release_hold(&self, transaction: u64) {
        self.inner.undecided.holds.borrow_mut().retain(|_, held| *held != transaction);
        self.inner.progress.changed.notify_all();
    }

    /// Fails the log: it acknowledges no further event.
    pub fn fail(&self, reason: &str) {
        let mut failure = self.inner.progress.failure.borrow_mut();
        failure.get_or_insert_with(|| StoreError::LogFailed(reason.to_owned()));
        drop(failure);
        self.inner.progress.changed.notify_all();
    }

    /// The error of a log that has failed.
    pub fn check(&self) -> Result<()> {
        self.inner.progress.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Requests a frame, which may be empty, for the clock that it carries.
    pub fn request_clock(&self) {
        self.inner.requests.clock.set(true);
        self.inner.requests.work.notify_one();
    }

    /// Starts a new segment, even if the current one has room, and waits until it is the current
    /// one.
    pub async fn rotate(&self) -> Result<()> {
        let current = self.inner.segments.position.borrow().segment;
        self.inner.requests.rotation.set(true);
        self.inner.requests.work.notify_one();
        self.wait_until(|log| log.segments.position.borrow().segment > current).await
    }

    /// Waits until a segment begins: the log may be long now, also without a write of a client.
    pub fn rotated(&self) -> impl Future<Output = ()> + use<> {
        self.inner.progress.rotated.notified()
    }

    /// Waits until the log carries a clock of at least `ms`.
    pub async fn clock_logged(&self, ms: u64) -> Result<()> {
        self.wait_until(|log| log.clock.is_logged(ms)).await
    }

    /// A client has seen that a key has expired at `expired_at_ms`. The clock must be logged, so
    /// that no restart finds the key alive, even with an earlier wall clock.
    pub async fn note_seen_expired(&self, expired_at_ms: u64) -> Result<()> {
        if self.inner.clock.is_logged(expired_at_ms) {
            return Ok(());
        }
        self.request_clock();
        match self.inner.durability {
            Durability::Flash => self.clock_logged(expired_at_ms).await,
            Durability::Interval(_) => Ok(()),
        }
    }

    /// The blocks of the segments, oldest first.
    pub fn segments(&self) -> Vec<BlockId> {
        self.inner.segments.position.borrow().segments.iter().map(|(_, block)| *block).collect()
    }

    /// All blocks of the log: those of the segments, and the announced next one.
    pub fn blocks(&self) -> Vec<BlockId> {
        let position = self.inner.segments.position.borrow();
        let segments = position.segments.iter().map(|(_, block)| *block);
        segments.chain(position.successor.as_ref().map(OpenBlock::id)).collect()
    }

    /// Bytes of frames written.
    pub fn bytes_written(&self) -> u64 {
        self.inner.progress.bytes_written.get()
    }

    /// Bytes of all segments that are not deleted.
    pub fn live_bytes(&self) -> u64 {
        let position = self.inner.segments.position.borrow();
        let full = position.segments.len().saturating_sub(1) * self.inner.blocks.capacity_bytes();
        let page = if position.next_page == u32::MAX { 0 } else { u64::from(position.next_page) };
        full as u64 + page * self.inner.blocks.page_bytes() as u64
    }

    /// Bytes of frames in this segment and in later ones.
    pub fn bytes_from(&self, segment: u64) -> u64 {
        let position = self.inner.segments.position.borrow();
        let before = position.segments.iter().filter(|(number, _)| *number < segment).count();
        self.live_bytes() - (before * self.inner.blocks.capacity_bytes()) as u64
    }

    /// Deletes the segments before `segment`, but not the current one. The caller guarantees that a
    /// durable event records that they are not needed.
    pub fn release_before(&self, segment: u64) {
        let mut position = self.inner.segments.position.borrow_mut();
        let current = position.segment;
        while let Some(&(number, block)) = position.segments.front()
            && number < segment.min(current)
        {
            position.segments.pop_front();
            self.inner.blocks.delete(block);
        }
    }

    /// Writes all pending events and stops the writer.
    pub async fn close(&self) -> Result<()> {
        self.inner.requests.closing.set(true);
        self.inner.requests.sync.set(true);
        self.inner.requests.work.notify_one();
        while !self.inner.progress.closed.get() && self.inner.progress.failure.borrow().is_none() {
            self.inner.progress.changed.notified().await;
        }
        self.check()
    }
}

impl Inner {
    fn is_undecided(&self, seq: u64) -> bool {
        let undecided =
            self.undecided.holds.borrow().keys().next().is_some_and(|held| *held <= seq);
        undecided && !planted::bug(Bug::HeldIsStable)
    }

    fn is_stable(&self, seq: u64) -> bool {
        self.progress.durable_seq.get() >= seq && !self.is_undecided(seq)
    }
}
