//! The shard's log: a chain of blocks (*segments*) that everything is written to before it counts.
//!
//! Events are appended to a stream in memory and become visible at once; one task writes what has gathered as
//! frames, so that many writers share one wait for the flash (group commit). Segments that recovery does not
//! need are given back; each starts with a checkpoint, so recovery can start with any of them that the log names.
//!
//! A checkpoint describes memory, which is ahead of the log by the events that are still on their way. So one made
//! in the middle of the stream names only a start that the log before it already vouches for; its own segment can be
//! named by edits behind it, which arrive after all that it was ahead by.

mod beginning;
pub mod chain;
mod kept;
mod open_word_lines;
mod piece;
pub mod reader;
mod scrub;
mod segments;
#[cfg(test)]
mod tests;
mod writer;

pub use crate::format::log::event::{self, Edit, Event, PatchEntry};

use super::clock::ExpiryClock;
use crate::error::{Result, StoreError};
use crate::format::log::Frame;
use crate::options::Durability;
use open_word_lines::{OpenWordLines, Reach};
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_blocks::{BlockId, BlockLayer, OpenBlock};
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Makes the event stream of a checkpoint; `log_start` is decided by the maker.
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
    durability: Durability,
    checkpoint: RefCell<Option<CheckpointMaker>>,
    stream: Stream,
    wanted: Wanted,
    progress: Progress,
    undecided: Undecided,
    segments: Segments,
}

/// Events on their way into the log.
struct Stream {
    /// Events appended and not yet taken by the writer.
    pending: RefCell<Vec<u8>>,
    /// Bytes of events that the writer has taken and not yet written all.
    writing_bytes: Cell<usize>,
    appended_seq: Cell<u64>,
    /// The ends of edits in `pending`, with the first segment needed that each of them records.
    appended_starts: RefCell<Vec<(usize, u64)>>,
    /// The first segment needed, as the log records it: by edits, or by the checkpoint of the start.
    recorded_start: Cell<u64>,
    /// A checkpoint is being made for a segment that starts in the middle of the stream.
    rolling_over: Cell<bool>,
}

/// Requests to the writer.
#[derive(Default)]
struct Wanted {
    /// Rings with each of them, and with new events.
    work: Notify,
    /// A task waits for all events appended so far.
    hurry: Cell<bool>,
    clock: Cell<bool>,
    /// A new segment is wanted.
    renewal: Cell<bool>,
    closing: Cell<bool>,
}

/// The writer's progress.
struct Progress {
    /// Rings when something has been written, or has failed.
    changed: Notify,
    /// Everything up to here is on the device, durable or not.
    written_seq: Cell<u64>,
    /// Everything up to here is durable.
    durable_seq: Cell<u64>,
    /// The clock in the last frame.
    written_clock_ms: Cell<u64>,
    bytes_written: Cell<u64>,
    failure: RefCell<Option<StoreError>>,
    closed: Cell<bool>,
}

/// Prepares without a commit.
#[derive(Default)]
struct Undecided {
    /// Their transactions, by sequence number.
    holds: RefCell<BTreeMap<u64, u64>>,
    /// The next recovery decides them.
    has_ended: Cell<bool>,
}

/// The chain of segments, and the writer's place in it.
struct Segments {
    position: RefCell<Position>,
    /// Segments that were left one after the other because one of two copies failed.
    left_short: Cell<usize>,
    /// The frame that the first segment repeats.
    recovered_frame: RefCell<Option<Frame>>,
    /// Starts before this one have begun segments that came to nothing, and cannot be released yet.
    follows_vain_starts: bool,
}

/// The writer's place in the chain of segments.
#[derive(Default)]
struct Position {
    open: Option<OpenBlock>,
    /// The current segment; the next frame goes to page `next_page` of it.
    segment: u64,
    next_page: u32,
    /// Pages of the current segment that were written.
    landed_pages: u32,
    next_frame: u64,
    /// Frames below this sequence are durable.
    durable_frames: u64,
    /// Frames that a power cut in a later write can destroy.
    open_word_lines: OpenWordLines,
    /// The sequence of the first frame behind the opening of the current segment.
    opened_at: u64,
    /// The next segment, which announces the current one.
    successor: Option<OpenBlock>,
    /// All segments kept, oldest first.
    segments: VecDeque<(u64, BlockId)>,
}

/// Where a log goes on after recovery.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// The segments that are needed, oldest first.
    pub segments: Vec<(u64, BlockId)>,
    /// The last segment found, needed or not.
    pub last_segment: u64,
    /// The next frame's sequence.
    pub next_frame: u64,
    /// The last frame with events. It may have been under way when the power went: well readable and gone the next
    /// time. So it is written again.
    pub last_frame: Option<Frame>,
    /// The last sequence number found.
    pub seq: u64,
    /// Starts before this one have begun segments that have come to nothing, and cannot be given back yet.
    pub follows_vain_starts: bool,
}

impl Log {
    /// A log that goes on where recovery ended. Nothing is written before
    /// [`start`](Log::start).
    pub fn new(
        shard: ShardId,
        blocks: BlockLayer,
        runtime: RuntimeHandle,
        clock: Rc<ExpiryClock>,
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
            landed_pages: u32::MAX,
            next_frame: resume.next_frame,
            durable_frames,
            open_word_lines: OpenWordLines::new(reach),
            opened_at: 0,
            successor: None,
            segments: resume.segments.into(),
        };
        let inner = Inner {
            shard,
            blocks,
            runtime,
            clock,
            durability,
            checkpoint: RefCell::default(),
            stream: Stream {
                pending: RefCell::default(),
                writing_bytes: Cell::new(0),
                appended_seq: Cell::new(resume.seq),
                appended_starts: RefCell::default(),
                recorded_start: Cell::new(0),
                rolling_over: Cell::new(false),
            },
            wanted: Wanted::default(),
            progress: Progress {
                changed: Notify::new(),
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
                left_short: Cell::new(0),
                recovered_frame: RefCell::new(resume.last_frame),
                follows_vain_starts: resume.follows_vain_starts,
            },
        };
        Log { inner: Rc::new(inner) }
    }

    /// Starts the writer; `checkpoint` describes the shard at the start of each segment.
    pub fn start(&self, checkpoint: CheckpointMaker) {
        *self.inner.checkpoint.borrow_mut() = Some(checkpoint);
        let inner = Rc::clone(&self.inner);
        self.inner.runtime.spawn(Box::pin(async move { inner.write_forever().await }));
    }

    /// Appends an event with its sequence number. Returns a segment that is not later than the one it will be
    /// written to.
    pub fn append(&self, event: &Event<'_>, seq: u64) -> u64 {
        let mut pending = self.inner.stream.pending.borrow_mut();
        event::encode(event, &mut pending);
        if let Event::Edit(edit) = event {
            self.inner.stream.appended_starts.borrow_mut().push((pending.len(), edit.log_start));
        }
        drop(pending);
        self.inner.stream.appended_seq.set(seq);
        self.inner.wanted.work.notify_one();
        self.segment()
    }

    /// The current segment. To the maker of a checkpoint, where events are still on their way into the log: the
    /// first segment that is needed as long as they have not arrived.
    pub fn segment(&self) -> u64 {
        if self.inner.stream.rolling_over.get() && !planted::bug(Bug::CheckpointAheadOfLog) {
            return self.inner.stream.recorded_start.get();
        }
        self.inner.segments.position.borrow().segment
    }

    /// The oldest segment that is kept.
    pub fn oldest_segment(&self) -> u64 {
        let position = self.inner.segments.position.borrow();
        position.segments.front().map_or(position.segment, |(number, _)| *number)
    }

    /// Bytes appended and not yet written, those being written included.
    pub fn backlog_bytes(&self) -> usize {
        self.inner.stream.pending.borrow().len() + self.inner.stream.writing_bytes.get()
    }

    /// Waits until everything up to `seq` is durable and no transaction below is undecided.
    ///
    /// # Errors
    /// [`StoreError::Closed`] where a transaction below will not be decided any more.
    pub async fn stable(&self, seq: u64) -> Result<()> {
        let undecidable = |log: &Inner| log.undecided.has_ended.get() && log.is_undecided(seq);
        self.wait_until(|log| log.is_stable(seq) || undecidable(log)).await?;
        if undecidable(&self.inner) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// From now on nobody waits for transactions to be decided: who decides may have stopped.
    pub fn end_undecided(&self) {
        self.inner.undecided.has_ended.set(true);
        self.inner.progress.changed.notify_all();
    }

    /// As [`stable`](Log::stable), without waiting for the end of the interval.
    pub async fn stable_soon(&self, seq: u64) -> Result<()> {
        self.hasten(seq);
        self.stable(seq).await
    }

    /// Waits until everything up to `seq` is durable, whatever becomes of undecided transactions.
    pub async fn written(&self, seq: u64) -> Result<()> {
        self.wait_until(|log| log.progress.durable_seq.get() >= seq).await
    }

    /// As [`written`](Log::written), without waiting for the end of the interval.
    pub async fn written_soon(&self, seq: u64) -> Result<()> {
        self.hasten(seq);
        self.written(seq).await
    }

    fn hasten(&self, seq: u64) {
        if self.inner.progress.durable_seq.get() < seq {
            self.inner.wanted.hurry.set(true);
            self.inner.wanted.work.notify_one();
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

    /// The log is not stable from `seq` on until the transaction is [let go](Log::let_go).
    pub fn hold(&self, seq: u64, transaction: u64) {
        self.inner.undecided.holds.borrow_mut().insert(seq, transaction);
    }

    /// The lowest sequence number of what is undecided, but for this transaction; `u64::MAX` where all is decided.
    pub fn undecided_from(&self, but_for: Option<u64>) -> u64 {
        let holds = self.inner.undecided.holds.borrow();
        let mut others = holds.iter().filter(|(_, held)| Some(**held) != but_for);
        others.next().map_or(u64::MAX, |(seq, _)| *seq)
    }

    /// The transaction is committed.
    pub fn let_go(&self, transaction: u64) {
        self.inner.undecided.holds.borrow_mut().retain(|_, held| *held != transaction);
        self.inner.progress.changed.notify_all();
    }

    /// Nothing more is acknowledged, for this reason.
    pub fn fail(&self, reason: &str) {
        let mut failure = self.inner.progress.failure.borrow_mut();
        failure.get_or_insert_with(|| StoreError::LogFailed(reason.to_owned()));
        drop(failure);
        self.inner.progress.changed.notify_all();
    }

    /// The error that stopped the log, if any has.
    pub fn check(&self) -> Result<()> {
        self.inner.progress.failure.borrow().clone().map_or(Ok(()), Err)
    }

    /// Writes a frame soon, even with nothing in it, for the clock that it carries.
    pub fn request_clock(&self) {
        self.inner.wanted.clock.set(true);
        self.inner.wanted.work.notify_one();
    }

    /// Begins a new segment, though there is room in the current one, and waits for it.
    pub async fn renew(&self) -> Result<()> {
        let current = self.inner.segments.position.borrow().segment;
        self.inner.wanted.renewal.set(true);
        self.inner.wanted.work.notify_one();
        self.wait_until(|log| log.segments.position.borrow().segment > current).await
    }

    /// Waits until the log carries a clock of at least `ms`.
    pub async fn clock_logged(&self, ms: u64) -> Result<()> {
        self.wait_until(|log| log.clock.is_logged(ms)).await
    }

    /// The blocks of the segments kept, oldest first.
    pub fn segments(&self) -> Vec<BlockId> {
        self.inner.segments.position.borrow().segments.iter().map(|(_, block)| *block).collect()
    }

    /// Bytes of frames written.
    pub fn bytes_written(&self) -> u64 {
        self.inner.progress.bytes_written.get()
    }

    /// Bytes of the segments kept.
    pub fn live_bytes(&self) -> u64 {
        let position = self.inner.segments.position.borrow();
        let full = position.segments.len().saturating_sub(1) * self.inner.blocks.capacity_bytes();
        let page = if position.next_page == u32::MAX { 0 } else { u64::from(position.next_page) };
        full as u64 + page * self.inner.blocks.page_bytes() as u64
    }

    /// Bytes of frames in this segment and those behind it.
    pub fn bytes_from(&self, segment: u64) -> u64 {
        let position = self.inner.segments.position.borrow();
        let before = position.segments.iter().filter(|(number, _)| *number < segment).count();
        self.live_bytes() - (before * self.inner.blocks.capacity_bytes()) as u64
    }

    /// Gives back segments below `segment`, the current one excepted. The caller has made sure that a durable
    /// event says that they are not needed.
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

    /// Writes out everything and ends the writer.
    pub async fn close(&self) -> Result<()> {
        self.inner.wanted.closing.set(true);
        self.inner.wanted.hurry.set(true);
        self.inner.wanted.work.notify_one();
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
