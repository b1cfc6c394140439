//! Keys and values of the benchmark; equal seeds give equal data.

use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_store::StoreLayout;

/// Values are slices of this many random bytes.
const POOL_BYTES: usize = 4 << 20;
/// Bytes of a key.
pub const KEY_BYTES: u64 = 20;
const KEY_PREFIX: &[u8; 4] = b"key:";

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

    /// The first number that is not of the data set.
    pub fn first_new(&self) -> u32 {
        self.keys
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
        KEY_BYTES + self.value_bytes as u64
    }
}

/// The key of a number: keys are in the order of their numbers.
pub fn key(number: u32) -> Bytes {
    // Not by `format!`, whose cost would be measured.
    let mut key = [b'0'; KEY_BYTES as usize];
    key[..KEY_PREFIX.len()].copy_from_slice(KEY_PREFIX);
    let mut left = number;
    for digit in key.iter_mut().rev() {
        if left == 0 {
            break;
        }
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    Bytes::copy_from_slice(&key)
}

/// A key between this one and the one before it, so that a scan behind it begins with this one.
pub fn just_before(key: &Bytes) -> Bytes {
    let mut before = key.to_vec();
    if let Some(last) = before.last_mut() {
        *last -= 1;
        before.push(u8::MAX);
    }
    before.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_20_bytes_and_the_order_of_their_numbers() {
        assert_eq!(&key(0)[..], b"key:0000000000000000");
        assert_eq!(&key(u32::MAX)[..], b"key:0000004294967295");
        for number in [0, 8, 9, 10, 99, 12_345, 4_000_000_000] {
            assert_eq!(key(number).len() as u64, KEY_BYTES);
            assert!(key(number) < key(number + 1), "{number}");
        }
    }

    #[test]
    fn a_scan_behind_the_key_just_before_begins_with_the_key() {
        for number in [0, 9, 10, 100, 12_345] {
            let before = just_before(&key(number));
            assert!(before < key(number), "{number}");
            assert!(number == 0 || key(number - 1) < before, "{number}");
        }
    }
}
