//! Counters of a domain.

use crate::stream::Stream;
use softflash_base::cast::wide;
use std::cell::Cell;

/// Mapping units of 4096 bytes programmed since the start, by cause, and other counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DomainCounters {
    /// Mapping units written by clients.
    pub written: u64,
    /// Mapping units read by clients, those without data included.
    pub read: u64,
    /// Mapping units moved by collection.
    pub collected: u64,
    /// Mapping units of leaves and roots.
    pub map: u64,
    /// Heads of frames, and padding to whole pages and for power cuts.
    pub overhead: u64,
    /// Those of the frames of leaves and roots among them.
    pub map_overhead: u64,
    /// Frames.
    pub frames: u64,
    /// Superblocks released.
    pub released: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Flushes of the device.
    pub flushes: u64,
    /// Mapping units that collection could not read: their reads report a data loss.
    pub lost: u64,
    /// Writes of clients that were refused because the domain was full.
    pub refused: u64,
}

impl DomainCounters {
    /// Mapping units programmed, of all causes.
    pub fn programmed(&self) -> u64 {
        self.written + self.collected + self.map + self.overhead
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    counters: Cell<DomainCounters>,
}

impl Counters {
    pub fn get(&self) -> DomainCounters {
        self.counters.get()
    }

    pub fn update(&self, change: impl FnOnce(&mut DomainCounters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    /// Counts a frame that takes so many mapping units.
    pub fn count_frame(&self, stream: Stream, entries: usize, units: u32) {
        self.update(|counters| {
            let entries = wide(entries).min(u64::from(units));
            match stream {
                Stream::Host(_) => counters.written += entries,
                Stream::Collector(_) | Stream::Recovery => counters.collected += entries,
                Stream::Map => counters.map += entries,
            }
            let overhead = u64::from(units) - entries;
            counters.overhead += overhead;
            if stream == Stream::Map {
                counters.map_overhead += overhead;
            }
            counters.frames += 1;
        });
    }
}
