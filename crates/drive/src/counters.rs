//! Counters of a drive.

/// Pages and blocks by cause, since the counters were last cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DriveCounters {
    /// Requests submitted.
    pub submitted: u64,
    /// Requests completed.
    pub completed: u64,
    /// Pages that the host wrote, whole or in part.
    pub host_pages_written: u64,
    /// Pages that the host read.
    pub host_pages_read: u64,
    /// Pages programmed with the host's data.
    pub programmed_for_host: u64,
    /// Pages programmed by garbage collection.
    pub programmed_for_collection: u64,
    /// Pages that moved out of the SLC cache.
    pub programmed_for_folding: u64,
    /// Pages of the host that were programmed in the SLC cache: a part of
    /// [`programmed_for_host`](DriveCounters::programmed_for_host).
    pub programmed_in_slc_mode: u64,
    /// Pages programmed with parity.
    pub programmed_for_parity: u64,
    /// Pages of the map programmed, also when collection moves them.
    pub programmed_for_map: u64,
    /// Pages left unused in flash pages that were programmed before they were full.
    pub programmed_for_padding: u64,
    /// Flash pages that were programmed before they were full.
    pub partial_page_programs: u64,
    /// Pages read from flash for the host.
    pub read_for_host: u64,
    /// Pages read because a write covered a part of them.
    pub read_for_partial_writes: u64,
    /// Pages read from the write buffer, or never written.
    pub read_without_flash: u64,
    /// Writes that replaced an older version of the page in the buffer.
    pub absorbed: u64,
    /// Flash pages read by the background scrub.
    pub scrub_reads: u64,
    /// Blocks whose collection began because they had been read often.
    pub read_reclaims: u64,
    /// Blocks erased; the blocks of all planes of a write frontier count as one.
    pub erases: u64,
}

impl DriveCounters {
    /// Pages programmed, for any cause.
    pub fn programmed(&self) -> u64 {
        self.programmed_for_host
            + self.programmed_for_collection
            + self.programmed_for_folding
            + self.programmed_for_parity
            + self.programmed_for_map
            + self.programmed_for_padding
    }

    /// Write amplification: pages programmed for each page that the host wrote.
    pub fn waf(&self) -> f64 {
        match self.host_pages_written {
            0 => 0.0,
            written => self.programmed() as f64 / written as f64,
        }
    }
}

/// Work for a map that lies on flash, since the counters were last cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MapCounters {
    /// Lookups that found their translation page in memory.
    pub hits: u64,
    /// Lookups that waited for it.
    pub misses: u64,
    /// Translation pages read from flash, also to be changed there.
    pub reads: u64,
    /// Translation pages programmed, also when collection moves them.
    pub programs: u64,
}

impl MapCounters {
    /// The share of lookups that found their translation page in memory; 1 if there were none.
    pub fn hit_ratio(&self) -> f64 {
        let lookups = self.hits + self.misses;
        if lookups == 0 { 1.0 } else { self.hits as f64 / lookups as f64 }
    }
}
