//! The partition of the key space: keys hash to slots, slots to slices, slices to shards, and
//! shards own units. It is fixed when the store is formatted.

use serde::{Deserialize, Serialize};
use softflash_base::{ShardId, SliceId, UnitSet};
use softflash_blocks::Redundancy;
use softflash_ftl::{Owners, Ownership};
use std::ops::Range;

/// Slots of the key space, as in Redis Cluster.
pub const SLOTS: u16 = 16384;

/// Compression of the blocks of a slice's patches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Uncompressed.
    #[default]
    None,
    /// LZ4: little CPU time.
    Lz4,
    /// Zstandard at its default level: smaller.
    Zstd,
}

/// The layout of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLayout {
    /// Shards: each has a core, a log and its own units.
    pub shards: u16,
    /// Slices: each has a memtable and a tree of patches. At least one per shard.
    pub slices: u16,
    /// The units of each shard.
    pub units: Vec<UnitSet>,
    /// The epoch of the table of sets that names these units; 0 without one.
    pub epoch: u32,
    /// Compression of each slice; a slice beyond the end of the list has none.
    pub compression: Vec<Compression>,
    /// Copies of each block, on different units: 1 or 2.
    pub copies: u8,
    /// Patches that share a parity block, at most; 0 for no parity.
    pub parity: u8,
}

/// The default number of copies.
pub const fn one_copy() -> u8 {
    1
}

/// The most patches that share a parity block.
pub const MOST_MEMBERS: u8 = 16;
/// The fewest units of a shard with parity: two patches and their parity block need one each.
pub const LEAST_UNITS_OF_PARITY: u16 = 3;

/// The static split: as many units for each shard as for any other, or one more, in the order of
/// their numbers.
pub fn split(units: u16, shards: u16) -> Vec<UnitSet> {
    let first = |shard: u16| (u32::from(shard) * u32::from(units) / u32::from(shards)) as u16;
    (0..shards).map(|shard| UnitSet::from(first(shard)..first(shard + 1))).collect()
}

impl StoreLayout {
    /// A layout with the [split] of the first `units` units, one copy, and no compression.
    pub fn new(shards: u16, slices: u16, units: u16) -> StoreLayout {
        let (units, compression) = (split(units, shards), Vec::new());
        StoreLayout { shards, slices, units, epoch: 0, compression, copies: one_copy(), parity: 0 }
    }

    /// The reason why the layout is invalid, if it is.
    pub fn problem(&self) -> Option<String> {
        let StoreLayout { shards, slices, copies, parity, .. } = *self;
        let units: usize = self.units.iter().map(UnitSet::len).sum();
        let fewest = self.units.iter().map(UnitSet::len).min().unwrap_or(0);
        if shards == 0 {
            Some("a store needs at least one shard".into())
        } else if self.units.len() != usize::from(shards) {
            Some(format!(
                "{} sets of units are for {shards} shards; use one set for each shard",
                self.units.len()
            ))
        } else if slices < shards {
            Some(format!(
                "{slices} slices cannot be spread over {shards} shards; use at least as many slices"
            ))
        } else if slices > SLOTS {
            Some(format!("{slices} slices are more than the {SLOTS} slots of the key space"))
        } else if fewest == 0 {
            Some(format!("{units} units cannot be spread over {shards} shards; use fewer shards"))
        } else if !(1..=2).contains(&copies) {
            Some(format!("a store cannot keep {copies} copies; use 1 or 2"))
        } else if fewest < usize::from(copies) {
            Some(format!(
                "{copies} copies need as many units in each shard, and {units} units are spread over {shards} shards; \
                 use fewer shards or more units"
            ))
        } else if parity != 0 && copies > 1 {
            Some("a store keeps two copies of everything or parity, not both; choose one".into())
        } else if parity != 0 && !(2..=MOST_MEMBERS).contains(&parity) {
            Some(format!(
                "parity over {parity} patches is not possible; use 2 to {MOST_MEMBERS}, or 0 for none"
            ))
        } else if parity != 0 && fewest < usize::from(LEAST_UNITS_OF_PARITY) {
            Some(format!(
                "parity needs {LEAST_UNITS_OF_PARITY} units in each shard, and {units} units are spread over {shards} \
                 shards; use fewer shards or more units"
            ))
        } else {
            self.shared_unit()
        }
    }

    /// The problem where two shards have the same unit.
    fn shared_unit(&self) -> Option<String> {
        let (unit, [first, second]) = UnitSet::in_two_of(&self.units)?;
        Some(format!(
            "unit {unit} belongs to shard {first} and to shard {second}; a unit has one owner: take it from one of them"
        ))
    }

    /// The redundancy of the blocks.
    pub fn redundancy(&self) -> Redundancy {
        match (self.copies, self.parity) {
            (_, members @ 1..) => Redundancy::Parity { members },
            (0 | 1, 0) => Redundancy::None,
            _ => Redundancy::Copies,
        }
    }

    /// The slice of a key.
    pub fn slice_of(&self, key: &[u8]) -> SliceId {
        let slice = u32::from(slot_of(key)) * u32::from(self.slices) / u32::from(SLOTS);
        SliceId(slice as u16)
    }

    /// The shard of a slice.
    pub fn shard_of_slice(&self, slice: SliceId) -> ShardId {
        let shard = u32::from(slice.0) * u32::from(self.shards) / u32::from(self.slices);
        ShardId(shard as u16)
    }

    /// The shard of a key.
    pub fn shard_of(&self, key: &[u8]) -> ShardId {
        if self.shards == 1 { ShardId(0) } else { self.shard_of_slice(self.slice_of(key)) }
    }

    /// The slices of a shard.
    pub fn slices_of(&self, shard: ShardId) -> Range<u16> {
        let first = |shard: u32| (shard * u32::from(self.slices)).div_ceil(u32::from(self.shards));
        first(u32::from(shard.0)) as u16..first(u32::from(shard.0) + 1) as u16
    }

    /// The units of a shard; none where there is no such shard.
    pub fn units_of(&self, shard: ShardId) -> UnitSet {
        self.units.get(shard.index()).cloned().unwrap_or_default()
    }

    /// The owners of a shard's units, for a mount of the store alone.
    pub(crate) fn owners(&self, shard: ShardId) -> Owners {
        Owners::one(self.units_of(shard), Ownership::BLOCKS).at_epoch(self.epoch)
    }

    /// The compression of a slice.
    pub fn compression_of(&self, slice: SliceId) -> Compression {
        self.compression.get(slice.index()).copied().unwrap_or_default()
    }
}

/// The slot of a key: CRC-16/XMODEM modulo 16384 of the key, or of its hash tag `{...}` if it has
/// one (Redis Cluster specification).
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|byte| *byte == b'{') else { return key };
    let rest = key.get(open + 1..).unwrap_or_default();
    match rest.iter().position(|byte| *byte == b'}') {
        Some(length) if length > 0 => rest.get(..length).unwrap_or(key),
        _ => key,
    }
}

const CRC16: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        let index = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ CRC16[index]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_redis_cluster() {
        assert_eq!(crc16(b"123456789"), 0x31c3, "the specification's check value");
        assert_eq!(slot_of(b"foo"), 12182);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
        assert_eq!(hash_tag(b"foo{}{bar}"), b"foo{}{bar}", "an empty tag is no tag");
        assert_eq!(hash_tag(b"foo{{bar}}zap"), b"{bar");
    }

    #[test]
    fn slices_and_units_are_spread_without_gaps() {
        for (shards, slices, units) in [(1, 1, 1), (2, 3, 16), (3, 7, 11), (4, 4, 44)] {
            let layout = StoreLayout::new(shards, slices, units);
            assert_eq!(layout.problem(), None);
            let (mut next_slice, mut next_unit) = (0, 0);
            for shard in (0..shards).map(ShardId) {
                assert_eq!(layout.slices_of(shard).start, next_slice);
                assert_eq!(layout.units_of(shard).first(), Some(next_unit));
                for slice in layout.slices_of(shard) {
                    assert_eq!(layout.shard_of_slice(SliceId(slice)), shard);
                }
                next_slice = layout.slices_of(shard).end;
                next_unit += layout.units_of(shard).len() as u16;
            }
            assert_eq!((next_slice, next_unit), (slices, units));
        }
    }

    #[test]
    fn shards_have_any_units_and_each_unit_has_one_shard() {
        let layout = |units: &[&str], parity| {
            let units: Vec<UnitSet> = units.iter().map(|set| set.parse().unwrap()).collect();
            StoreLayout { units, parity, ..StoreLayout::new(2, 2, 0) }
        };
        let problem = |units: &[&str], parity| layout(units, parity).problem().unwrap_or_default();
        assert_eq!(problem(&["0,3,7", "1-2"], 0), "");
        assert_eq!(layout(&["0,3,7", "1-2"], 0).units_of(ShardId(0)), "0,3,7".parse().unwrap());
        assert!(layout(&["0,3,7", "1-2"], 0).units_of(ShardId(2)).is_empty());
        let twice = problem(&["0,3,7", "1-3"], 0);
        assert!(twice.contains("unit 3 belongs to shard 0 and to shard 1"), "{twice}");
        assert!(problem(&["0,3,7", "1-2"], 2).contains("parity needs 3 units in each shard"));
        assert!(problem(&["0,3,7", ""], 0).contains("use fewer shards"));
        assert!(problem(&["0"], 0).contains("one set for each shard"));
    }

    #[test]
    fn copies_lie_on_units_of_one_shard() {
        let layout = |shards, units, copies| {
            StoreLayout { copies, ..StoreLayout::new(shards, shards, units) }.problem()
        };
        assert_eq!((layout(2, 4, 2), layout(2, 5, 2), layout(1, 1, 1)), (None, None, None));
        assert!(layout(2, 3, 2).is_some_and(|problem| problem.contains("2 shards")));
        assert!(layout(1, 4, 3).is_some() && layout(1, 4, 0).is_some());
    }
    #[test]
    fn parity_needs_three_units_of_one_shard() {
        let layout = |shards, units, copies, parity| StoreLayout {
            copies,
            parity,
            ..StoreLayout::new(shards, shards, units)
        };
        let problem =
            |shards, units, copies, parity| layout(shards, units, copies, parity).problem();
        assert_eq!((problem(1, 3, 1, 2), problem(2, 7, 1, 16)), (None, None));
        assert!(problem(2, 5, 1, 2).is_some_and(|problem| problem.contains("2 shards")));
        assert!(problem(1, 4, 2, 2).is_some_and(|problem| problem.contains("not both")));
        assert!(problem(1, 9, 1, 1).is_some() && problem(1, 99, 1, 17).is_some());
        assert_eq!(layout(1, 3, 1, 2).redundancy(), Redundancy::Parity { members: 2 });
        assert_eq!(layout(1, 3, 2, 0).redundancy(), Redundancy::Copies);
        assert_eq!(layout(1, 3, 1, 0).redundancy(), Redundancy::None);
    }
}
