//! Streams of frames, each with a frontier in every unit.

use crate::format::tag::Class;
use softflash_ftl::Hint;

/// Frames with a frontier of their own: they have different urgencies and lifetimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    /// Writes of clients, and operations.
    Host,
    /// Data that collection moves.
    Collector,
    /// Leaves of the map, and roots.
    Map,
    /// Data that recovery writes again.
    Recovery,
}

impl Stream {
    pub const ALL: [Stream; 4] = [Stream::Host, Stream::Collector, Stream::Map, Stream::Recovery];

    pub fn hint(self) -> Hint {
        match self {
            Stream::Host => Hint::FOREGROUND,
            Stream::Collector | Stream::Recovery => Hint::COMPACTION,
            Stream::Map => Hint::FLUSH,
        }
    }

    pub fn class(self) -> Class {
        match self {
            Stream::Host | Stream::Collector => Class::Data,
            Stream::Map => Class::Map,
            Stream::Recovery => Class::Rewritten,
        }
    }

    /// Free superblocks of a unit that the stream leaves to others: collection must have some to
    /// move data to, also after power cuts that leave those half full, and the map always has one
    /// for the root that allows the release of superblocks.
    pub fn reserve(self) -> u32 {
        match self {
            Stream::Host => 6,
            Stream::Collector | Stream::Recovery => 1,
            Stream::Map => 0,
        }
    }
}
