//! Which free superblock to use next: dynamic wear levelling.
//!
//! The least worn superblock is used first. This layer does not move superblocks that hold data,
//! because it does not know their owners; [`lagging`] returns the one that its owner should
//! rewrite, so that cold data takes part in wear levelling.

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

/// The superblock to use: the first by [`rank`].
pub fn choose(candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    candidates.min_by_key(rank)
}

/// The least worn superblock with data, if its erase count is more than `spread` below `highest`:
/// its data is cold, and rewriting it frees its blocks for use. `live` yields `(index, wear)`.
pub fn lagging(live: impl Iterator<Item = (u32, u32)>, highest: u32, spread: u32) -> Option<u32> {
    let (index, wear) = live.min_by_key(|(index, wear)| (*wear, *index))?;
    (highest.saturating_sub(wear) > spread).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(index: u32, wear: u32, readiness: Readiness) -> Candidate {
        Candidate { index, wear, wear_unknown: false, readiness }
    }

    #[test]
    fn the_least_worn_is_chosen_and_readiness_breaks_ties() {
        let worn = candidate(0, 9, Readiness::Erased);
        let fresh = candidate(1, 8, Readiness::ErasePending);
        let ready = candidate(2, 8, Readiness::Erased);
        assert_eq!(choose([worn, fresh].into_iter()), Some(fresh));
        assert_eq!(choose([worn, fresh, ready].into_iter()), Some(ready));
        assert_eq!(choose(std::iter::empty()), None);
    }

    #[test]
    fn flash_of_unknown_wear_is_chosen_before_equally_worn_flash() {
        let known = candidate(0, 5, Readiness::ErasePending);
        let unknown = Candidate { wear_unknown: true, ..candidate(1, 5, Readiness::ErasePending) };
        assert_eq!(choose([known, unknown].into_iter()), Some(unknown));
    }

    #[test]
    fn a_superblock_lags_only_beyond_the_spread() {
        let live = [(3, 10), (4, 2), (5, 7)];
        assert_eq!(lagging(live.into_iter(), 12, 9), Some(4));
        assert_eq!(lagging(live.into_iter(), 11, 9), None);
        assert_eq!(lagging(std::iter::empty(), 100, 1), None);
    }
}
