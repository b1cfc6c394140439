//! The streams of superblocks, as opening headers record them.

use softflash_device::{Hint, Origin, Priority};

/// The kind of data. Data of one stream has a similar lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Write-ahead log: short-lived, sequential; clients wait for it.
    Log,
    /// Data written by users.
    User,
    /// Data rewritten by compaction or garbage collection: older, so longer-lived.
    Compaction,
}

impl Stream {
    /// The stream of a superblock that is allocated with a hint: what no client waits for is
    /// rewritten data.
    pub(crate) fn of(hint: Hint) -> Stream {
        match (hint.origin, hint.priority) {
            (Origin::Log, _) => Stream::Log,
            (_, Priority::Background) => Stream::Compaction,
            _ => Stream::User,
        }
    }
}
