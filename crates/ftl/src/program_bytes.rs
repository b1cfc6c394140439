//! Bytes programmed, by origin.

use serde::Serialize;
use softflash_device::Origin;

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
    /// Rewrites of data that are hard to read.
    pub refresh: u64,
    /// Moves of data that lag behind in wear.
    pub levelling: u64,
    /// Rewrites of data that lack a copy or are reconstructed.
    pub rebuild: u64,
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
            Origin::Levelling => &mut self.levelling,
            Origin::Rebuild => &mut self.rebuild,
            Origin::Map => &mut self.map,
            Origin::Header => &mut self.header,
        }
    }

    /// The counters with their names, in order of declaration.
    pub fn fields(&self) -> [(&'static str, u64); 11] {
        let ProgramBytes { host, log, flush, compaction, collection, .. } = *self;
        let ProgramBytes { parity, refresh, levelling, rebuild, map, header, .. } = *self;
        [
            ("program_bytes_host", host),
            ("program_bytes_log", log),
            ("program_bytes_flush", flush),
            ("program_bytes_compaction", compaction),
            ("program_bytes_collection", collection),
            ("program_bytes_parity", parity),
            ("program_bytes_refresh", refresh),
            ("program_bytes_levelling", levelling),
            ("program_bytes_rebuild", rebuild),
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
        self.levelling += other.levelling;
        self.rebuild += other.rebuild;
        self.map += other.map;
        self.header += other.header;
    }

    /// All of them: the bytes programmed.
    pub fn total(&self) -> u64 {
        self.fields().iter().map(|(_, bytes)| bytes).sum()
    }
}
