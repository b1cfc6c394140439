//! The superblocks of a domain by block: their handles, their frames under way, and the last frame
//! in each that keeps it until a newer root.

use crate::frames::Completion;
use softflash_base::cast::{index, wide};
use softflash_base::planted::{self, Bug};
use softflash_ftl::Superblock;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

/// The state of one superblock.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    handle: Option<Superblock>,
    /// The generation of its frames, where the headers are lost and the handle has a new one.
    generation: Option<u64>,
    /// Whether the heads of its frames are bound to the domain.
    is_bound: bool,
    /// The number of its last frame with changes or with records of them. Recovery needs these
    /// frames until a root is newer.
    pinned_by: Option<u64>,
}

/// The slots of frames under way, by block.
type UnderWay = HashMap<u32, Vec<(Range<u32>, Completion)>>;

/// All superblocks of a domain.
pub(crate) struct Superblocks {
    states: RefCell<Vec<State>>,
    under_way: RefCell<UnderWay>,
}

impl Superblocks {
    pub fn new(blocks: u32) -> Superblocks {
        Superblocks {
            states: RefCell::new(vec![State::default(); index(blocks)]),
            under_way: RefCell::default(),
        }
    }

    /// The domain has this many blocks now. Fewer than before have no effect.
    pub fn grow(&self, blocks: u32) {
        let mut states = self.states.borrow_mut();
        let blocks = states.len().max(index(blocks));
        states.resize(blocks, State::default());
    }

    pub fn handle(&self, block: u32) -> Option<Superblock> {
        self.states.borrow()[index(block)].handle
    }

    /// A superblock was opened, or found.
    ///
    /// # Panics
    /// If its block has one that was not released.
    pub fn set(&self, block: u32, superblock: Superblock) {
        let state = &mut self.states.borrow_mut()[index(block)];
        assert_eq!(state.handle, None, "block {block} has a second superblock");
        *state = State { handle: Some(superblock), ..State::default() };
    }

    /// The heads of the frames of a superblock are bound to the domain, or to the superblock alone,
    /// as where there is no table of sets.
    pub fn bind(&self, block: u32, is_bound: bool) {
        self.states.borrow_mut()[index(block)].is_bound = is_bound;
    }

    /// Whether the heads of its frames are bound to the domain.
    pub fn is_bound(&self, block: u32) -> bool {
        self.states.borrow()[index(block)].is_bound
    }

    /// The frames of a superblock were written with another generation than the one of its handle.
    pub fn set_generation(&self, block: u32, generation: u64) {
        self.states.borrow_mut()[index(block)].generation = Some(generation);
    }

    /// The generation with which the frames of a superblock are written.
    pub fn generation(&self, block: u32, superblock: &Superblock) -> u64 {
        self.states.borrow()[index(block)].generation.unwrap_or(superblock.generation)
    }

    /// Forgets a superblock that is released.
    ///
    /// # Panics
    /// If a frame is being programmed in it.
    pub fn take(&self, block: u32) -> Option<Superblock> {
        assert!(!self.is_busy(block), "block {block} is released with a frame under way");
        std::mem::take(&mut self.states.borrow_mut()[index(block)]).handle
    }

    /// A frame that recovery needs until the next root is in this superblock.
    ///
    /// # Panics
    /// If the superblock was released.
    pub fn pin(&self, block: u32, sequence: u64) {
        let state = &mut self.states.borrow_mut()[index(block)];
        assert!(state.handle.is_some(), "block {block} holds frame {sequence} and is released");
        state.pinned_by = Some(sequence);
    }

    /// Whether recovery from a root at this frame needs nothing in a superblock.
    pub fn is_unpinned(&self, block: u32, root_sequence: u64) -> bool {
        let pinned_by = self.states.borrow()[index(block)].pinned_by;
        planted::bug(Bug::PinsIgnored) || pinned_by.is_none_or(|sequence| sequence < root_sequence)
    }

    /// A frame at these slots is being programmed.
    ///
    /// # Panics
    /// If the superblock was released.
    pub fn begin_frame(&self, block: u32, slots: Range<u32>, completion: Completion) {
        assert!(self.handle(block).is_some(), "block {block} takes a frame and is released");
        self.under_way.borrow_mut().entry(block).or_default().push((slots, completion));
    }

    /// The frame that starts at this slot has ended.
    pub fn end_frame(&self, block: u32, first: u32) {
        let mut under_way = self.under_way.borrow_mut();
        let frames = under_way.entry(block).or_default();
        let before = frames.len();
        frames.retain(|(slots, _)| slots.start != first);
        assert_eq!(frames.len() + 1, before, "no frame at slot {first} was under way");
        if frames.is_empty() {
            under_way.remove(&block);
        }
    }

    /// The frame under way that has a slot; `None` if the slot can be read.
    pub fn frame_at(&self, block: u32, slot: u32) -> Option<Completion> {
        let under_way = self.under_way.borrow();
        let frames = under_way.get(&block)?;
        let found = frames.iter().find(|(slots, _)| slots.contains(&slot));
        found.map(|(_, completion)| completion.clone())
    }

    /// Memory of the states, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        wide(size_of_val(&**self.states.borrow()))
    }

    /// Whether frames of a superblock are under way.
    pub fn is_busy(&self, block: u32) -> bool {
        self.under_way.borrow().contains_key(&block)
    }
}
