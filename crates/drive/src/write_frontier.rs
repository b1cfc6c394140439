//! The write frontier of the blocks that are written and collected together: it takes the host's
//! pages and those that collection moves, and has at most one victim at a time.

use crate::map::NONE;
use crate::pages::Queue;

/// A write frontier: one cache line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct WriteFrontier {
    /// Pages that wait to be programmed.
    pub(crate) writes: Queue,
    /// The block being written; [`NONE`] while there is none to write.
    pub(crate) open: u32,
    /// The next page of it to be mapped.
    pub(crate) next: u32,
    /// The next page of it to be programmed: moved pages are mapped in chunks, and programmed row
    /// by row.
    pub(crate) programmed: u32,
    /// Blocks closed so far.
    pub(crate) closed: u32,
    /// The block being collected; [`NONE`] while none is.
    pub(crate) victim: u32,
    /// The page from which on its valid pages are still to be moved.
    pub(crate) cursor: u32,
    /// Valid pages of the victim when it was chosen, those moved since, the room that they leave in
    /// the open block, and the pages of it that the host has written.
    pub(crate) pace: Pace,
}

/// Keeps the host's writes and collection in step, so that neither waits for the whole of the
/// other.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Pace {
    pub(crate) to_move: u32,
    pub(crate) moved: u32,
    pub(crate) room: u32,
    pub(crate) written: u32,
}

impl Pace {
    /// Whether collection has fallen behind its share.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        u64::from(self.written) * u64::from(self.to_move)
            > u64::from(self.moved) * u64::from(self.room)
    }
}

impl WriteFrontier {
    /// A write frontier that writes its first block.
    pub(crate) fn new(first_block: u32) -> WriteFrontier {
        WriteFrontier {
            writes: Queue::EMPTY,
            open: first_block,
            next: 0,
            programmed: 0,
            closed: 0,
            victim: NONE,
            cursor: 0,
            pace: Pace::default(),
        }
    }

    /// Whether mapped pages of moved data are still to be programmed.
    #[inline]
    pub(crate) fn is_moving(&self) -> bool {
        self.programmed < self.next
    }

    #[inline]
    pub(crate) fn collects(&self) -> bool {
        self.victim != NONE
    }
}
