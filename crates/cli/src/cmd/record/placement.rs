//! Placement of keys on the virtual block device of a recorded trace.

use std::collections::{BTreeMap, HashMap};

/// Allocation unit of ranges.
pub const BLOCK_BYTES: u64 = 4096;

/// A range of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Start.
    pub offset_bytes: u64,
    /// Length; never 0.
    pub bytes: u64,
}

/// A key's place: first block and number of blocks.
#[derive(Debug, Clone, Copy)]
struct Place {
    first: u64,
    blocks: u32,
}

impl Place {
    fn range(self, blocks: u32) -> Range {
        Range { offset_bytes: self.first * BLOCK_BYTES, bytes: u64::from(blocks) * BLOCK_BYTES }
    }
}

/// When a key is first seen, allocates the blocks for its value; the key keeps them while the value
/// fits. Blocks of removed keys are reused for values of the same number of blocks.
#[derive(Debug, Default)]
pub struct Placement {
    places: HashMap<u64, Place>,
    free: BTreeMap<u32, Vec<u64>>,
    end_block: u64,
}

impl Placement {
    /// The range of a key for an access to a value of this length; and first the range that the
    /// value has outgrown.
    pub fn place(&mut self, key: u64, value_bytes: u64) -> (Option<Range>, Range) {
        let blocks = value_bytes.div_ceil(BLOCK_BYTES).clamp(1, u64::from(u32::MAX)) as u32;
        if let Some(place) = self.places.get(&key)
            && place.blocks >= blocks
        {
            return (None, place.range(blocks));
        }
        let outgrown = self.remove(key);
        let place = Place { first: self.allocate(blocks), blocks };
        self.places.insert(key, place);
        (outgrown, place.range(blocks))
    }

    /// Frees the range of a key, if it has one.
    pub fn remove(&mut self, key: u64) -> Option<Range> {
        let place = self.places.remove(&key)?;
        self.free.entry(place.blocks).or_default().push(place.first);
        Some(place.range(place.blocks))
    }

    /// Frees everything; returns the range that was in use.
    pub fn clear(&mut self) -> Option<Range> {
        let cleared = std::mem::take(self);
        (cleared.end_block > 0)
            .then(|| Range { offset_bytes: 0, bytes: cleared.end_block * BLOCK_BYTES })
    }

    /// Number of keys that have a range.
    pub fn keys(&self) -> usize {
        self.places.len()
    }

    fn allocate(&mut self, blocks: u32) -> u64 {
        if let Some(first) = self.free.get_mut(&blocks).and_then(Vec::pop) {
            return first;
        }
        let first = self.end_block;
        self.end_block += u64::from(blocks);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, blocks: u64) -> Range {
        Range { offset_bytes: first * BLOCK_BYTES, bytes: blocks * BLOCK_BYTES }
    }

    #[test]
    fn keys_stay_where_they_are_while_they_fit() {
        let mut placement = Placement::default();
        assert_eq!(placement.place(7, 10_000), (None, range(0, 3)));
        assert_eq!(placement.place(8, 0), (None, range(3, 1)), "an empty value has a block too");
        assert_eq!(placement.place(7, 4096), (None, range(0, 1)), "shorter, at the same place");
        assert_eq!(placement.place(7, 12_288), (None, range(0, 3)), "as long as at first");
        assert_eq!(placement.place(7, 12_289), (Some(range(0, 3)), range(4, 4)), "outgrown");
        assert_eq!(placement.keys(), 2);
    }

    #[test]
    fn free_ranges_are_used_again() {
        let mut placement = Placement::default();
        placement.place(1, 8192);
        placement.place(2, 8192);
        assert_eq!(placement.remove(1), Some(range(0, 2)));
        assert_eq!(placement.remove(1), None);
        assert_eq!(placement.place(3, 4096), (None, range(4, 1)), "of the same size only");
        assert_eq!(placement.place(4, 5000), (None, range(0, 2)));
        assert_eq!(placement.clear(), Some(range(0, 5)));
        assert_eq!((placement.clear(), placement.keys()), (None, 0));
        assert_eq!(placement.place(4, 1), (None, range(0, 1)));
    }
}
