//! What a request tells the layers below about itself: knowledge that travels down with the data.

/// Whom a request serves. The scheduler of a die takes reads before programs before erases, and
/// inside each kind by priority; waiting raises a request's rank, so nothing starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// A client waits for it.
    #[default]
    Foreground,
    /// A client may soon wait for it: flushing what fills the memory.
    Normal,
    /// Nobody waits: compaction, scrub.
    Background,
}

/// What kind of data it is; data of one stream dies together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Stream {
    /// Write-ahead log: short-lived, sequential, waited for.
    Log,
    /// Data written by users.
    #[default]
    User,
    /// Data rewritten by compaction or garbage collection: older, so longer-lived.
    Compaction,
}

/// The hints of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hint {
    /// Whom it serves.
    pub priority: Priority,
    /// What it carries.
    pub stream: Stream,
}

impl Hint {
    /// A request that a client waits for.
    pub const FOREGROUND: Hint = Hint { priority: Priority::Foreground, stream: Stream::User };
    /// The log.
    pub const LOG: Hint = Hint { priority: Priority::Foreground, stream: Stream::Log };
    /// The flush of a memtable.
    pub const FLUSH: Hint = Hint { priority: Priority::Normal, stream: Stream::User };
    /// Compaction.
    pub const COMPACTION: Hint =
        Hint { priority: Priority::Background, stream: Stream::Compaction };
}
