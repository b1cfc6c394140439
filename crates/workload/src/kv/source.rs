//! The generator of a client's key-value requests.

use super::spec::{KvOrder, KvWorkload, Operation, ValueSize};
use crate::error::Problem;
use crate::permutation::Permutation;
use serde::{Deserialize, Serialize};
use softflash_base::random::{Rng, Zipf};

/// The kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KvKind {
    /// Read the value of a key.
    Read,
    /// Write the value of a key.
    Write,
    /// Read a range of keys, from one key on, with their values.
    Scan,
}

/// A request of a key-value client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KvAccess {
    /// The slice, from 0.
    pub slice: u32,
    /// The kind of access.
    pub kind: KvKind,
    /// The number of the key in its slice, from 0.
    pub key: u64,
    /// Bytes of the value, or bytes to scan.
    pub bytes: u64,
}

/// The endless sequence of requests of one client.
#[derive(Debug, Clone)]
pub struct KvSource {
    slice: u32,
    rng: Rng,
    operation: Operation,
    value_bytes: ValueSize,
    keys: Keys,
}

impl KvSource {
    /// `workload` must be valid.
    pub(super) fn new(
        workload: &KvWorkload,
        slice: u32,
        client: u32,
        rng: &Rng,
    ) -> Result<KvSource, Problem> {
        for (what, index, count) in
            [("slice", slice, workload.slices), ("client", client, workload.clients)]
        {
            if index >= count {
                return Err(Problem::NoSuch { what, index, count });
            }
        }
        let of_slice = rng.fork("slice").fork(slice.to_le_bytes());
        let all = workload.keys();
        let keys = match workload.order {
            KvOrder::Uniform => Keys::Uniform { all },
            KvOrder::Zipf { exponent } => {
                let ranks = Zipf::new(all, exponent).map_err(Problem::Zipf)?;
                // All clients of a slice have the same popular keys.
                let scatter = Permutation::new(all, &mut of_slice.fork("popular"));
                Keys::Zipf { ranks, scatter }
            }
            KvOrder::InOrder => {
                let begin = u128::from(all) * u128::from(client) / u128::from(workload.clients);
                Keys::InOrder { all, next: begin as u64, step: workload.keys_of_a_request() }
            }
            KvOrder::Strided { keys } => {
                let mut begin = of_slice.fork("begin").fork(client.to_le_bytes());
                Keys::Strided { all, next: begin.below(all), stride: keys }
            }
        };
        let rng = of_slice.fork("client").fork(client.to_le_bytes());
        let KvWorkload { operation, value_bytes, .. } = *workload;
        Ok(KvSource { slice, rng, operation, value_bytes, keys })
    }

    /// The next request.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an iterator may end, this does not")]
    pub fn next(&mut self) -> KvAccess {
        let kind = match self.operation {
            Operation::Read => KvKind::Read,
            Operation::Write => KvKind::Write,
            Operation::Scan { .. } => KvKind::Scan,
            Operation::Mixed { read_fraction } if self.rng.chance(read_fraction) => KvKind::Read,
            Operation::Mixed { .. } => KvKind::Write,
        };
        let key = self.keys.draw(&mut self.rng);
        let bytes = match self.operation {
            Operation::Scan { scan_bytes } => scan_bytes,
            _ => self.value_bytes.of(key).into(),
        };
        KvAccess { slice: self.slice, kind, key, bytes }
    }
}

/// The generator of keys.
#[derive(Debug, Clone)]
enum Keys {
    Uniform { all: u64 },
    Zipf { ranks: Zipf, scatter: Permutation },
    InOrder { all: u64, next: u64, step: u64 },
    Strided { all: u64, next: u64, stride: u64 },
}

impl Keys {
    #[inline]
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        match self {
            Keys::Uniform { all } => rng.below(*all),
            Keys::Zipf { ranks, scatter } => scatter.place(ranks.rank(rng)),
            Keys::InOrder { all, next, step } => {
                let key = *next;
                *next = key.saturating_add(*step);
                if *next >= *all {
                    *next = 0;
                }
                key
            }
            Keys::Strided { all, next, stride } => {
                let key = *next;
                *next = key + *stride;
                if *next >= *all {
                    // A pass is over; the next one begins one key later, and after the last pass
                    // the first one begins again.
                    *next = (key % *stride + 1) % (*stride).min(*all);
                }
                key
            }
        }
    }
}
