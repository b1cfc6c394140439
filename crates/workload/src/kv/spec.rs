//! A key-value workload, as in a TOML preset.

use super::key::KeyMaker;
use super::source::KvSource;
use crate::error::{Problem, WorkloadError, count, share};
use crate::load::RateCaps;
use crate::one_of::{BytesOr, bytes_or};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use softflash_base::random::{Rng, Zipf};

/// The most slices, clients of a slice, and requests of a batch.
const MAX_CLIENTS: u64 = 65_536;
/// The longest key.
const MAX_KEY_BYTES: u64 = 1024;
/// The most keys of a slice: keeps products with sizes inside 64 bits.
const MAX_KEYS: u64 = 1 << 40;

/// The workload of key-value clients. Every slice has the same number of clients, each a
/// synchronous thread that sends a batch of requests at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KvWorkload {
    /// The preset's name.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub title: String,
    /// Slices of the key space.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65536))]
    pub slices: u32,
    /// Clients of each slice.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65536))]
    pub clients: u32,
    /// Requests that a client sends together.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 65536))]
    pub batch: u32,
    /// A client sends its next batch when the whole last batch has completed; otherwise each
    /// completed request is followed by another at once.
    #[serde(default)]
    pub barrier: bool,
    /// From the end of a request (of a batch, with a barrier) to the next, in nanoseconds.
    #[serde(default)]
    pub think_ns: u64,
    /// The kind of operations.
    pub operation: Operation,
    /// The order of keys.
    #[serde(default)]
    pub order: KvOrder,
    /// The size of values.
    pub value_bytes: ValueSize,
    /// Values from this length on, in bytes, are written once to blocks of their own; by default
    /// all values are in the store's trees, as in the papers' store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("unit" = "bytes"))]
    pub value_threshold: Option<u64>,
    /// The length of keys.
    #[serde(default = "sixteen")]
    #[schemars(range(min = 1, max = 1024))]
    pub key_bytes: u32,
    /// Keys of each slice; alternatively give `data_bytes_per_slice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
    pub keys_per_slice: Option<u64>,
    /// Keys and values of each slice in bytes, from which the number of keys follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub data_bytes_per_slice: Option<u64>,
    /// The most bytes per second of all clients together.
    #[serde(default)]
    pub rate_caps: RateCaps,
    /// The duration of a run in virtual nanoseconds, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The number of requests of a run, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

fn one() -> u32 {
    1
}

fn sixteen() -> u32 {
    16
}

/// The kind of operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Operation {
    /// Read values by key.
    Read,
    /// Write values.
    Write,
    /// Reads and writes.
    Mixed {
        /// Share of the requests that read, 0 to 1.
        #[schemars(range(min = 0.0, max = 1.0))]
        read_fraction: f64,
    },
    /// Scan ranges of keys with their values.
    Scan {
        /// Bytes of keys and values that one scan covers.
        #[schemars(range(min = 1))]
        scan_bytes: u64,
    },
}

/// The order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum KvOrder {
    /// Every key is equally likely.
    #[default]
    Uniform,
    /// Popularity falls by Zipf's law; popular keys are spread over the slice.
    Zipf {
        /// 0 is uniform, 0.99 is YCSB's.
        #[schemars(range(min = 0.0))]
        exponent: f64,
    },
    /// One key after the other, and again from the beginning; the clients of a slice begin evenly
    /// spread. A scan begins about where the last one ended.
    InOrder,
    /// Each key is `keys` after the last one. After the end of the slice the next pass begins one
    /// key later, so that `keys` passes cover all keys. Each client begins at a random key.
    ///
    /// If `keys` is the number of keys in a unit of storage, each request of a client goes to the
    /// next unit, while keys in order would all go to the same one.
    Strided {
        /// The distance from key to key.
        #[schemars(range(min = 1, max = 1_099_511_627_776_u64))]
        keys: u64,
    },
}

/// The size of values: a number of bytes, or a range such as `{ min = 100_000, max = 1_000_000 }`
/// in which every size is equally likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ValueSize {
    /// One size for all values.
    Fixed(u32),
    /// Each size from `min` to `max` is equally likely. A key has the same size in every version.
    Range {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SizeRange {
    min: u32,
    max: u32,
}

impl<'de> Deserialize<'de> for ValueSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ValueSize, D::Error> {
        let expecting =
            "a number of bytes below 4 GiB, or a range such as { min = 1000, max = 2000 }";
        Ok(match bytes_or(deserializer, expecting)? {
            BytesOr::Bytes(bytes) => ValueSize::Fixed(bytes),
            BytesOr::Other(SizeRange { min, max }) => ValueSize::Range { min, max },
        })
    }
}

impl ValueSize {
    /// The size of a key's value, the same in every version.
    #[inline]
    pub fn of(&self, key: u64) -> u32 {
        match *self {
            ValueSize::Fixed(bytes) => bytes,
            ValueSize::Range { min, max } => {
                let sizes = u128::from(max - min) + 1;
                // The high half of the product is uniform over the sizes, as the mixed key is
                // uniform over 64 bits.
                min + ((u128::from(super::contents::mix(key)) * sizes) >> 64) as u32
            }
        }
    }

    /// The mean size.
    pub fn mean_bytes(&self) -> f64 {
        match *self {
            ValueSize::Fixed(bytes) => f64::from(bytes),
            ValueSize::Range { min, max } => (f64::from(min) + f64::from(max)) / 2.0,
        }
    }

    fn validate(&self) -> Result<(), Problem> {
        let (min, max) = match *self {
            ValueSize::Fixed(bytes) => (bytes, bytes),
            ValueSize::Range { min, max } => (min, max),
        };
        match min {
            0 => Err(Problem::Zero { field: "value_bytes" }),
            _ if min > max => {
                Err(Problem::Range { field: "value_bytes", min: min.into(), max: max.into() })
            }
            _ => Ok(()),
        }
    }
}

impl KvWorkload {
    /// One client that reads values of 1 KiB, of a million keys in one slice: a starting point for
    /// workloads in code.
    pub fn new(name: impl Into<String>) -> KvWorkload {
        KvWorkload {
            name: name.into(),
            title: String::new(),
            slices: 1,
            clients: 1,
            batch: 1,
            barrier: false,
            think_ns: 0,
            operation: Operation::Read,
            order: KvOrder::Uniform,
            value_bytes: ValueSize::Fixed(1024),
            value_threshold: None,
            key_bytes: sixteen(),
            keys_per_slice: Some(1_000_000),
            data_bytes_per_slice: None,
            rate_caps: RateCaps::default(),
            duration_ns: None,
            requests: None,
        }
    }

    /// Checks that the workload is valid.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        self.problem().map_err(|problem| problem.of(&self.name))
    }

    fn problem(&self) -> Result<(), Problem> {
        count("slices", self.slices.into(), MAX_CLIENTS)?;
        count("clients", self.clients.into(), MAX_CLIENTS)?;
        count("batch", self.batch.into(), MAX_CLIENTS)?;
        self.value_bytes.validate()?;
        count("key_bytes", self.key_bytes.into(), MAX_KEY_BYTES)?;
        match self.operation {
            Operation::Read | Operation::Write => {}
            Operation::Mixed { read_fraction } => {
                share("operation.mixed.read_fraction", read_fraction)?;
            }
            Operation::Scan { scan_bytes } => {
                count("operation.scan.scan_bytes", scan_bytes, u64::MAX)?;
            }
        }
        match self.order {
            KvOrder::Uniform | KvOrder::InOrder => {}
            KvOrder::Zipf { exponent } => {
                Zipf::new(1, exponent).map_err(Problem::Zipf)?;
            }
            KvOrder::Strided { keys } => count("order.strided.keys", keys, MAX_KEYS)?,
        }
        self.rate_caps.validate()?;
        match (self.keys_per_slice, self.data_bytes_per_slice) {
            (Some(keys), None) => count("keys_per_slice", keys, MAX_KEYS),
            (None, Some(bytes)) => {
                count("data_bytes_per_slice", bytes, u64::MAX)?;
                count("data_bytes_per_slice / (key_bytes + value_bytes)", self.keys(), MAX_KEYS)
            }
            _ => Err(Problem::EitherOr { one: "keys_per_slice", other: "data_bytes_per_slice" }),
        }
    }

    /// Keys of each slice, numbered from 0.
    pub fn keys(&self) -> u64 {
        let in_data = self.data_bytes_per_slice.map(|bytes| self.records_in(bytes));
        self.keys_per_slice.or(in_data).unwrap_or(0)
    }

    /// Keys that a request covers: more than one with scans.
    pub(super) fn keys_of_a_request(&self) -> u64 {
        match self.operation {
            Operation::Scan { scan_bytes } => self.records_in(scan_bytes).max(1),
            _ => 1,
        }
    }

    /// The number of keys that, with values of mean size, have so many bytes.
    fn records_in(&self, bytes: u64) -> u64 {
        let record_bytes = f64::from(self.key_bytes) + self.value_bytes.mean_bytes();
        (bytes as f64 / record_bytes) as u64
    }

    /// Makes the keys of a slice from their numbers, behind `prefix`.
    pub fn key_maker(&self, prefix: &[u8]) -> Result<KeyMaker, WorkloadError> {
        self.validate()?;
        KeyMaker::new(prefix, self.key_bytes, self.keys()).map_err(|problem| problem.of(&self.name))
    }

    /// The endless sequence of requests of one client of a slice. It depends on the seed of `rng`,
    /// the slice and the client alone.
    pub fn source(&self, slice: u32, client: u32, rng: &Rng) -> Result<KvSource, WorkloadError> {
        self.validate()?;
        KvSource::new(self, slice, client, rng).map_err(|problem| problem.of(&self.name))
    }
}
