//! Seeded random numbers: the only source of randomness below the server, so that a seed reproduces
//! a run exactly.
//!
//! The integer algorithms are implemented here, so that a recorded seed gives the same stream after
//! an upgrade of the libraries.

use crate::checksum::{checksum64, hash64};
use rand::{Rng as _, SeedableRng, TryRng};
use rand_distr::Distribution;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::convert::Infallible;
use thiserror::Error;

/// A deterministic generator (xoshiro256++). Not for secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    seed: u64,
    state: Xoshiro256PlusPlus,
}

impl Rng {
    /// A generator with this seed; equal seeds give equal streams.
    pub fn seeded(seed: u64) -> Rng {
        Rng { seed, state: Xoshiro256PlusPlus::seed_from_u64(seed) }
    }

    /// The seed, for reports that say how to repeat a run.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// An independent generator for one part of a system, named by `label`. It depends on the seed
    /// and the label only, so that draws of one part do not shift those of another. The same label
    /// gives the same stream again.
    pub fn fork(&self, label: impl AsRef<[u8]>) -> Rng {
        Rng::seeded(checksum64(self.seed, label.as_ref()))
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state.next_u64()
    }

    /// A number in `0..n`, uniformly distributed.
    ///
    /// # Panics
    /// If `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "the upper bound must be above 0");
        // Lemire's method: the high half of a product, with the few biased draws rejected.
        let mut product = u128::from(self.next_u64()) * u128::from(n);
        if (product as u64) < n {
            let biased = n.wrapping_neg() % n;
            while (product as u64) < biased {
                product = u128::from(self.next_u64()) * u128::from(n);
            }
        }
        (product >> 64) as u64
    }

    /// A number in `0.0..1.0` with 53 random bits.
    #[inline]
    pub fn unit_f64(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1_u64 << 53) as f64;
        (self.next_u64() >> 11) as f64 * STEP
    }

    /// True with probability `p`. If `p` is 0 or 1, draws nothing, so that a rate of zero does not
    /// change the stream.
    #[inline]
    pub fn chance(&mut self, p: f64) -> bool {
        if p <= 0.0 {
            false
        } else if p >= 1.0 {
            true
        } else {
            self.unit_f64() < p
        }
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.state.fill_bytes(bytes);
    }

    /// Shuffles `items` uniformly.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

/// Makes the generator usable by the distributions of `rand_distr`.
impl TryRng for Rng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.state.next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.state.next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.state.fill_bytes(bytes);
        Ok(())
    }
}

/// Invalid parameters of a [`Zipf`].
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum ZipfError {
    /// No items.
    #[error("a Zipf distribution needs at least one item")]
    NoItems,
    /// The exponent is not a finite number of at least 0.
    #[error(
        "Zipf exponent {0} is not a finite number of at least 0 (0 is uniform, 0.99 is YCSB's)"
    )]
    Exponent(f64),
}

/// Zipf distribution of ranks: rank `k` (from 0) has a probability proportional to `1 / (k +
/// 1)^exponent`.
#[derive(Debug, Clone)]
pub struct Zipf {
    items: u64,
    ranks: rand_distr::Zipf<f64>,
}

impl Zipf {
    /// A distribution over `items` ranks (at least 1); `exponent` 0 is uniform.
    pub fn new(items: u64, exponent: f64) -> Result<Zipf, ZipfError> {
        if items == 0 {
            return Err(ZipfError::NoItems);
        }
        if !exponent.is_finite() || exponent < 0.0 {
            return Err(ZipfError::Exponent(exponent));
        }
        match rand_distr::Zipf::new(items as f64, exponent) {
            Ok(ranks) => Ok(Zipf { items, ranks }),
            Err(_) => Err(ZipfError::Exponent(exponent)),
        }
    }

    /// A rank in `0..items`; 0 is the most popular.
    pub fn rank(&self, rng: &mut Rng) -> u64 {
        let rank = self.ranks.sample(rng) as u64;
        rank.clamp(1, self.items) - 1
    }

    /// As [`rank`](Zipf::rank), with popular items spread over the whole range, as YCSB's scrambled
    /// Zipf does: neighbours in the range are not neighbours in popularity.
    pub fn scattered(&self, rng: &mut Rng) -> u64 {
        hash64(&self.rank(rng).to_le_bytes()) % self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_streams_and_the_stream_is_fixed() {
        let (mut a, mut b) = (Rng::seeded(7), Rng::seeded(7));
        let drawn: Vec<u64> = (0..100).map(|_| a.next_u64()).collect();
        assert!(drawn.iter().all(|&value| value == b.next_u64()));
        // Xoshiro256++ after SplitMix64 of 0: the published first value.
        assert_eq!(Rng::seeded(0).next_u64(), 0x5317_5d61_490b_23df);
    }

    #[test]
    fn forks_do_not_depend_on_what_was_drawn() {
        let mut parent = Rng::seeded(1);
        let before = parent.fork("array").next_u64();
        parent.next_u64();
        assert_eq!(parent.fork("array").next_u64(), before);
        assert_ne!(parent.fork("workload").next_u64(), before);
        assert_ne!(parent.fork(7_u32.to_le_bytes()), parent.fork(8_u32.to_le_bytes()));
    }

    #[test]
    fn below_is_in_range_and_even() {
        let mut rng = Rng::seeded(2);
        let mut seen = [0_u32; 7];
        for _ in 0..70_000 {
            seen[rng.below(7) as usize] += 1;
        }
        // Four standard deviations of a binomial with n = 70 000, p = 1/7.
        assert!(seen.iter().all(|&count| count.abs_diff(10_000) < 371), "{seen:?}");
        assert_eq!(rng.below(1), 0);
        assert!(rng.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn certain_and_impossible_chances_draw_nothing() {
        let mut rng = Rng::seeded(3);
        let untouched = rng.clone();
        assert!(!rng.chance(0.0) && rng.chance(1.0));
        assert_eq!(rng, untouched);
        let hits = (0..100_000).filter(|_| rng.chance(0.25)).count();
        assert!(hits.abs_diff(25_000) < 548, "{hits}");
    }

    #[test]
    fn shuffling_keeps_every_item() {
        let mut items: Vec<u32> = (0..50).collect();
        Rng::seeded(4).shuffle(&mut items);
        assert_ne!(items, (0..50).collect::<Vec<u32>>());
        items.sort_unstable();
        assert_eq!(items, (0..50).collect::<Vec<u32>>());
    }

    #[test]
    fn zipf_ranks_follow_the_power_law() {
        let zipf = Zipf::new(1000, 1.0).unwrap();
        let mut rng = Rng::seeded(5);
        let mut seen = vec![0_u32; 1000];
        for _ in 0..200_000 {
            seen[zipf.rank(&mut rng) as usize] += 1;
        }
        // H(1000) = 7.4855, so rank 0 has 1/7.4855 of the draws.
        assert!(seen[0].abs_diff(26_718) < 620, "{}", seen[0]);
        let ratio = f64::from(seen[0]) / f64::from(seen[9]);
        assert!((ratio - 10.0).abs() < 1.0, "{ratio}");
        assert!((0..1000).all(|_| zipf.scattered(&mut rng) < 1000));
    }

    #[test]
    fn a_zipf_without_sense_is_refused() {
        assert_eq!(Zipf::new(0, 1.0).unwrap_err(), ZipfError::NoItems);
        assert!(matches!(Zipf::new(10, -1.0), Err(ZipfError::Exponent(_))));
        assert!(matches!(Zipf::new(10, f64::NAN), Err(ZipfError::Exponent(_))));
    }
}
