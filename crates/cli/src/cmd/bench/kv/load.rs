//! Keys and values of the benchmark; equal seeds give equal data.

use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_store::StoreLayout;

/// Values are slices of this many random bytes.
const POOL_BYTES: usize = 4 << 20;

/// Parameters of the workload.
pub struct Load {
    pool: Bytes,
    value_bytes: usize,
    keys: u32,
    /// Concurrent operations per thread.
    pub depth: u32,
    seed: u64,
}

impl Load {
    /// Incompressible values of `value_bytes`, under `keys` keys.
    pub fn new(value_bytes: usize, keys: u32, depth: u32, seed: u64) -> Load {
        let mut pool = vec![0; POOL_BYTES.max(2 * value_bytes)];
        Rng::seeded(seed).fill(&mut pool);
        Load { pool: pool.into(), value_bytes, keys: keys.max(1), depth, seed }
    }

    /// The numbers of a shard's keys, in random order.
    pub fn numbers_of(&self, layout: &StoreLayout, shard: ShardId) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            (0..self.keys).filter(|number| layout.shard_of(&key(*number)) == shard).collect();
        self.rng(shard).shuffle(&mut numbers);
        numbers
    }

    /// A generator for a thread.
    pub fn rng(&self, shard: ShardId) -> Rng {
        Rng::seeded(self.seed).fork(format!("shard {shard}"))
    }

    /// A value.
    pub fn value(&self, rng: &mut Rng) -> Bytes {
        let room = self.pool.len() - self.value_bytes;
        let start = rng.below(room as u64 + 1) as usize;
        self.pool.slice(start..start + self.value_bytes)
    }

    /// Bytes of a key and its value.
    pub fn record_bytes(&self) -> u64 {
        (key(0).len() + self.value_bytes) as u64
    }
}

/// The key of a number: 20 bytes.
pub fn key(number: u32) -> Bytes {
    Bytes::from(format!("key:{number:016}"))
}
