//! The order of a domain's frames: their numbers, those of the changes in them, and the gate that
//! keeps frames behind an operation until it has its place.

use crate::changes::{Changes, Teller, Told};
use crate::format::record::Contents;
use crate::format::tag::{Purpose, Tag};
use crate::frames::{Frames, RootUnderWay};
use softflash_runtime::Event;
use std::cell::Cell;

/// The order of frames and changes.
pub(crate) struct Order {
    frames: Frames,
    changes: Changes,
    /// Frames with data of frames whose program failed.
    rewrites: Cell<u64>,
    /// Reset while an operation is written.
    gate: Event,
    /// Reset while the domain rests: no frame begins.
    works: Event,
    /// All frames before are padded, too.
    is_padded: Cell<bool>,
}

impl Order {
    /// The order goes on with these numbers.
    pub fn from(frames: Frames, changes: Changes) -> Order {
        let gate = Event::new();
        gate.set();
        let works = Event::new();
        works.set();
        let is_padded = Cell::new(false);
        Order { frames, changes, rewrites: Cell::new(0), gate, works, is_padded }
    }

    /// The number of the next frame.
    pub fn next_frame(&self) -> u64 {
        self.frames.next()
    }

    /// The number of the next change.
    pub fn next_change(&self) -> u64 {
        self.changes.next()
    }

    /// The tag of a superblock that is opened now.
    pub fn tag(&self, purpose: Purpose, has_table: bool) -> Tag {
        let (first_sequence, proven_below) = (self.frames.next(), self.changes.proven_below());
        Tag { purpose, first_sequence, proven_below, has_table }
    }

    /// The next frame, which is for this unit.
    pub fn teller(&self, unit: u16, is_alone: bool) -> Teller {
        let (sequence, durable_below) = (self.frames.next(), self.frames.durable_below());
        Teller { sequence, unit, durable_below, is_alone }
    }

    /// What the head of a frame of so many entries says about changes.
    pub fn tell(&self, teller: Teller, entries: usize, has_change: bool) -> Told {
        self.changes.tell(teller, entries, has_change)
    }

    /// A frame is appended.
    ///
    /// # Panics
    /// If it is not the next one: its head would have the number of another frame.
    pub fn begin(&self, teller: Teller) {
        let number = self.frames.begin();
        assert_eq!(number, teller.sequence, "the head of a frame has the number of another one");
    }

    /// The frame with this head is appended, with these contents. Whether a flush is due, as the
    /// records of changes take memory.
    pub fn told(&self, teller: Teller, told: &Told, contents: Option<Contents>) -> bool {
        self.changes.told(teller, told, contents);
        self.changes.are_many()
    }

    /// The program of a frame has failed: its own change and what its head says are not there.
    pub fn program_failed(&self, sequence: u64) {
        self.changes.failed(sequence);
    }

    /// The data of a frame that ends could not be written anywhere.
    pub fn data_failed(&self, sequence: u64) {
        self.frames.fail(sequence);
    }

    /// A frame with data of a frame whose program failed is appended.
    pub fn rewrite_begun(&self) {
        self.rewrites.set(self.rewrites.get() + 1);
    }

    /// The number of such frames.
    pub fn rewrites(&self) -> u64 {
        self.rewrites.get()
    }

    /// The data of a frame are programmed, there or elsewhere.
    pub fn end(&self, sequence: u64) {
        self.frames.end(sequence);
    }

    /// Waits until all frames before the next one have ended; returns the number of that.
    pub async fn all_ended(&self) -> u64 {
        let end = self.frames.next();
        self.frames.ended_below(end).await;
        end
    }

    /// All frames below `end` are durable. Whether some change is not proven.
    pub fn flushed(&self, end: u64, is_alone: bool) -> bool {
        self.frames.set_durable_below(end);
        self.changes.durable(self.frames.durable_below(), is_alone)
    }

    /// The copies of a root are the next frames: until the result is dropped, none of them counts
    /// as durable.
    pub fn begin_root(&self) -> RootUnderWay<'_> {
        self.frames.begin_root()
    }

    /// The root at frame `root`, and all frames below `end`, are durable. False if recovery would
    /// have to check a frame behind the root.
    pub fn root_flushed(&self, root: u64, end: u64) -> bool {
        self.frames.forgive_below(root);
        self.frames.settle();
        self.frames.set_durable_below(end);
        self.frames.durable_below() >= end
    }

    /// A durable root holds all changes below a number: recovery does not look for them.
    pub fn covered_below(&self, change: u64) {
        self.changes.covered_below(change);
    }

    /// Recovery is complete: the next one finds what this one has found.
    pub fn settle(&self) {
        self.frames.settle();
        self.changes.settle();
    }

    /// The unit of the oldest change below a number that is not proven: another one has to say it.
    pub fn first_unproven(&self, below: u64) -> Option<u16> {
        self.changes.first_unproven(below)
    }

    /// Whether frames may be appended.
    pub fn is_open(&self) -> bool {
        self.gate.is_set() && self.works.is_set()
    }

    /// Waits until frames may be appended.
    pub async fn opened(&self) {
        while !self.is_open() {
            self.gate.wait().await;
            self.works.wait().await;
        }
    }

    /// No frame begins from now on, beside those of an operation that is being written and the
    /// padding of a flush.
    pub fn rest(&self) {
        self.works.reset();
    }

    /// Frames begin again.
    pub fn resume(&self) {
        self.is_padded.set(false);
        self.works.set();
    }

    /// Whether no frame begins.
    pub fn rests(&self) -> bool {
        !self.works.is_set()
    }

    /// A flush has padded the superblocks of a domain that rests: the next one adds nothing.
    ///
    /// # Panics
    /// If the domain works.
    pub fn padded_at_rest(&self) {
        assert!(self.rests(), "frames are appended behind the padding");
        self.is_padded.set(true);
    }

    /// Whether nothing was appended since the padding of a flush.
    pub fn is_padded(&self) -> bool {
        self.is_padded.get()
    }

    /// Waits as long as the domain rests.
    pub async fn works(&self) {
        self.works.wait().await;
    }

    /// Waits until no operation is being written.
    pub async fn operation_ended(&self) {
        self.gate.wait().await;
    }

    /// Keeps other frames back until the result is dropped.
    ///
    /// # Panics
    /// If the gate is closed: an operation would be written before another one has its place.
    pub fn close(&self) -> ClosedGate {
        assert!(self.is_open(), "two operations are written at once");
        self.gate.reset();
        ClosedGate(self.gate.clone())
    }
}

/// The gate behind which frames wait; it opens when this is dropped.
pub(crate) struct ClosedGate(Event);

impl Drop for ClosedGate {
    fn drop(&mut self) {
        self.0.set();
    }
}
