//! Work for dies.

use crate::timing::HEAD;

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
}

/// A piece of work for a die: eight bytes, copied as one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C, align(8))]
pub struct Work {
    /// Returned with the completion.
    pub tag: u32,
    /// The page in its block, which determines the times of the cells; for a move, the programmed
    /// page.
    pub page: u16,
    /// The number of pages: one per plane; for a copy-back, all its pages; for a read, possibly
    /// [`HEAD`](Work::HEAD).
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
}
