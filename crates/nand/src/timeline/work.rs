//! Work for dies.

use crate::timing::{self, HEAD, MAX_PARTS};

/// The kinds of work for a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKind {
    /// Sense pages and send them over the bus, as a whole or only the [head](Work::HEAD) of one.
    Read,
    /// Take pages from the bus and program them.
    Program,
    /// Erase blocks.
    Erase,
    /// Sense pages one after the other and program them together elsewhere on the die. They cross
    /// the bus to the controller and back, unless the timeline [copies
    /// back](super::Timeline::set_copyback).
    Move,
    /// Sense and program pages elsewhere on the die, one page after the other from `page` on,
    /// without the bus. [`Timeline::cut`](super::Timeline::cut) ends it after the page at hand.
    CopyBack,
    /// As [`Move`](WorkKind::Move), of [parts](super::Timeline::set_parts) of pages: senses the
    /// pages one after the other, sends the parts over the bus, takes whole pages and programs
    /// them. The tag is [`Work::packed`].
    Pack,
}

/// A piece of work for a die: eight bytes, copied as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Work {
    /// Returned with the completion.
    pub tag: u32,
    /// The page in its block, which determines the times of the cells; for a move, the programmed
    /// page. The pages of a block [in SLC mode](crate::SlcTiming) have the numbers behind those of
    /// a block, [`pages_per_block`](crate::Geometry::pages_per_block) for the first.
    pub page: u16,
    /// The number of pages: one per plane; for a copy-back, all its pages; for a read, possibly
    /// [`HEAD`](Work::HEAD) or [`parts`](Work::parts).
    pub pages: u8,
    /// The kind of work.
    pub kind: WorkKind,
}

impl Work {
    /// Instead of the number of pages of a read: it senses one page, and sends only the first
    /// [`sector_bytes`](crate::Geometry::sector_bytes) of it over the bus, as
    /// [`DieCommand::head`](crate::DieCommand::head) does. A controller may leave the rest in the
    /// die.
    pub const HEAD: u8 = HEAD;

    /// Instead of the number of pages of a read: it senses one page, and sends so many
    /// [parts](super::Timeline::set_parts) of it over the bus.
    #[inline]
    pub fn parts(number: u32) -> u8 {
        debug_assert!((1..=MAX_PARTS.into()).contains(&number), "a read of {number} parts");
        timing::parts(number as u8)
    }

    /// The tag of a [`Pack`](WorkKind::Pack) of so many parts from so many pages.
    #[inline]
    pub fn packed(parts: u16, pages: u16) -> u32 {
        u32::from(parts) << 16 | u32::from(pages)
    }

    /// Added to the tag of a [`Move`](WorkKind::Move) (0) or a [`Pack`](WorkKind::Pack): the sensed
    /// pages are those of blocks in SLC mode.
    pub const FROM_SLC: u32 = 1 << 31;

    /// Whether a move senses pages of blocks in SLC mode.
    #[inline]
    pub(super) fn is_from_slc(self) -> bool {
        self.tag & Work::FROM_SLC != 0
    }

    /// The parts and the pages of a [`Pack`](WorkKind::Pack).
    #[inline]
    pub(super) fn unpacked(self) -> (u16, u16) {
        (((self.tag & !Work::FROM_SLC) >> 16) as u16, self.tag as u16)
    }

    /// Whether it senses pages before it programs others.
    #[inline]
    pub(super) fn moves(self) -> bool {
        matches!(self.kind, WorkKind::Move | WorkKind::Pack)
    }
}
