//! The free superblocks of a unit by readiness, each kind in the order of the wear policy: a choice
//! looks at three of them, however many the unit has.

use crate::policy::wear::{Candidate, Rank, Readiness, rank};
use std::collections::BTreeSet;

/// The free superblocks. Changes are applied at the next [`refresh`](FreeIndex::refresh).
pub(crate) struct FreeIndex {
    /// The ranks of the superblocks of each readiness.
    ranked: [BTreeSet<Rank>; 3],
    /// The entry of each superblock in `ranked`.
    entries: Vec<Option<Candidate>>,
    /// Superblocks that may have changed since the last refresh, each once.
    changed: Vec<u32>,
    is_changed: Vec<bool>,
}

impl FreeIndex {
    /// An index without free superblocks.
    pub fn new(superblocks: u32) -> FreeIndex {
        let superblocks = superblocks as usize;
        FreeIndex {
            ranked: Default::default(),
            entries: vec![None; superblocks],
            changed: Vec::new(),
            is_changed: vec![false; superblocks],
        }
    }

    /// A superblock may have changed.
    pub fn note_change(&mut self, index: u32) {
        let is_changed = &mut self.is_changed[index as usize];
        if !std::mem::replace(is_changed, true) {
            self.changed.push(index);
        }
    }

    /// Applies the changes. `candidate` describes a superblock if it is free.
    pub fn refresh(&mut self, candidate: impl Fn(u32) -> Option<Candidate>) {
        for index in self.changed.drain(..) {
            self.is_changed[index as usize] = false;
            let (entry, now) = (&mut self.entries[index as usize], candidate(index));
            if *entry == now {
                continue;
            }
            if let Some(before) = entry.take() {
                self.ranked[before.readiness as usize].remove(&rank(&before));
            }
            if let Some(now) = &now {
                self.ranked[now.readiness as usize].insert(rank(now));
            }
            *entry = now;
        }
    }

    /// Checks that no change was missed.
    ///
    /// # Panics
    /// If one was.
    pub fn check(&self, candidate: impl Fn(u32) -> Option<Candidate>) {
        for ((index, entry), is_changed) in (0..).zip(&self.entries).zip(&self.is_changed) {
            assert!(*is_changed || *entry == candidate(index), "superblock {index} has changed");
        }
    }

    /// The first superblock of a readiness, other than `except`.
    pub fn first(&self, readiness: Readiness, except: Option<u32>) -> Option<Candidate> {
        let mut indices = self.ranked[readiness as usize].iter().map(Rank::index);
        let index = indices.find(|index| Some(*index) != except)?;
        self.entries[index as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_each_readiness_follows_all_changes() {
        let pending = |index, wear| Candidate {
            index,
            wear,
            wear_unknown: false,
            readiness: Readiness::ErasePending,
        };
        let mut superblocks = [Some(pending(0, 7)), Some(pending(1, 5)), None, Some(pending(3, 9))];
        let mut index = FreeIndex::new(4);
        assert_eq!(index.first(Readiness::ErasePending, None), None);
        (0..4).for_each(|changed| index.note_change(changed));
        index.refresh(|at| superblocks[at as usize]);
        assert_eq!(index.first(Readiness::ErasePending, None), superblocks[1]);
        assert_eq!(index.first(Readiness::ErasePending, Some(1)), superblocks[0]);
        assert_eq!(index.first(Readiness::Erased, None), None);

        superblocks[1] = superblocks[1].map(|was| Candidate { wear: 8, ..was });
        superblocks[3] =
            superblocks[3].map(|was| Candidate { readiness: Readiness::Erased, ..was });
        superblocks[0] = None;
        for changed in [0, 1, 1, 3] {
            index.note_change(changed);
        }
        index.refresh(|at| superblocks[at as usize]);
        assert_eq!(index.first(Readiness::ErasePending, None), superblocks[1]);
        assert_eq!(index.first(Readiness::ErasePending, Some(1)), None);
        assert_eq!(index.first(Readiness::Erased, None), superblocks[3]);
    }
}
