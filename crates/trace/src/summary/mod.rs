//! The summary of a trace, in one pass and bounded memory.
//!
//! Requests, bytes, rates and the sequential share are exact. The figures of blocks (footprint,
//! reuse, hot set) are exact up to 900 000 blocks of 4 KiB, 3.4 GiB of accessed addresses. Beyond
//! that they are estimated from the blocks whose hash is below a bound, which decreases during the
//! trace so that half to all of that number are followed (SHARDS). `docs/traces.md` has all
//! definitions and errors.

mod blocks;
mod devices;
mod rate;
mod report;
mod sizes;

pub use report::{Blocks, DeviceSummary, HotSet, Mix, Rate, Reuse, SizeBin, Sizes, Summary, Times};

use crate::error::TraceError;
use crate::reader::{Reader, Tally};
use crate::request::{Kind, Request};
use blocks::BlockTable;
use devices::Devices;
use rate::RateMeter;
use sizes::SizeMeter;
use std::io::Read;

/// Bytes of a block, the granularity of footprint and reuse.
pub const BLOCK_BYTES: u64 = 4096;

/// The most blocks that are followed; if there are more, blocks are sampled.
pub const BLOCKS_FOLLOWED: usize = 900_000;

/// The most blocks of a request that are counted: bounds the time for a corrupt line.
pub const BLOCKS_OF_REQUEST: u64 = (64 << 20) / BLOCK_BYTES;

/// The most devices that are counted separately; all others are counted together.
pub const DEVICES_FOLLOWED: usize = 16_384;

/// Computes the summary of requests. Its memory is at most about 60 MB.
pub struct Summarizer {
    mix: Mix,
    reads: SizeMeter,
    writes: SizeMeter,
    blocks: BlockTable,
    devices: Devices,
    rate: RateMeter,
}

impl Default for Summarizer {
    fn default() -> Summarizer {
        Summarizer::following(BLOCKS_FOLLOWED)
    }
}

impl Summarizer {
    /// A summary that follows up to `blocks` blocks, 25 to 50 bytes of memory each; fewer blocks
    /// are less exact.
    pub fn following(blocks: usize) -> Summarizer {
        Summarizer {
            mix: Mix::default(),
            reads: SizeMeter::default(),
            writes: SizeMeter::default(),
            blocks: BlockTable::new(blocks.max(1)),
            devices: Devices::new(DEVICES_FOLLOWED),
            rate: RateMeter::default(),
        }
    }

    /// Adds the next request.
    pub fn add(&mut self, request: &Request) {
        self.rate.add(request);
        self.devices.add(request);
        let mix = &mut self.mix;
        let (count, bytes) = match request.kind {
            Kind::Read => (&mut mix.reads, &mut mix.bytes_read),
            Kind::Write => (&mut mix.writes, &mut mix.bytes_written),
            Kind::Trim => (&mut mix.trims, &mut mix.bytes_trimmed),
            Kind::Flush => {
                mix.flushes += 1;
                return;
            }
        };
        *count += 1;
        *bytes = bytes.saturating_add(request.bytes);
        match request.kind {
            Kind::Read => self.reads.add(request.bytes),
            Kind::Write => self.writes.add(request.bytes),
            Kind::Trim | Kind::Flush => return,
        }
        self.blocks.add(request);
    }

    /// The summary; `tally` has the counters of the reader.
    pub fn finish(self, tally: Tally) -> Summary {
        let mut mix = self.mix;
        mix.finish();
        Summary {
            requests: mix.reads + mix.writes + mix.trims + mix.flushes,
            mix,
            read_sizes: self.reads.finish(),
            write_sizes: self.writes.finish(),
            sequential: self.devices.sequential(),
            blocks: self.blocks.finish(),
            rate: self.rate.finish(),
            devices_beyond_limit: self.devices.beyond(),
            devices: self.devices.finish(),
            tally,
        }
    }
}

/// Reads a trace to its end and summarizes it.
pub fn summarize<R: Read>(reader: &mut Reader<R>) -> Result<Summary, TraceError> {
    let mut summarizer = Summarizer::default();
    for request in reader.by_ref() {
        summarizer.add(&request?);
    }
    Ok(summarizer.finish(reader.tally().clone()))
}
