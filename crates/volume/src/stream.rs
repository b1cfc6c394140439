//! Streams of frames, each with a frontier in every unit.

use crate::format::tag::Purpose;
use crate::room::Kept;
use softflash_ftl::{Hint, LifetimeClass};

/// Frames with a frontier of their own: they have different urgencies and lifetimes. Data have the
/// number of their class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stream {
    /// Writes of clients, and operations.
    Host(u8),
    /// Data that collection moves.
    Collector(u8),
    /// Leaves of the map, and roots.
    Map,
    /// Data that recovery writes again.
    Recovery,
}

impl Stream {
    /// The hint of frames whose data have this lifetime when clients write them: what collection
    /// moves has lived longer.
    pub fn hint(self, written: LifetimeClass) -> Hint {
        match self {
            Stream::Host(_) => Hint::FOREGROUND.lasting(written),
            Stream::Collector(_) => Hint::COLLECTION.lasting(written.longer_by(1)),
            Stream::Recovery => Hint::REFRESH,
            Stream::Map => Hint::MAP,
        }
    }

    /// The class of its data; the others have none.
    pub fn data_class(self) -> Option<u8> {
        match self {
            Stream::Host(class) | Stream::Collector(class) => Some(class),
            Stream::Map | Stream::Recovery => None,
        }
    }

    pub fn purpose(self) -> Purpose {
        match self {
            Stream::Host(_) | Stream::Collector(_) => Purpose::Data,
            Stream::Map => Purpose::Map,
            Stream::Recovery => Purpose::Rewritten,
        }
    }

    /// Whether the stream has frames with numbered changes. Data that recovery writes again are
    /// those of numbered changes, until a root names their new slots.
    pub fn holds_changes(self) -> bool {
        matches!(self, Stream::Host(_) | Stream::Collector(_))
    }

    /// Free superblocks of a unit that the stream leaves to others, some of them to the next
    /// checkpoint: its root allows the release of superblocks. Collection must have some to
    /// move data to, also after power cuts that leave those half full. It opens none for a further
    /// class where few are free.
    pub fn reserve(self, for_checkpoint: Kept) -> u32 {
        match self {
            Stream::Host(_) => for_checkpoint.with_copies + 5,
            Stream::Collector(0) | Stream::Recovery => for_checkpoint.least,
            Stream::Collector(_) => for_checkpoint.least + 2,
            Stream::Map => 0,
        }
    }

    /// The same kind of frames with data of another class.
    pub fn with_class(self, class: u8) -> Stream {
        match self {
            Stream::Host(_) => Stream::Host(class),
            Stream::Collector(_) => Stream::Collector(class),
            Stream::Map | Stream::Recovery => self,
        }
    }

    /// All streams of so many classes: those of data, then the others.
    pub fn all(classes: u8) -> impl Iterator<Item = Stream> {
        let hosts = (0..classes).map(Stream::Host);
        hosts.chain((0..classes).map(Stream::Collector)).chain([Stream::Map, Stream::Recovery])
    }
}
