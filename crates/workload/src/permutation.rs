//! A random permutation of `0..n` without a table.

use softflash_base::random::Rng;

/// A bijection of `0..items`. It spreads popular items over the whole range without collisions,
/// which a hash would have.
#[derive(Debug, Clone)]
pub(crate) struct Permutation {
    items: u64,
    mask: u64,
    half: u32,
    multipliers: [u64; 2],
}

impl Permutation {
    /// A permutation drawn from `rng`; `items` is at least 1.
    pub(crate) fn new(items: u64, rng: &mut Rng) -> Permutation {
        let bits = (u64::BITS - (items.max(2) - 1).leading_zeros()).max(2);
        let multipliers = [rng.next_u64() | 1, rng.next_u64() | 1];
        Permutation {
            items,
            mask: u64::MAX >> (u64::BITS - bits),
            half: bits.div_ceil(2),
            multipliers,
        }
    }

    /// The number of items.
    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// The place of `item`, which is one of `0..items`.
    #[inline]
    pub(crate) fn place(&self, item: u64) -> u64 {
        let mut place = item;
        // Each step is a bijection of the next power of two, so repeating the step from outside of
        // the range ends inside (cycle walking), and no two items end at the same place.
        loop {
            for multiplier in self.multipliers {
                place = place.wrapping_mul(multiplier).wrapping_add(multiplier >> 32) & self.mask;
                place ^= place >> self.half;
            }
            if place < self.items {
                return place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_taken_once() {
        for items in [1, 2, 3, 4, 5, 7, 8, 100, 1000, 4096, 4097] {
            let permutation = Permutation::new(items, &mut Rng::seeded(items));
            let mut places: Vec<u64> = (0..items).map(|item| permutation.place(item)).collect();
            places.sort_unstable();
            assert!(places.iter().copied().eq(0..items), "{items}");
        }
    }

    #[test]
    fn the_first_items_are_spread_over_the_whole_range() {
        let items = 1_000_000;
        for seed in 0..20 {
            let permutation = Permutation::new(items, &mut Rng::seeded(seed));
            let mut tenths = [0_u32; 10];
            for item in 0..1000 {
                tenths[(permutation.place(item) * 10 / items) as usize] += 1;
            }
            // An uneven spread would miss hundreds; such a bijection is more even than random
            // places, or about as even.
            assert!(tenths.iter().all(|&count| (40..=200).contains(&count)), "{seed} {tenths:?}");
        }
    }
}
