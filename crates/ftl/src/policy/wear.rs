//! Which free superblock to use next: dynamic wear levelling.
//!
//! The least worn goes first. Superblocks that hold data are not moved by this layer, which does not
//! know its owners; [`lagging`] names the one that an owner should rewrite to level them too.

use std::cmp::Reverse;

/// How soon a free superblock can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Readiness {
    /// Erased.
    Prepared,
    /// Being erased.
    Preparing,
    /// To be erased.
    Reclaimable,
}

/// A free superblock to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its index in the unit.
    pub index: u32,
    /// Erases of its most worn block by the time it is written, the one still to come included.
    pub wear: u32,
    /// No header tells its erase count, so the unit's highest is taken; it may well be unused.
    pub wear_unknown: bool,
    /// How soon it can be written.
    pub readiness: Readiness,
}

/// The superblock to use: the least worn; among equals the readiest, then one whose wear is unknown (so
/// that flash never used takes its turn before the rest wears further), then the lowest index.
pub fn choose(candidates: impl Iterator<Item = Candidate>) -> Option<Candidate> {
    candidates.min_by_key(|candidate| {
        (candidate.wear, candidate.readiness, Reverse(candidate.wear_unknown), candidate.index)
    })
}

/// The least worn superblock with data, as `(index, wear)`, where it lags more than `spread` erases
/// behind `highest`: its data is cold, and rewriting it elsewhere would bring its blocks back into use.
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
    fn the_least_worn_is_chosen_and_readiness_only_breaks_ties() {
        let worn = candidate(0, 9, Readiness::Prepared);
        let fresh = candidate(1, 8, Readiness::Reclaimable);
        let ready = candidate(2, 8, Readiness::Prepared);
        assert_eq!(choose([worn, fresh].into_iter()), Some(fresh));
        assert_eq!(choose([worn, fresh, ready].into_iter()), Some(ready));
        assert_eq!(choose(std::iter::empty()), None);
    }

    #[test]
    fn flash_never_used_goes_before_equals() {
        let known = candidate(0, 5, Readiness::Reclaimable);
        let unknown = Candidate { wear_unknown: true, ..candidate(1, 5, Readiness::Reclaimable) };
        assert_eq!(choose([known, unknown].into_iter()), Some(unknown));
    }

    #[test]
    fn cold_data_is_named_only_beyond_the_spread() {
        let live = [(3, 10), (4, 2), (5, 7)];
        assert_eq!(lagging(live.into_iter(), 12, 9), Some(4));
        assert_eq!(lagging(live.into_iter(), 11, 9), None);
        assert_eq!(lagging(std::iter::empty(), 100, 1), None);
    }
}
