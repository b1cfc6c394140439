//! Workloads: which operations a measurement makes, and of which keys by default.

use super::distribution::{Distribution, Order};
use clap::ValueEnum;
use serde::Serialize;
use softflash_base::random::Rng;

/// Exponent of YCSB's Zipf distribution.
const YCSB_EXPONENT: f64 = 0.99;

/// Workload of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Write every key once, in random order
    #[default]
    Fill,
    /// Overwrite random keys
    Overwrite,
    /// Read random keys
    Get,
    /// Read while writing: random keys are read or overwritten, see --reads
    Mixed,
    /// Read all keys in order; an operation is a page of 100 keys. With --distribution each page
    /// begins at a random key
    Scan,
    /// Delete random keys, and write them again: half of the operations each
    Delete,
    /// YCSB A: 50 % reads, 50 % overwrites
    YcsbA,
    /// YCSB B: 95 % reads, 5 % overwrites
    YcsbB,
    /// YCSB C: reads only
    YcsbC,
    /// YCSB D: 95 % reads of the latest keys, 5 % insertions
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 keys, 5 % insertions
    YcsbE,
    /// YCSB F: 50 % reads, 50 % read-modify-writes
    YcsbF,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads a key.
    Read,
    /// Writes a key of the data set.
    Write,
    /// Writes a new key.
    Insert,
    /// Deletes a key.
    Delete,
    /// Reads a key and writes it, in one transaction.
    Modify,
    /// Reads neighbouring keys.
    Scan,
}

/// Two kinds of operations and the share of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    first: Kind,
    share: f64,
    second: Kind,
}

impl Mix {
    fn only(kind: Kind) -> Mix {
        Mix { first: kind, share: 1.0, second: kind }
    }

    fn of(share: f64, first: Kind, second: Kind) -> Mix {
        Mix { first, share, second }
    }

    /// The kind of the next operation.
    pub fn draw(&self, rng: &mut Rng) -> Kind {
        if rng.chance(self.share) { self.first } else { self.second }
    }
}

impl Workload {
    /// The operations; `reads` is the share of reads in [`Workload::Mixed`].
    pub fn mix(self, reads: f64) -> Mix {
        match self {
            Workload::Fill | Workload::Overwrite => Mix::only(Kind::Write),
            Workload::Get | Workload::YcsbC => Mix::only(Kind::Read),
            Workload::Mixed => Mix::of(reads, Kind::Read, Kind::Write),
            Workload::Scan => Mix::only(Kind::Scan),
            Workload::Delete => Mix::of(0.5, Kind::Delete, Kind::Write),
            Workload::YcsbA => Mix::of(0.5, Kind::Read, Kind::Write),
            Workload::YcsbB => Mix::of(0.95, Kind::Read, Kind::Write),
            Workload::YcsbD => Mix::of(0.95, Kind::Read, Kind::Insert),
            Workload::YcsbE => Mix::of(0.95, Kind::Scan, Kind::Insert),
            Workload::YcsbF => Mix::of(0.5, Kind::Read, Kind::Modify),
        }
    }

    /// The keys of the operations, by the choice of the user or by default.
    pub fn order(self, chosen: Option<Distribution>) -> Order {
        match (self, chosen) {
            (Workload::Fill, _) => Order::Once,
            (Workload::YcsbD, Some(Distribution::Zipf(exponent))) => Order::Latest(exponent),
            (Workload::YcsbD, None) => Order::Latest(YCSB_EXPONENT),
            (_, Some(Distribution::Uniform)) => Order::Uniform,
            (_, Some(Distribution::Zipf(exponent))) => Order::Zipf(exponent),
            (Workload::Scan, None) => Order::Ascending,
            (
                Workload::YcsbA
                | Workload::YcsbB
                | Workload::YcsbC
                | Workload::YcsbE
                | Workload::YcsbF,
                None,
            ) => Order::Zipf(YCSB_EXPONENT),
            (_, None) => Order::Uniform,
        }
    }

    /// Keys of a scan: always as many, or as YCSB draws them.
    pub fn scan_keys(self, rng: &mut Rng) -> usize {
        const MOST: u64 = 100;
        match self {
            Workload::YcsbE => rng.below(MOST) as usize + 1,
            _ => MOST as usize,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of each kind among many operations.
    fn share(workload: Workload, kind: Kind) -> f64 {
        let (mix, mut rng) = (workload.mix(0.75), Rng::seeded(1));
        let drawn = (0..100_000).filter(|_| mix.draw(&mut rng) == kind).count();
        drawn as f64 / 100_000.0
    }

    #[test]
    fn the_operations_are_mixed_as_ycsb_says() {
        let expected = [
            (Workload::YcsbA, Kind::Read, 0.5),
            (Workload::YcsbA, Kind::Write, 0.5),
            (Workload::YcsbB, Kind::Read, 0.95),
            (Workload::YcsbC, Kind::Read, 1.0),
            (Workload::YcsbD, Kind::Insert, 0.05),
            (Workload::YcsbE, Kind::Scan, 0.95),
            (Workload::YcsbE, Kind::Insert, 0.05),
            (Workload::YcsbF, Kind::Modify, 0.5),
            (Workload::Delete, Kind::Delete, 0.5),
            (Workload::Mixed, Kind::Read, 0.75),
            (Workload::Mixed, Kind::Write, 0.25),
            (Workload::Overwrite, Kind::Write, 1.0),
        ];
        for (workload, kind, wanted) in expected {
            let found = share(workload, kind);
            assert!((found - wanted).abs() < 0.01, "{workload:?} {kind:?}: {found}");
        }
    }

    #[test]
    fn ycsb_is_skewed_by_default_and_a_choice_counts() {
        assert_eq!(Workload::YcsbA.order(None), Order::Zipf(0.99));
        assert_eq!(Workload::YcsbA.order(Some(Distribution::Uniform)), Order::Uniform);
        assert_eq!(Workload::YcsbD.order(None), Order::Latest(0.99));
        assert_eq!(Workload::YcsbD.order(Some(Distribution::Zipf(0.5))), Order::Latest(0.5));
        assert_eq!(Workload::Overwrite.order(None), Order::Uniform);
        assert_eq!(Workload::Scan.order(None), Order::Ascending);
        assert_eq!(Workload::Fill.order(Some(Distribution::Zipf(0.5))), Order::Once);
    }

    #[test]
    fn scans_of_ycsb_have_1_to_100_keys() {
        let mut rng = Rng::seeded(2);
        let mut sizes: Vec<usize> =
            (0..10_000).map(|_| Workload::YcsbE.scan_keys(&mut rng)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        assert_eq!(sizes, (1..=100).collect::<Vec<_>>());
        assert_eq!(Workload::Scan.scan_keys(&mut rng), 100);
    }
}
