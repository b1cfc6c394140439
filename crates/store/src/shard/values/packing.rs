//! How values fill blocks. A value ends before the end of its block, and the next one that does not
//! fit the rest begins another block: the rest stays unused.

use crate::format::record::MAX_FRAGMENT_BYTES;
use crate::format::value::stored_len;
use softflash_base::cast::wide;

/// A block holds this many of the longest fragments, or more.
const FEWEST_OF_A_BLOCK: usize = 4;

/// The size of value blocks, and of the fragments in them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    pub(super) block_bytes: usize,
    pub(super) page_bytes: usize,
    /// The most bytes of a fragment, by the options.
    pub(super) fragment_bytes: usize,
}

impl Packing {
    /// The most bytes of a fragment of a value with such a key: so many that a whole number of
    /// fragments fills a block.
    pub(super) fn longest_fragment(&self, key_len: usize) -> usize {
        let of_block = self.block_bytes.div_ceil(MAX_FRAGMENT_BYTES).max(FEWEST_OF_A_BLOCK);
        let share = self.block_bytes / of_block;
        let of_pages = share - share % self.page_bytes.min(share).max(1);
        // Long keys in small blocks leave no such room.
        let fitting = of_pages.saturating_sub(stored_len(key_len, 0)).max(share / 2).max(1);
        self.fragment_bytes.min(fitting)
    }

    /// The most fragments into which a value is cut that is given in `pieces`.
    pub(super) fn most_fragments(&self, key_len: usize, len: usize, pieces: usize) -> usize {
        len.div_ceil(self.longest_fragment(key_len)).max(1) + pieces.max(1) - 1
    }

    /// Bytes of blocks for a value of `len` bytes in so many fragments, whatever the values around
    /// it: a fragment that begins a block has left less than its own length of the one before.
    pub(super) fn space(&self, key_len: usize, len: usize, fragments: usize) -> usize {
        let longest = self.longest_fragment(key_len);
        let fragment = stored_len(key_len, len.min(longest));
        let bytes = len + fragments * stored_len(key_len, 0);
        match self.block_bytes.checked_sub(fragment) {
            Some(rest) if rest >= fragment => {
                let scaled = wide(bytes) * wide(self.block_bytes) / wide(rest);
                usize::try_from(scaled).unwrap_or(usize::MAX)
            }
            // A block for each fragment.
            _ => fragments * self.block_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKING: Packing =
        Packing { block_bytes: 258 << 12, page_bytes: 4 << 10, fragment_bytes: 1 << 20 };

    /// Blocks that values take which are written one behind the other.
    fn blocks_of(lens: impl Iterator<Item = usize>) -> usize {
        let (mut blocks, mut left) = (0, 0);
        for len in lens {
            if len > left {
                (blocks, left) = (blocks + 1, PACKING.block_bytes);
            }
            left -= len;
        }
        blocks
    }

    #[test]
    fn the_longest_fragments_fill_a_block() {
        for (block_bytes, key_len) in [(258 << 12, 9), (8 << 20, 100), (250 << 10, 2000)] {
            let packing = Packing { block_bytes, ..PACKING };
            let stored = stored_len(key_len, packing.longest_fragment(key_len));
            let count = block_bytes / stored;
            assert!(count >= FEWEST_OF_A_BLOCK, "{block_bytes} {key_len}");
            assert!(block_bytes - count * stored < (count + 1) * PACKING.page_bytes);
            assert!(packing.longest_fragment(key_len) <= MAX_FRAGMENT_BYTES);
        }
        // Keys that are longer than a quarter of a block.
        let small = Packing { block_bytes: 32 << 10, ..PACKING };
        assert!(small.longest_fragment(60_000) >= 4 << 10);
        assert_eq!(Packing { fragment_bytes: 300, ..PACKING }.longest_fragment(10), 300);
    }

    #[test]
    fn the_space_suffices_for_any_order_of_values() {
        let (mut rng, key_len) = (softflash_base::random::Rng::seeded(7), 20);
        for longest in [3_000, 100_000, 400_000, 3_000_000] {
            let lens: Vec<usize> = (0..500).map(|_| 1 + rng.below(longest) as usize).collect();
            let space = |len: &usize| {
                PACKING.space(key_len, *len, PACKING.most_fragments(key_len, *len, 1))
            };
            let reserved: usize = lens.iter().map(space).sum();
            let cut = PACKING.longest_fragment(key_len);
            let fragments = lens.iter().flat_map(|len| {
                let starts = (0..*len).step_by(cut);
                starts.map(move |at| stored_len(key_len, cut.min(len - at)))
            });
            let taken = (blocks_of(fragments) - 1) * PACKING.block_bytes;
            assert!(taken <= reserved, "{longest}: {taken} of {reserved}");
            let bytes: usize = lens.iter().sum();
            assert!(reserved <= bytes * 3 / 2 + 500 * 200, "{longest}: {reserved} for {bytes}");
        }
    }
}
