//! The victims of a drive's bands: blocks whose valid pages are read, and then programmed in bands
//! of collection. A block is erased when all of its pages have been programmed elsewhere.

use crate::shape::Shape;
use softflash_mapping::{Pace, PageMap};
use std::collections::VecDeque;

/// Pages that are moved at once, for each page of a row of all lanes.
const MOVES_OF_ROWS: u32 = 2;

/// Set in the count of a block's moves: no page of it is left to be read.
const READ: u32 = 1 << 31;

/// Collection keeps ahead of the host by this part of the room, for the time of programs and
/// erases.
const AHEAD: u32 = 8;

/// The victims under way.
#[derive(Debug)]
pub(crate) struct Victims {
    /// Those that still have pages to be read, and the one whose turn it is.
    reading: Vec<Victim>,
    turn: usize,
    at_once: usize,
    /// Moves under way: of each block, and of all.
    moves_of: Vec<u32>,
    moves: u32,
    most_moves: u32,
    pace: Pace,
    /// Blocks that wait for their erase, by die, and dies that have not been told.
    erases: Vec<VecDeque<u32>>,
    untold: Vec<u32>,
    /// Whether the next victim waits for room: until a block is erased or full.
    waits: bool,
}

/// Blocks that are collected together.
#[derive(Debug)]
pub(crate) struct Victim {
    /// The stream that takes its pages, and the pages that it has claimed there and not read yet.
    stream: u32,
    claimed: u32,
    /// Its blocks with the page from which on they are read, and the one that is next.
    blocks: Vec<(u32, u32)>,
    turn: usize,
}

/// What the next page of collection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextMove {
    /// This physical page.
    Page(u32),
    /// This block has none left, and its victim gives up so many pages of a stream.
    Block { block: u32, stream: u32, unclaimed: u32 },
}

impl Victim {
    /// Blocks whose `valid` pages go to a stream.
    pub(crate) fn new(stream: u32, valid: u32, blocks: &[u32], shape: &Shape) -> Victim {
        let blocks = blocks.iter().map(|&block| (block, shape.first_page_of(block))).collect();
        Victim { stream, claimed: valid, blocks, turn: 0 }
    }
}

impl Victims {
    /// No victims; at most so many at once.
    pub(crate) fn new(shape: &Shape, at_once: u32) -> Victims {
        Victims {
            reading: Vec::new(),
            turn: 0,
            at_once: at_once as usize,
            moves_of: vec![0; shape.blocks_end() as usize],
            moves: 0,
            most_moves: MOVES_OF_ROWS * shape.groups() * shape.row_end(0),
            pace: Pace::default(),
            erases: vec![VecDeque::new(); shape.dies() as usize],
            untold: Vec::new(),
            waits: false,
        }
    }

    /// Whether one more can begin.
    #[inline]
    pub(crate) fn take_more(&self) -> bool {
        self.reading.len() < self.at_once && !self.waits
    }

    /// The next victim waits for room.
    pub(crate) fn wait(&mut self) {
        self.waits = true;
    }

    /// There may be room for the next victim.
    #[inline]
    pub(crate) fn go_on(&mut self) {
        self.waits = false;
    }

    /// A victim begins. It leaves room for so many pages of the host.
    pub(crate) fn begin(&mut self, victim: Victim, room: u32) {
        let room = room - room / AHEAD;
        match self.reading.is_empty() {
            true => self.pace = Pace::new(victim.claimed, room),
            false => self.pace.add(victim.claimed, room),
        }
        self.reading.push(victim);
    }

    /// The host has written a page.
    #[inline]
    pub(crate) fn host_wrote(&mut self) {
        if !self.reading.is_empty() {
            self.pace.wrote(1);
        }
    }

    /// Whether the host has to wait for collection: it is ahead by more moves than are made at
    /// once.
    #[inline]
    pub(crate) fn hold_host(&self) -> bool {
        !self.reading.is_empty() && self.pace.owes_more_than(self.most_moves)
    }

    /// Whether a page is to be read now: collection has fallen behind the host, or the host
    /// `waits` for it. A block without valid pages costs nothing, and is freed at once.
    #[inline]
    pub(crate) fn are_due(&self, waits: bool) -> bool {
        !self.reading.is_empty()
            && self.moves < self.most_moves
            && (waits || self.pace.owes() || self.reading.iter().any(|victim| victim.claimed == 0))
    }

    /// The next page to be moved.
    pub(crate) fn next(&mut self, map: &PageMap, shape: &Shape) -> Option<NextMove> {
        if self.turn >= self.reading.len() {
            self.turn = 0;
        }
        let victim = self.reading.get_mut(self.turn)?;
        if victim.turn >= victim.blocks.len() {
            victim.turn = 0;
        }
        let (block, from) = victim.blocks[victim.turn];
        let end = shape.first_page_of(block + 1);
        if from < end
            && let Some(page) = map.next_valid(from, end)
        {
            victim.blocks[victim.turn].1 = page + 1;
            victim.turn += 1;
            victim.claimed -= 1;
            self.turn += 1;
            self.moves += 1;
            self.moves_of[block as usize] += 1;
            self.pace.moved(1);
            return Some(NextMove::Page(page));
        }
        victim.blocks.remove(victim.turn);
        let stream = victim.stream;
        let mut unclaimed = 0;
        if victim.blocks.is_empty() {
            // Pages that the host has replaced since the choice need no place.
            unclaimed = self.reading.remove(self.turn).claimed;
            self.pace.moved(unclaimed);
        }
        Some(NextMove::Block { block, stream, unclaimed })
    }

    /// No page of a block is left to be read; returns whether it can be erased.
    pub(crate) fn all_read(&mut self, block: u32) -> bool {
        let moves = &mut self.moves_of[block as usize];
        assert!(*moves & READ == 0, "block {block} is read to its end twice");
        *moves |= READ;
        *moves == READ
    }

    /// The move of a page of a block has ended; returns whether the block can be erased.
    pub(crate) fn moved(&mut self, block: u32) -> bool {
        let moves = &mut self.moves_of[block as usize];
        assert!(*moves & !READ > 0, "a move of block {block} ends that has not begun");
        *moves -= 1;
        self.moves -= 1;
        *moves == READ
    }

    /// A block on a die waits for its erase.
    pub(crate) fn add_erase(&mut self, die: u32, block: u32) {
        self.moves_of[block as usize] = 0;
        self.erases[die as usize].push_back(block);
        self.untold.push(die);
    }

    /// Whether a block on a die waits for its erase.
    #[inline]
    pub(crate) fn has_erase(&self, die: u32) -> bool {
        !self.erases[die as usize].is_empty()
    }

    /// Takes the next block to be erased on a die.
    pub(crate) fn take_erase(&mut self, die: u32) -> Option<u32> {
        self.erases[die as usize].pop_front()
    }

    /// A die that has a block to be erased since it was told last.
    #[inline]
    pub(crate) fn take_untold(&mut self) -> Option<u32> {
        self.untold.pop()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let erases = self.erases.iter().map(VecDeque::capacity).sum::<usize>();
        ((self.moves_of.capacity() + erases) * size_of::<u32>()) as u64
    }
}
