//! Hints that the layers above attach to a request: its priority, the kind of its data and its
//! origin.

use serde::Serialize;

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

/// What causes a request. Bytes are counted by it, so that write amplification is known by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Origin {
    /// Data of a client, as it writes them.
    #[default]
    Host,
    /// The write-ahead log.
    Log,
    /// The flush of a memtable.
    Flush,
    /// Compaction.
    Compaction,
    /// Collection of value blocks or of superblocks of volumes.
    Collection,
    /// Parity, and the reconstruction of blocks from it.
    Parity,
    /// A rewrite of data that are hard to read, lack a copy, or lag behind in wear.
    Refresh,
    /// The map of volumes.
    Map,
}

/// Bytes programmed by origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ProgramBytes {
    /// Data of clients, as they write them.
    pub host: u64,
    /// The write-ahead log.
    pub log: u64,
    /// Flushes of memtables.
    pub flush: u64,
    /// Compaction.
    pub compaction: u64,
    /// Collection.
    pub collection: u64,
    /// Parity.
    pub parity: u64,
    /// Rewrites.
    pub refresh: u64,
    /// The map of volumes.
    pub map: u64,
    /// Headers of superblocks.
    pub header: u64,
}

impl ProgramBytes {
    /// The counter of an origin.
    pub(crate) fn of(&mut self, origin: Origin) -> &mut u64 {
        match origin {
            Origin::Host => &mut self.host,
            Origin::Log => &mut self.log,
            Origin::Flush => &mut self.flush,
            Origin::Compaction => &mut self.compaction,
            Origin::Collection => &mut self.collection,
            Origin::Parity => &mut self.parity,
            Origin::Refresh => &mut self.refresh,
            Origin::Map => &mut self.map,
        }
    }

    /// The counters with their names, in order of declaration.
    pub fn fields(&self) -> [(&'static str, u64); 9] {
        let ProgramBytes { host, log, flush, compaction, collection, .. } = *self;
        let ProgramBytes { parity, refresh, map, header, .. } = *self;
        [
            ("program_bytes_host", host),
            ("program_bytes_log", log),
            ("program_bytes_flush", flush),
            ("program_bytes_compaction", compaction),
            ("program_bytes_collection", collection),
            ("program_bytes_parity", parity),
            ("program_bytes_refresh", refresh),
            ("program_bytes_map", map),
            ("program_bytes_header", header),
        ]
    }

    /// Adds the counters of other units.
    pub fn add(&mut self, other: &ProgramBytes) {
        self.host += other.host;
        self.log += other.log;
        self.flush += other.flush;
        self.compaction += other.compaction;
        self.collection += other.collection;
        self.parity += other.parity;
        self.refresh += other.refresh;
        self.map += other.map;
        self.header += other.header;
    }

    /// All of them: the bytes programmed.
    pub fn total(&self) -> u64 {
        self.fields().iter().map(|(_, bytes)| bytes).sum()
    }
}

/// The hints of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hint {
    /// The urgency.
    pub priority: Priority,
    /// The kind of data.
    pub stream: Stream,
    /// What causes it.
    pub origin: Origin,
}

impl Hint {
    /// A request that a client waits for.
    pub const FOREGROUND: Hint =
        Hint { priority: Priority::Foreground, stream: Stream::User, origin: Origin::Host };
    /// Data of clients that no client waits for yet.
    pub const HOST_SOON: Hint = Hint { priority: Priority::Normal, ..Hint::FOREGROUND };
    /// The log.
    pub const LOG: Hint =
        Hint { priority: Priority::Foreground, stream: Stream::Log, origin: Origin::Log };
    /// The flush of a memtable.
    pub const FLUSH: Hint =
        Hint { priority: Priority::Normal, stream: Stream::User, origin: Origin::Flush };
    /// The map of volumes.
    pub const MAP: Hint = Hint { origin: Origin::Map, ..Hint::FLUSH };
    /// Compaction.
    pub const COMPACTION: Hint = Hint {
        priority: Priority::Background,
        stream: Stream::Compaction,
        origin: Origin::Compaction,
    };
    /// Data that collection moves.
    pub const COLLECTION: Hint = Hint { origin: Origin::Collection, ..Hint::COMPACTION };
    /// Data that are rewritten in place of damaged, lone or lagging ones.
    pub const REFRESH: Hint = Hint { origin: Origin::Refresh, ..Hint::COMPACTION };
    /// Parity that no client waits for, and what is reconstructed from it.
    pub const PARITY: Hint = Hint { origin: Origin::Parity, ..Hint::COMPACTION };

    /// The same request, of another origin.
    pub const fn of(self, origin: Origin) -> Hint {
        Hint { origin, ..self }
    }
}
