//! The input of a lifetime policy, and its form.

use crate::registry::Numbers;

/// The choices of a lifetime policy.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub(super) classes: fn(Numbers) -> u32,
    pub(super) write: fn(&Write, &mut Estimate, Numbers) -> u32,
    pub(super) moved: fn(&Moved, Numbers) -> u32,
}

/// The most classes of a policy.
pub const MOST_CLASSES: u32 = 8;

/// Pages of a range that share an [`Estimate`].
pub const CHUNK_PAGES: u32 = 256;

/// A page that the host writes. Ages are in pages that the host has written since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// The age of the version that it replaces, which is the lifetime of that version; `None` for
    /// the first one.
    pub age: Option<u32>,
    /// Pages that the host has written; it wraps.
    pub clock: u32,
    /// The class of the write before it, if it continues that one.
    pub continues: Option<u32>,
    /// Its lifetime if the host foretells it: pages that the host will write before the page is
    /// overwritten or discarded.
    pub foretold: Option<u32>,
    /// Pages of the drive: the mean lifetime if all are written equally often.
    pub capacity: u32,
    /// The mean age at which blocks of class 0 are collected; `u32::MAX` before the first one is.
    pub short: u32,
}

/// A block whose pages are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Its class.
    pub class: u32,
    /// The age of its pages.
    pub age: u32,
    /// Pages that the host will write before its pages are overwritten or discarded, in the mean,
    /// if the host foretells that.
    pub foretold: Option<u32>,
    /// As for [`Write`].
    pub capacity: u32,
    /// As for [`Write`].
    pub short: u32,
}

/// What a policy keeps of a range of [`CHUNK_PAGES`] pages: 12 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Estimate {
    /// The lifetime expected of them; 0 before any of them has been written again.
    pub lifetime: u32,
    /// The clock of its last write.
    pub last: u32,
    /// Its writes, of which older ones count less.
    pub writes: u32,
}

/// One class older than that of the block.
pub(super) fn older(moved: &Moved, classes: u32) -> u32 {
    (moved.class + 1).min(classes - 1)
}

/// The class of a lifetime among so many: one of the capacity or more is of the last class, one of
/// half of it or more of the class before, and so on.
pub(super) fn by_halves(lifetime: u32, capacity: u32, classes: u32) -> u32 {
    let (mut class, mut least) = (classes - 1, capacity);
    while class > 0 && lifetime < least {
        class -= 1;
        least /= 2;
    }
    class
}

/// The class of a value among so many: class 0 is up to `first`, and each next one up to `factor`
/// times as much.
pub fn class_of(value: u64, first: u64, factor: u64, classes: u8) -> u8 {
    let (mut limit, last) = (first, classes.saturating_sub(1));
    (0..last)
        .find(|_| {
            let is_inside = value < limit;
            limit = limit.saturating_mul(factor);
            is_inside
        })
        .unwrap_or(last)
}
