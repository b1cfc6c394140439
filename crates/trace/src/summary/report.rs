//! The figures of a summary, for people and as JSON.

use crate::reader::Tally;
use serde::Serialize;

/// The summary of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// Requests of all kinds.
    pub requests: u64,
    /// Counts and bytes of each kind.
    pub mix: Mix,
    /// Lengths of reads; none without reads.
    pub read_sizes: Option<Sizes>,
    /// Lengths of writes; none without writes.
    pub write_sizes: Option<Sizes>,
    /// Sequential share: reads and writes that begin at the end of one of the last eight streams of
    /// their kind on their device, as a share of all reads and writes. None without reads and
    /// writes.
    pub sequential: Option<f64>,
    /// Footprint and reuse of blocks.
    pub blocks: Blocks,
    /// Duration and rates.
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

/// A part divided by the whole; `None` if the whole is 0.
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
    /// Bins by powers of two, without empty ones.
    pub histogram: Vec<SizeBin>,
}

/// Requests longer than half of `up_to_bytes` and at most that long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBin {
    /// A power of two; or 0, for requests of no bytes.
    pub up_to_bytes: u64,
    /// The number of requests.
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
    /// Reads and writes longer than 64 MiB, of which only the first 64 MiB are counted.
    pub cut_requests: u64,
    /// The reuse of blocks; none if no block was followed.
    pub reuse: Option<Reuse>,
    /// The fewest blocks with most accesses; empty if no block was followed.
    pub hot: Vec<HotSet>,
}

/// The reuse of blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reuse {
    /// Accesses of a block, on average.
    pub mean_accesses: f64,
    /// Share of blocks that were accessed once.
    pub once_share: f64,
    /// Writes of a written block, on average; none without writes.
    pub mean_writes: Option<f64>,
    /// Time since the last access of the same block; none if no block was accessed again.
    pub times: Option<Times>,
}

/// Percentiles of times, within 0.1 %.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Times {
    /// The number of times.
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

/// The fewest blocks that have a share of all accesses.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HotSet {
    /// The share of accesses.
    pub accesses_share: f64,
    /// These blocks as a share of the accessed blocks.
    pub blocks_share: f64,
    /// The size of these blocks in bytes.
    pub bytes: u64,
}

/// Duration and rates.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Rate {
    /// From the first to the last request.
    pub duration_ns: u64,
    /// Requests a second, on average; none if the trace has no duration.
    pub mean_requests_per_s: Option<f64>,
    /// Bytes read and written a second, on average; none if the trace has no duration.
    pub mean_bytes_per_s: Option<f64>,
    /// The most requests in one second; seconds are counted from the beginning of the trace.
    pub peak_requests_in_1s: u64,
    /// The most bytes read and written in such a second.
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
    /// The highest end of a request: the device is at least that large.
    pub end_bytes: u64,
}
