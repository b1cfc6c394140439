//! A block workload, as in a TOML preset.

use super::begin::Begin;
use super::pattern::{Pattern, word_or_table};
use super::size::RequestSize;
use super::source::BlockSource;
use super::span::Span;
use crate::error::{Problem, WorkloadError, count, share};
use crate::load::{Load, MAX_OUTSTANDING, RateCaps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// The sum of the shares of reads and trims may exceed 1 by this much: sums of decimal fractions
/// are not exact.
const ROUNDING: f64 = 1e-12;

/// The most trims among the writes and trims that settle a device.
const MOST_TRIMS: f64 = 0.99;

/// The workload of a block client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BlockWorkload {
    /// The preset's name.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub title: String,
    /// Share of the requests that read, 0 to 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub read_fraction: f64,
    /// Share of the requests that trim, 0 to 1; the rest writes.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub trim_fraction: f64,
    /// The access pattern.
    #[serde(default, deserialize_with = "word_or_table")]
    pub pattern: Pattern,
    /// The size of requests, unless `read_size` or `write_size` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "bytes"))]
    pub size: Option<RequestSize>,
    /// The size of reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "bytes"))]
    pub read_size: Option<RequestSize>,
    /// The size of writes and trims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "bytes"))]
    pub write_size: Option<RequestSize>,
    /// Offsets from `begin` are multiples of this; each request's own size unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub align_bytes: Option<u32>,
    /// Where the accessed part of the capacity begins.
    #[serde(default, skip_serializing_if = "Begin::is_zero")]
    pub begin: Begin,
    /// The length of the accessed part of the capacity.
    #[serde(default)]
    pub span: Span,
    /// When requests are made.
    #[serde(default)]
    pub load: Load,
    /// Every so many writes are followed by a flush, which ends them when all that ended before is
    /// durable (`fsync` of fio); 0: none.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(extend("default" = 0))]
    pub flush_every: u32,
    /// Every so many writes end when they are durable (forced unit access); 0: none.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(extend("default" = 0))]
    pub fua_every: u32,
    /// Threads beside those of `load` that only write, one request at a time each.
    #[serde(default, skip_serializing_if = "is_none")]
    #[schemars(range(max = 16_777_216), extend("default" = 0))]
    pub writers: u32,
    /// The most bytes per second.
    #[serde(default)]
    pub rate_caps: RateCaps,
    /// The duration of a run in virtual nanoseconds, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The number of requests of a run, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

impl BlockWorkload {
    /// Half reads, half writes over the whole capacity, one at a time: a starting point for
    /// workloads in code.
    pub fn new(name: impl Into<String>, size: RequestSize, pattern: Pattern) -> BlockWorkload {
        BlockWorkload {
            name: name.into(),
            title: String::new(),
            read_fraction: 0.5,
            trim_fraction: 0.0,
            pattern,
            size: Some(size),
            read_size: None,
            write_size: None,
            align_bytes: None,
            begin: Begin::default(),
            span: Span::default(),
            load: Load::default(),
            flush_every: 0,
            fua_every: 0,
            writers: 0,
            rate_caps: RateCaps::default(),
            duration_ns: None,
            requests: None,
        }
    }

    /// Checks that the workload is valid on a device that is large enough.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        self.problem().map_err(|problem| problem.of(&self.name))
    }

    pub(crate) fn problem(&self) -> Result<(), Problem> {
        share("read_fraction", self.read_fraction)?;
        share("trim_fraction", self.trim_fraction)?;
        let sum = self.read_fraction + self.trim_fraction;
        if sum > 1.0 + ROUNDING {
            return Err(Problem::TooMuch(sum));
        }
        self.pattern.validate()?;
        let sizes = [
            ("size", &self.size),
            ("read_size", &self.read_size),
            ("write_size", &self.write_size),
        ];
        for (field, size) in sizes {
            size.as_ref().map_or(Ok(()), |size| size.validate(field))?;
        }
        self.sizes_of_reads()?;
        self.sizes_of_writes()?;
        self.align_bytes
            .map_or(Ok(()), |align| count("align_bytes", align.into(), u32::MAX.into()))?;
        self.begin.validate()?;
        self.span.validate()?;
        self.load.validate()?;
        self.rate_caps.validate()?;
        self.of_writers().map_or(Ok(()), |writes| writes.problem_of_writers())
    }

    fn problem_of_writers(&self) -> Result<(), Problem> {
        self.sizes_of_writes()?;
        count("writers", self.load.outstanding().unwrap_or(0), MAX_OUTSTANDING)
    }

    /// The workload of the threads that only write; `None` if there are none.
    pub fn of_writers(&self) -> Option<BlockWorkload> {
        (self.writers > 0).then(|| BlockWorkload {
            read_fraction: 0.0,
            trim_fraction: 0.0,
            load: Load::closed(self.writers, 1),
            writers: 0,
            ..self.clone()
        })
    }

    /// Whether it writes at all.
    pub fn writes(&self) -> bool {
        self.writers > 0 || self.read_fraction + self.trim_fraction < 1.0 - ROUNDING
    }

    /// The bytes of its span on a device of `capacity_bytes`.
    pub(crate) fn span_bytes(&self, capacity_bytes: u64) -> Result<u64, Problem> {
        let begin_bytes = self.begin.of(capacity_bytes, self.largest_align_bytes())?;
        self.span.of(capacity_bytes, begin_bytes)
    }

    /// The mean length of its requests in bytes, at least 1.
    pub(crate) fn mean_bytes(&self) -> f64 {
        let mean = |sizes: Result<Option<&RequestSize>, Problem>| {
            sizes.ok().flatten().map_or(0.0, RequestSize::mean_bytes)
        };
        let reads = mean(self.sizes_of_reads()) * self.read_fraction;
        (reads + mean(self.sizes_of_writes()) * (1.0 - self.read_fraction)).max(1.0)
    }

    /// The share of trims among its writes and trims, at most 99 %, so that writes go on.
    pub fn trims_of_writes(&self) -> f64 {
        let of_rest = (1.0 - self.read_fraction).max(f64::MIN_POSITIVE);
        (self.trim_fraction / of_rest).min(MOST_TRIMS)
    }

    /// The sizes of writes in bytes; empty if nothing is written.
    pub fn bytes_of_writes(&self) -> Vec<u32> {
        let sizes = self.sizes_of_writes().ok().flatten().map(RequestSize::shares);
        sizes.unwrap_or_default().iter().map(|size| size.bytes).collect()
    }

    /// The largest alignment of its requests; 1 if it has none.
    pub(crate) fn largest_align_bytes(&self) -> u32 {
        let sizes =
            [self.sizes_of_reads(), self.sizes_of_writes()].map(|sizes| sizes.ok().flatten());
        let largest = sizes.into_iter().flatten().flat_map(RequestSize::shares);
        let own = || largest.map(|size| size.bytes).max().unwrap_or(1);
        self.align_bytes.unwrap_or_else(own)
    }

    /// The sizes of reads; `None` if nothing is read.
    pub(crate) fn sizes_of_reads(&self) -> Result<Option<&RequestSize>, Problem> {
        let sizes = self.read_size.as_ref().or(self.size.as_ref());
        match self.read_fraction > 0.0 {
            false => Ok(None),
            true if sizes.is_none() => {
                Err(Problem::SizeMissing { kind: "reads", field: "read_size" })
            }
            true => Ok(sizes),
        }
    }

    /// The sizes of writes and trims; `None` if all requests are reads.
    pub(crate) fn sizes_of_writes(&self) -> Result<Option<&RequestSize>, Problem> {
        let sizes = self.write_size.as_ref().or(self.size.as_ref());
        match self.read_fraction < 1.0 {
            false => Ok(None),
            true if sizes.is_none() => {
                Err(Problem::SizeMissing { kind: "writes", field: "write_size" })
            }
            true => Ok(sizes),
        }
    }

    /// The endless sequence of requests for a device of `capacity_bytes`. One source serves all
    /// threads of the load.
    pub fn source(&self, capacity_bytes: u64, rng: Rng) -> Result<BlockSource, WorkloadError> {
        self.validate()?;
        BlockSource::new(self, capacity_bytes, rng).map_err(|problem| problem.of(&self.name))
    }
}

fn is_none(threads: &u32) -> bool {
    *threads == 0
}
