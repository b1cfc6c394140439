//! Footprint and reuse of blocks: exact, or estimated from a sample that is chosen by hash.
//!
//! A block is followed if its hash is at most a bound, which only decreases. So a block that is
//! followed at the end was followed from its first access on, and its figures are exact; only the
//! extrapolation to all blocks is not.

use super::report::{Blocks, HotSet, Reuse, Times};
use super::sizes::{histogram, record};
use super::{BLOCK_BYTES, BLOCKS_OF_REQUEST};
use crate::request::{Kind, Request};
use hashbrown::HashMap;
use hdrhistogram::Histogram;
use softflash_base::checksum::hash64;
use std::hash::{BuildHasherDefault, Hasher};

/// Longer times count as this long, 36 years.
const CEILING_NS: u64 = 1 << 60;

/// Shares of accesses for which the hot set is reported.
const HOT_SHARES: [f64; 4] = [0.5, 0.8, 0.9, 0.99];

/// Keys are hashes already.
#[derive(Default)]
struct AsItIs(u64);

impl Hasher for AsItIs {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = hash64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        // The upper bits of a sample are all zero, and the hash table uses them too.
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A block that is followed.
#[derive(Default)]
struct Block {
    reads: u32,
    writes: u32,
    last_ns: u64,
}

impl Block {
    fn accesses(&self) -> u64 {
        u64::from(self.reads) + u64::from(self.writes)
    }
}

pub(super) struct BlockTable {
    limit: usize,
    /// By the hash of device and block number. Two blocks with one hash would count as one: with a
    /// million blocks in the table, one pair in 40 million traces.
    blocks: HashMap<u64, Block, BuildHasherDefault<AsItIs>>,
    /// Hashes above it are not followed.
    bound: u64,
    again_ns: Histogram<u64>,
    cut: u64,
}

impl BlockTable {
    pub(super) fn new(limit: usize) -> BlockTable {
        let (blocks, again_ns) = (HashMap::default(), histogram());
        BlockTable { limit, blocks, bound: u64::MAX, again_ns, cut: 0 }
    }

    pub(super) fn add(&mut self, request: &Request) {
        if request.bytes == 0 {
            return;
        }
        let first = request.offset_bytes / BLOCK_BYTES;
        let mut last = (request.end_bytes() - 1) / BLOCK_BYTES;
        if last - first >= BLOCKS_OF_REQUEST {
            last = first + BLOCKS_OF_REQUEST - 1;
            self.cut += 1;
        }
        for number in first..=last {
            let hash = hash_of(request.device, number);
            if hash <= self.bound {
                self.touch(hash, request);
            }
        }
    }

    #[inline]
    fn touch(&mut self, hash: u64, request: &Request) {
        let block = self.blocks.entry(hash).or_default();
        if block.accesses() > 0 {
            let again_ns = request.at_ns.saturating_sub(block.last_ns).min(CEILING_NS);
            record(&mut self.again_ns, again_ns);
        }
        let count = match request.kind {
            Kind::Read => &mut block.reads,
            _ => &mut block.writes,
        };
        *count = count.saturating_add(1);
        block.last_ns = request.at_ns;
        if self.blocks.len() > self.limit {
            self.bound /= 2;
            // Removing them one by one would leave tombstones that make the table grow to twice its
            // size.
            let bound = self.bound;
            let kept: Vec<_> = self.blocks.drain().filter(|(hash, _)| *hash <= bound).collect();
            self.blocks.extend(kept);
        }
    }

    pub(super) fn finish(self) -> Blocks {
        let sampled = self.bound as f64 / u64::MAX as f64;
        let bytes =
            |count: usize| ((count as f64 / sampled).round() as u64).saturating_mul(BLOCK_BYTES);
        let count = |wanted: fn(&Block) -> bool| {
            bytes(self.blocks.values().filter(|block| wanted(block)).count())
        };
        let followed = self.blocks.len();
        Blocks {
            block_bytes: BLOCK_BYTES,
            sampled,
            relative_error: match followed {
                0 => 0.0,
                _ => ((1.0 - sampled) / followed as f64).sqrt(),
            },
            touched_bytes: bytes(followed),
            read_bytes: count(|block| block.reads > 0),
            written_bytes: count(|block| block.writes > 0),
            both_bytes: count(|block| block.reads > 0 && block.writes > 0),
            cut_requests: self.cut,
            reuse: self.reuse(),
            hot: self.hot(&bytes),
        }
    }

    fn reuse(&self) -> Option<Reuse> {
        if self.blocks.is_empty() {
            return None;
        }
        let blocks = self.blocks.len() as f64;
        let sum = |of: fn(&Block) -> u64| self.blocks.values().map(of).sum::<u64>() as f64;
        let written = sum(|block| u64::from(block.writes > 0));
        let at =
            |percent| self.again_ns.median_equivalent(self.again_ns.value_at_percentile(percent));
        Some(Reuse {
            mean_accesses: sum(Block::accesses) / blocks,
            once_share: sum(|block| u64::from(block.accesses() == 1)) / blocks,
            mean_writes: (written > 0.0).then(|| sum(|block| u64::from(block.writes)) / written),
            times: (!self.again_ns.is_empty()).then(|| Times {
                count: self.again_ns.len(),
                p10_ns: at(10.0),
                p50_ns: at(50.0),
                p90_ns: at(90.0),
                p99_ns: at(99.0),
            }),
        })
    }

    /// For each share of the accesses, the fewest (hottest) blocks that have it.
    fn hot(&self, bytes: &dyn Fn(usize) -> u64) -> Vec<HotSet> {
        let mut accesses: Vec<u64> = self.blocks.values().map(Block::accesses).collect();
        accesses.sort_unstable_by(|a, b| b.cmp(a));
        let total: u64 = accesses.iter().sum();
        let mut hottest = accesses.iter();
        let (mut taken, mut blocks) = (0_u64, 0_usize);
        let shares = HOT_SHARES.into_iter().filter(|_| total > 0);
        shares
            .map(|accesses_share| {
                while (taken as f64) < accesses_share * total as f64 {
                    let Some(next) = hottest.next() else { break };
                    taken += next;
                    blocks += 1;
                }
                let blocks_share = blocks as f64 / accesses.len() as f64;
                HotSet { accesses_share, blocks_share, bytes: bytes(blocks) }
            })
            .collect()
    }
}

#[inline]
fn hash_of(device: u32, number: u64) -> u64 {
    hash64(&((u128::from(device) << 64) | u128::from(number)).to_le_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_samples_does_not_grow() {
        let mut table = BlockTable::new(1700);
        let mut most = 0;
        for number in 0..200_000 {
            let offset_bytes = number * BLOCK_BYTES;
            table.add(&Request { at_ns: 0, device: 0, kind: Kind::Read, offset_bytes, bytes: 1 });
            most = most.max(table.blocks.capacity());
        }
        assert!(most <= 1792, "room for {most} blocks");
        assert!((600..=1700).contains(&table.blocks.len()), "{} are followed", table.blocks.len());
    }
}
