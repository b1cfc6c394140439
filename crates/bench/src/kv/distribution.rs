//! Which of a thread's keys an operation takes.

use serde::{Serialize, Serializer};
use softflash_base::random::{Rng, Zipf};
use std::fmt::{self, Display};
use std::str::FromStr;

/// A distribution chosen on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Every key is equally likely.
    Uniform,
    /// The k-th most popular key has a probability proportional to 1/k to this power.
    Zipf(f64),
}

impl FromStr for Distribution {
    type Err = String;

    fn from_str(text: &str) -> Result<Distribution, String> {
        let exponent = match text.split_once(':') {
            None if text == "uniform" => return Ok(Distribution::Uniform),
            Some(("zipf", exponent)) => exponent.parse::<f64>().ok(),
            _ => None,
        };
        match exponent {
            Some(exponent) if exponent > 0.0 && exponent.is_finite() => {
                Ok(Distribution::Zipf(exponent))
            }
            _ => Err(format!(
                "`{text}` is not a distribution; write `uniform`, or `zipf:` with an exponent \
                 above 0, such as `zipf:0.99`"
            )),
        }
    }
}

/// The order in which a workload takes keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Every key once, in random order.
    Once,
    /// In the order of the keys.
    Ascending,
    /// Every key is equally likely.
    Uniform,
    /// Some keys are more popular; they are spread over the key space and over the time of their
    /// first write.
    Zipf(f64),
    /// The later a key was inserted, the more popular it is.
    Latest(f64),
}

impl Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Order::Once => f.write_str("once"),
            Order::Ascending => f.write_str("ascending"),
            Order::Uniform => f.write_str("uniform"),
            Order::Zipf(exponent) => write!(f, "zipf:{exponent}"),
            Order::Latest(exponent) => write!(f, "latest:{exponent}"),
        }
    }
}

impl Serialize for Order {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Draws places of keys in a list, which may grow while it draws.
#[derive(Debug)]
pub struct Picker {
    order: Order,
    /// Number of keys at the start.
    keys: u64,
    /// Ranks by popularity, and the number of keys that they are of.
    ranks: Option<(u64, Zipf)>,
    step: u64,
}

impl Picker {
    /// For a list of this many keys.
    pub fn new(order: Order, keys: u64) -> Picker {
        Picker { order, keys, ranks: None, step: coprime_step(keys) }
    }

    /// The place of the next key in a list that has `now` keys by now, at least as many as at the
    /// start and at least one.
    pub fn pick(&mut self, now: u64, rng: &mut Rng) -> u64 {
        match self.order {
            Order::Once | Order::Ascending | Order::Uniform => rng.below(now),
            Order::Zipf(exponent) => {
                let rank = self.rank(self.keys, exponent, rng);
                // The list has the order of the first writes. A bijection spreads the popular keys
                // over it.
                (u128::from(rank) * u128::from(self.step) % u128::from(self.keys.max(1))) as u64
            }
            Order::Latest(exponent) => now - 1 - self.rank(now, exponent, rng),
        }
    }

    fn rank(&mut self, keys: u64, exponent: f64, rng: &mut Rng) -> u64 {
        if self.ranks.as_ref().is_none_or(|(of, _)| *of != keys) {
            self.ranks = Zipf::new(keys, exponent).ok().map(|zipf| (keys, zipf));
        }
        self.ranks.as_ref().map_or(0, |(_, zipf)| zipf.rank(rng))
    }
}

/// A number about 0.618 times `keys` that has no divisor in common with it, so that its multiples
/// modulo `keys` are all of `0..keys`, evenly spread from the first on.
fn coprime_step(keys: u64) -> u64 {
    let golden = (keys as f64 * 0.618_033_988_749_895) as u64;
    (golden.max(1)..).find(|step| divisor(*step, keys) == 1).unwrap_or(1)
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn counts(order: Order, keys: u64, draws: u64) -> BTreeMap<u64, u64> {
        let (mut picker, mut rng) = (Picker::new(order, keys), Rng::seeded(1));
        let mut counts = BTreeMap::new();
        (0..draws).for_each(|_| *counts.entry(picker.pick(keys, &mut rng)).or_default() += 1);
        counts
    }

    #[test]
    fn distributions_are_read_and_nonsense_is_refused_with_the_remedy() {
        assert_eq!("uniform".parse(), Ok(Distribution::Uniform));
        assert_eq!("zipf:0.99".parse(), Ok(Distribution::Zipf(0.99)));
        assert_eq!("zipf:1.2".parse(), Ok(Distribution::Zipf(1.2)));
        for wrong in ["zipf", "zipf:", "zipf:x", "zipf:0", "zipf:-1", "zipf:inf", "zipf:NaN", ""] {
            let error = wrong.parse::<Distribution>().unwrap_err();
            assert!(
                error.contains(&format!("`{wrong}`")) && error.contains("zipf:0.99"),
                "{error}"
            );
        }
    }

    #[test]
    fn zipf_draws_the_most_popular_key_by_its_law_and_reaches_every_key() {
        for keys in [1, 2, 7, 1000] {
            let counts = counts(Order::Zipf(0.99), keys, 200_000);
            assert_eq!(counts.len() as u64, keys);
            assert!(counts.keys().all(|place| *place < keys));
            let law: f64 = (1..=keys).map(|rank| (rank as f64).powf(-0.99)).sum();
            let first = *counts.values().max().unwrap() as f64 / 200_000.0;
            assert!((first * law - 1.0).abs() < 0.05, "{keys}: {first} instead of {}", 1.0 / law);
        }
    }

    #[test]
    fn popular_keys_are_spread_over_the_list() {
        let counts = counts(Order::Zipf(0.99), 10_000, 200_000);
        let mut popular: Vec<(u64, u64)> =
            counts.into_iter().map(|(p, count)| (count, p)).collect();
        popular.sort_unstable_by(|a, b| b.cmp(a));
        let mut tenths = [0; 10];
        popular.iter().take(200).for_each(|(_, place)| tenths[(place / 1000) as usize] += 1);
        assert!(tenths.iter().all(|count| (10..=30).contains(count)), "{tenths:?}");
    }

    #[test]
    fn the_latest_keys_are_the_most_popular_also_after_insertions() {
        let (mut picker, mut rng) = (Picker::new(Order::Latest(0.99), 1000), Rng::seeded(3));
        for now in [1000, 1001, 5000] {
            let last = (0..10_000).filter(|_| picker.pick(now, &mut rng) == now - 1).count();
            assert!(last > 900, "{now}: {last} of 10000");
        }
    }

    #[test]
    fn uniform_draws_are_even_over_all_keys_of_now() {
        let counts = counts(Order::Uniform, 10, 100_000);
        assert!(counts.values().all(|count| count.abs_diff(10_000) < 500), "{counts:?}");
    }
}
