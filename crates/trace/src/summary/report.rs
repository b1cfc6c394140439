//! The figures of a summary, for people and as JSON.

use crate::reader::Tally;
use serde::Serialize;

/// The summary of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Requests of all kinds.
    pub requests: u64,
    /// Of which kinds.
    pub mix: Mix,
    /// Lengths of reads; none without reads.
    pub read_sizes: Option<Sizes>,
    /// Lengths of writes; none without writes.
    pub write_sizes: Option<Sizes>,
    /// Share of reads and writes, in requests, that begin where one of the last eight of their kind
    /// on their device ended. None without reads and writes.
    pub sequential: Option<f64>,
    /// Which blocks are touched, and how often.
    pub blocks: Blocks,
    /// How much at which time.
    pub rate: Rate,
    /// Each device or volume, in the order of their numbers.
    pub devices: Vec<DeviceSummary>,
    /// Requests to devices beyond those that are counted separately.
    pub devices_beyond_limit: u64,
    /// The reader's counters: lines, malformed ones, times that ran back.
    pub tally: Tally,
}

/// Counts and bytes of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Mix {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Trims.
    pub trims: u64,
    /// Flushes.
    pub flushes: u64,
    /// Bytes of all reads.
    pub bytes_read: u64,
    /// Bytes of all writes.
    pub bytes_written: u64,
    /// Bytes of all trims.
    pub bytes_trimmed: u64,
    /// Reads among reads and writes; none without either.
    pub read_share: Option<f64>,
    /// Bytes read among bytes read and written; none without either.
    pub read_share_of_bytes: Option<f64>,
}

impl Mix {
    pub(super) fn finish(&mut self) {
        self.read_share = share(self.reads, self.reads.saturating_add(self.writes));
        self.read_share_of_bytes =
            share(self.bytes_read, self.bytes_read.saturating_add(self.bytes_written));
    }
}

/// A part of a whole; none of nothing.
pub(super) fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Lengths of requests. Percentiles are exact for multiples of 512 bytes up to 1 MiB, else within
/// 0.1 %.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizes {
    /// Mean.
    pub mean_bytes: f64,
    /// Median.
    pub p50_bytes: u64,
    /// 90th percentile.
    pub p90_bytes: u64,
    /// 99th percentile.
    pub p99_bytes: u64,
    /// Shortest.
    pub min_bytes: u64,
    /// Longest.
    pub max_bytes: u64,
    /// By powers of two, those that there are.
    pub histogram: Vec<SizeBin>,
}

/// Requests longer than half of `up_to_bytes` and at most that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBin {
    /// A power of two; or 0, for requests of no bytes.
    pub up_to_bytes: u64,
    /// How many.
    pub requests: u64,
}

/// Figures of the blocks of [`BLOCK_BYTES`](super::BLOCK_BYTES) that were read or written. An
/// access is a request that touches a block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Blocks {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Share of blocks that was followed; 1 where all figures are exact.
    pub sampled: f64,
    /// Standard error of the footprints, as a share of them; 0 where they are exact.
    pub relative_error: f64,
    /// Bytes of blocks that were read or written.
    pub touched_bytes: u64,
    /// Bytes of blocks that were read.
    pub read_bytes: u64,
    /// Bytes of blocks that were written.
    pub written_bytes: u64,
    /// Bytes of blocks that were read and written.
    pub both_bytes: u64,
    /// Reads and writes longer than what is entered of a request, 64 MiB.
    pub cut_requests: u64,
    /// How often blocks come again; none where no block was followed.
    pub reuse: Option<Reuse>,
    /// How few blocks take most accesses; empty where no block was followed.
    pub hot: Vec<HotSet>,
}

/// How often blocks come again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reuse {
    /// Accesses of a block, on average.
    pub mean_accesses: f64,
    /// Share of blocks that were accessed once.
    pub once_share: f64,
    /// Writes of a written block, on average; none without writes.
    pub mean_writes: Option<f64>,
    /// Time since the last access of the same block; none where no block came again.
    pub times: Option<Times>,
}

/// Percentiles of times, within 0.1 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many were taken.
    pub count: u64,
    /// 10th percentile.
    pub p10_ns: u64,
    /// Median.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
}

/// The fewest blocks that take a share of all accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HotSet {
    /// Of accesses.
    pub accesses_share: f64,
    /// Of touched blocks.
    pub blocks_share: f64,
    /// Of touched blocks, in bytes.
    pub bytes: u64,
}

/// How much at which time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rate {
    /// From the first to the last request.
    pub duration_ns: u64,
    /// Requests a second, on average; none where the trace takes no time.
    pub mean_requests_per_s: Option<f64>,
    /// Bytes read and written a second, on average; none where the trace takes no time.
    pub mean_bytes_per_s: Option<f64>,
    /// Most requests within a second counted from the trace's beginning.
    pub peak_requests_in_1s: u64,
    /// Most bytes read and written within such a second.
    pub peak_bytes_in_1s: u64,
}

/// A device or volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DeviceSummary {
    /// Its number.
    pub device: u32,
    /// Requests of all kinds.
    pub requests: u64,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes of all reads.
    pub bytes_read: u64,
    /// Bytes of all writes.
    pub bytes_written: u64,
    /// Where the furthest request ends: the device is at least that large.
    pub end_bytes: u64,
}
