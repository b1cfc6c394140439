//! The requests of the measured parts: how many at a time, and where.

use softflash_base::random::Rng;
use std::str::FromStr;

/// The load of a benchmark.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Concurrent requests.
    pub batch: usize,
    /// The skew of their places; uniform without one.
    pub hot: Option<Hot>,
}

impl Load {
    /// A mapping unit of a volume of so many.
    pub fn place(&self, units: u64, rng: &mut Rng) -> u64 {
        match self.hot {
            Some(hot) => hot.place(units, rng),
            None => rng.below(units),
        }
    }
}

/// A skew: so many percent of the requests go to so many percent of the space, its beginning. In
/// text: `90/10`.
#[derive(Debug, Clone, Copy)]
pub struct Hot {
    requests: u8,
    space: u8,
}

impl Hot {
    fn place(self, units: u64, rng: &mut Rng) -> u64 {
        let hot = (units * u64::from(self.space) / 100).clamp(1, units.max(2) - 1);
        match rng.below(100) < self.requests.into() {
            true => rng.below(hot),
            false => hot + rng.below((units - hot).max(1)),
        }
    }
}

impl FromStr for Hot {
    type Err = String;

    fn from_str(text: &str) -> Result<Hot, String> {
        let percent = |text: &str| text.parse().ok().filter(|percent| (1..=99).contains(percent));
        let parts = text.split_once('/');
        let parts = parts.and_then(|(requests, space)| Some((percent(requests)?, percent(space)?)));
        let (requests, space) = parts.ok_or_else(|| {
            "write REQUESTS/SPACE, two whole percentages from 1 to 99, as 90/10".to_owned()
        })?;
        Ok(Hot { requests, space })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skew_sends_its_share_of_the_requests_to_its_share_of_the_space() {
        let load = Load { batch: 1, hot: Some("90/10".parse().unwrap()) };
        let mut rng = Rng::seeded(1);
        let places: Vec<u64> = (0..10_000).map(|_| load.place(1000, &mut rng)).collect();
        let hot = places.iter().filter(|place| **place < 100).count();
        assert!((8_850..9_150).contains(&hot), "{hot} of 10000");
        assert!(places.iter().all(|place| *place < 1000));
        for wrong in ["90", "0/10", "90/100", "90/x", "9.5/1"] {
            assert!(wrong.parse::<Hot>().is_err(), "{wrong}");
        }
    }
}
