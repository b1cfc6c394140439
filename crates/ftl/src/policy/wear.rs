//! The order of the free superblocks of a unit: the least worn first, of those that can be written
//! equally soon. The wear policy chooses among the first of each readiness.

use std::cmp::Reverse;

/// How soon a free superblock can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// Erased, with an erase header.
    Erased,
    /// Being erased.
    Erasing,
    /// To be erased.
    ErasePending,
}

/// A free superblock to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Index in the unit.
    pub index: u32,
    /// Erases of its most worn block when it is written, including an erase that is still due.
    pub wear: u32,
    /// No header records its erase count, so the highest of the unit is assumed.
    pub wear_unknown: bool,
    /// How soon it can be written.
    pub readiness: Readiness,
}

/// The place of a candidate in the order of this policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u32, Readiness, Reverse<bool>, u32);

impl Rank {
    /// The index of the candidate.
    pub fn index(&self) -> u32 {
        self.3
    }
}

/// The order of use: the least worn first; among equals the one that can be written soonest, then
/// one of unknown wear (so that flash that was never used is used before the rest wears further),
/// then the lowest index.
pub fn rank(candidate: &Candidate) -> Rank {
    let Candidate { index, wear, wear_unknown, readiness } = *candidate;
    Rank(wear, readiness, Reverse(wear_unknown), index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_worn_is_first_and_of_equals_one_of_unknown_wear() {
        let of = |index, wear, wear_unknown| {
            rank(&Candidate { index, wear, wear_unknown, readiness: Readiness::Erased })
        };
        let mut order = [of(0, 5, false), of(1, 5, true), of(2, 4, false), of(3, 5, true)];
        order.sort_unstable();
        assert_eq!(order.map(|rank| rank.index()), [2, 1, 3, 0]);
    }
}
