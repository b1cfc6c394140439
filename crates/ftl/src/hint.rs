//! Hints that the layers above attach to a request: its priority and the kind of its data.

/// The urgency of a request. The scheduler of a die serves reads before programs before erases, and
/// each kind by priority. Every queue class has a limit on its wait, so no request starves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// A client waits for it.
    #[default]
    Foreground,
    /// A client may soon wait for it: a flush of a memtable.
    Normal,
    /// No client waits for it: compaction, scrub.
    Background,
}

/// The kind of data. Data of one stream has a similar lifetime.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Stream {
    /// Write-ahead log: short-lived, sequential; clients wait for it.
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
    /// The urgency.
    pub priority: Priority,
    /// The kind of data.
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
