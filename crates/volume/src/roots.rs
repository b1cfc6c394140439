//! The roots of a domain on flash: which one recovery begins with, and what came after it.

use softflash_base::cast;
use std::cell::{Cell, RefCell};

/// The roots of a domain.
#[derive(Default)]
pub(crate) struct Roots {
    /// The number of the last root, which may not be whole.
    newest: Cell<u64>,
    /// The number of the durable root.
    durable: Cell<u64>,
    /// The frame of the durable root: recovery needs no older ones.
    sequence: Cell<u64>,
    /// Whether the last checkpoint has failed.
    has_failed: Cell<bool>,
    /// Whether the next checkpoint writes leaves again because the map takes much space.
    is_sparse: Cell<bool>,
    /// Entries of frames since the last root.
    entries: Cell<u64>,
    /// Blocks that hold leaves and roots.
    blocks: RefCell<Vec<u32>>,
}

impl Roots {
    /// A recovery begins with the root of frame `sequence`, whose number is `durable`.
    pub fn found(&self, sequence: u64, durable: u64) {
        self.sequence.set(sequence);
        self.durable.set(durable);
    }

    /// The newest root that was found, whole or not: the next one gets another number.
    pub fn found_newest(&self, newest: u64) {
        self.newest.set(newest);
    }

    /// The number of the durable root.
    pub fn durable(&self) -> u64 {
        self.durable.get()
    }

    /// The frame of the durable root.
    pub fn sequence(&self) -> u64 {
        self.sequence.get()
    }

    /// The number of the next root, which is being written.
    ///
    /// # Panics
    /// If it is older than the durable one.
    pub fn next(&self) -> u64 {
        let (next, durable) = (self.newest.get() + 1, self.durable.get());
        assert!(next >= durable, "root {next} would be older than the durable root {durable}");
        self.newest.set(next);
        next
    }

    /// The root that was written last is durable, and recovery begins with its frame.
    ///
    /// # Panics
    /// If an older frame is to be the first one that recovery needs, or the root is older.
    pub fn adopt(&self, sequence: u64) {
        let before = self.sequence.get();
        assert!(sequence >= before, "the root of frame {sequence} follows that of frame {before}");
        let (newest, durable) = (self.newest.get(), self.durable.get());
        assert!(newest >= durable, "root {newest} replaces the newer root {durable}");
        self.durable.set(newest);
        self.sequence.set(sequence);
    }

    /// Whether the last checkpoint has failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed.get()
    }

    /// A checkpoint has ended.
    pub fn note(&self, has_failed: bool) {
        self.has_failed.set(has_failed);
    }

    /// Whether the next checkpoint writes leaves again because the map takes much space.
    pub fn is_sparse(&self) -> bool {
        self.is_sparse.get()
    }

    /// The map takes more space than it should, or does not.
    pub fn note_sparse(&self, is_sparse: bool) {
        self.is_sparse.set(is_sparse);
    }

    /// Counts entries that recovery would have to replay; returns their number.
    pub fn count_entries(&self, entries: u64) -> u64 {
        self.entries.set(self.entries.get() + entries);
        self.entries.get()
    }

    /// Entries since the last root.
    pub fn entries(&self) -> u64 {
        self.entries.get()
    }

    /// A root has the state of now: entries count from here on.
    pub fn restart_count(&self) {
        self.entries.set(0);
    }

    /// A block for leaves and roots was opened, or found.
    ///
    /// # Panics
    /// If it is known: it would be released twice.
    pub fn add_block(&self, block: u32) {
        assert!(!self.has_block(block), "block {block} is opened for the map twice");
        self.blocks.borrow_mut().push(block);
    }

    /// Whether a block holds leaves or roots.
    pub fn has_block(&self, block: u32) -> bool {
        self.blocks.borrow().contains(&block)
    }

    /// Blocks that hold leaves and roots.
    pub fn blocks(&self) -> u32 {
        cast::saturating_u32(self.blocks.borrow().len())
    }

    /// Keeps the blocks that a root needs; returns the others.
    pub fn retain(&self, is_needed: impl Fn(u32) -> bool) -> Vec<u32> {
        let (kept, rest) = self.blocks.take().into_iter().partition(|&block| is_needed(block));
        self.blocks.replace(kept);
        rest
    }
}
