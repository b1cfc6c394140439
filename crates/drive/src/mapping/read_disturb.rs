//! How often each block has been read since its erase, and which blocks are due to be moved before
//! read disturb harms their pages.

use crate::shape::Shape;
use crate::spec::PageMapped;
use softflash_base::random::Rng;
use std::collections::VecDeque;

/// The seed of the reads that a new drive's blocks have behind them.
const SEED: u64 = 1;

/// The reads of all blocks.
#[derive(Debug)]
pub(crate) struct ReadDisturb {
    /// Reads after which a block is due.
    limit: u32,
    /// Reads of each block. A new drive starts as one that has been read for long: its blocks are
    /// not all due at once.
    reads: Vec<u32>,
    /// Blocks of each group that are due, the first at the front. Some may have been collected
    /// since.
    due: Vec<VecDeque<u32>>,
    /// Whether the last victim of a group was one that was due.
    took_due: Vec<bool>,
    /// The block of each group that moves because of its reads.
    moves: Vec<Move>,
}

/// The move of a block that was due, of which reads and steps take turns: reads that keep a die
/// busy must not put it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Move {
    None,
    /// The group's next read goes first.
    Read,
    /// The next step of the move goes first.
    Step,
}

impl ReadDisturb {
    /// Of a layout; `None` if it never moves a block because of reads.
    pub(crate) fn new(layout: &PageMapped, shape: &Shape) -> Option<ReadDisturb> {
        let limit = layout.read_reclaim_reads;
        let mut rng = Rng::seeded(SEED);
        let mut drawn = || rng.below(u64::from(limit)) as u32;
        (limit > 0).then(|| ReadDisturb {
            limit,
            reads: (0..shape.blocks_end()).map(|_| drawn()).collect(),
            due: vec![VecDeque::new(); shape.groups() as usize],
            took_due: vec![false; shape.groups() as usize],
            moves: vec![Move::None; shape.groups() as usize],
        })
    }

    /// A block of a group has been read; returns whether it is due now.
    #[inline]
    pub(crate) fn count(&mut self, group: u32, block: u32) -> bool {
        let reads = &mut self.reads[block as usize];
        *reads = reads.saturating_add(1);
        let turn = &mut self.moves[group as usize];
        if *turn == Move::Read {
            *turn = Move::Step;
        }
        let is_due = *reads == self.limit;
        if is_due {
            self.due[group as usize].push_back(block);
        }
        is_due
    }

    /// A block of a group that is due begins to move.
    pub(crate) fn begin_move(&mut self, group: u32) {
        self.moves[group as usize] = Move::Step;
    }

    /// Whether the next step of a group's move goes before its reads.
    #[inline]
    pub(crate) fn is_move_next(&self, group: u32) -> bool {
        self.moves[group as usize] == Move::Step
    }

    /// A step of a group's move has begun.
    pub(crate) fn take_turn(&mut self, group: u32) {
        self.moves[group as usize] = Move::Read;
    }

    /// The collection of a group's block has ended.
    pub(crate) fn end_move(&mut self, group: u32) {
        self.moves[group as usize] = Move::None;
    }

    /// A block has been erased.
    pub(crate) fn erased(&mut self, block: u32) {
        self.reads[block as usize] = 0;
    }

    /// Takes the first block of a group that is due, of those that can be collected.
    pub(crate) fn take_due(&mut self, group: u32, is_closed: impl Fn(u32) -> bool) -> Option<u32> {
        let ReadDisturb { due, reads, limit, .. } = self;
        let due = &mut due[group as usize];
        due.retain(|&block| reads[block as usize] >= *limit);
        let place = due.iter().position(|&block| is_closed(block))?;
        due.remove(place)
    }

    /// As [`take_due`](ReadDisturb::take_due), in place of every second victim of a group that
    /// needs space: blocks that are due may free little of it.
    pub(crate) fn take_due_in_turn(
        &mut self,
        group: u32,
        is_closed: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let turn = !self.took_due[group as usize];
        let taken = if turn { self.take_due(group, is_closed) } else { None };
        self.took_due[group as usize] = taken.is_some();
        taken
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let due = self.due.iter().map(|due| size_of_val(due) + due.capacity() * 4);
        let of_groups = self.took_due.capacity() + self.moves.capacity();
        (self.reads.capacity() * 4 + of_groups + due.sum::<usize>()) as u64
    }
}
