//! The patches of a slice: levels of sorted runs. A tree is immutable; an edit makes a new tree
//! that shares unchanged levels.

use crate::format::log::PatchEntry;
use crate::kv::patch::Patch;
use softflash_base::planted::{self, Bug};
use softflash_blocks::BlockId;
use std::rc::Rc;

/// Patches in key order whose key ranges do not overlap (save for the versions and fragments of a
/// key that straddle two of them).
#[derive(Default)]
pub struct Run {
    /// Later runs of a level hold newer data.
    pub number: u64,
    /// Lost patches, which may hold any key; then the other patches in key order.
    pub patches: Vec<Rc<Patch>>,
}

impl Run {
    /// The number of lost patches.
    pub fn lost(&self) -> usize {
        self.patches.iter().take_while(|patch| patch.damage().is_some()).count()
    }

    /// The first patch that can hold `key`: a lost one, unless the key is inside another patch.
    pub fn patch_for(&self, key: &[u8]) -> Option<usize> {
        let missed = planted::bug(Bug::PatchBorderMissed);
        let before =
            |patch: &Rc<Patch>| patch.last_key() < key || missed && patch.last_key() == key;
        let lost = self.lost();
        let place = lost + self.patches.get(lost..)?.partition_point(before);
        let first = self.patches.get(place).map(|patch| patch.first_key());
        match first {
            Some(first) if first < key => Some(place),
            // Newer versions of the first key may be in the previous patch, which may be lost.
            Some(first) if first == key && lost == 0 => Some(place),
            _ => (lost > 0).then_some(0),
        }
    }

    /// The index of the first patch that can hold keys from `from` on.
    pub fn start_of(&self, from: &[u8]) -> usize {
        match self.lost() {
            0 => self.patches.partition_point(|patch| patch.last_key() < from),
            _ => 0,
        }
    }

    /// Bytes of its patches.
    pub fn bytes(&self) -> u64 {
        self.patches.iter().map(|patch| patch.bytes()).sum()
    }

    /// A second run with the same patches.
    pub fn share(&self) -> Run {
        Run { number: self.number, patches: self.patches.clone() }
    }
}

/// The runs of a level. Level 0 has one run for each memtable flush, newest first; every other
/// level has at most one.
#[derive(Default)]
pub struct Level {
    /// Newest first.
    pub runs: Vec<Rc<Run>>,
}

impl Level {
    /// Bytes of its patches.
    pub fn bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.bytes()).sum()
    }

    /// All patches of all runs.
    pub fn patches(&self) -> impl Iterator<Item = &Rc<Patch>> {
        self.runs.iter().flat_map(|run| &run.patches)
    }
}

/// All levels, newest data first.
#[derive(Default)]
pub struct Tree {
    /// Level 0 first.
    pub levels: Vec<Rc<Level>>,
}

impl Tree {
    /// Runs from the newest to the oldest, the order of a lookup.
    pub fn runs(&self) -> impl Iterator<Item = &Rc<Run>> {
        self.levels.iter().flat_map(|level| &level.runs)
    }

    /// All patches with their level and run.
    pub fn patches(&self) -> impl Iterator<Item = (usize, u64, &Rc<Patch>)> {
        self.levels.iter().enumerate().flat_map(|(number, level)| {
            level.runs.iter().flat_map(move |run| {
                run.patches.iter().map(move |patch| (number, run.number, patch))
            })
        })
    }

    /// Runs in level 0, each of which costs every lookup.
    pub fn level0_runs(&self) -> usize {
        self.levels.first().map_or(0, |level| level.runs.len())
    }

    /// The number of patches of level 0.
    pub fn level0_patches(&self) -> usize {
        self.levels.first().map_or(0, |level| level.patches().count())
    }

    /// The number of patches of the oldest run of level 0.
    pub fn oldest_of_level0(&self) -> usize {
        let oldest = self.levels.first().and_then(|level| level.runs.last());
        oldest.map_or(0, |run| run.patches.len())
    }

    /// The tree without `removed` and with `added`.
    pub fn edited(&self, removed: &[BlockId], added: &[(u8, u64, Rc<Patch>)]) -> Tree {
        let depth = added.iter().map(|(level, ..)| usize::from(*level) + 1).max().unwrap_or(0);
        let levels = (0..self.levels.len().max(depth))
            .map(|number| {
                let old = self.levels.get(number);
                let joins = added.iter().any(|(level, ..)| usize::from(*level) == number);
                match old {
                    Some(old) if !joins && !old.patches().any(|p| removed.contains(&p.id())) => {
                        Rc::clone(old)
                    }
                    _ => Rc::new(edited_level(old, number, removed, added)),
                }
            })
            .collect();
        let mut tree = Tree { levels };
        while tree.levels.last().is_some_and(|level| level.runs.is_empty()) {
            tree.levels.pop();
        }
        tree
    }

    /// The tree as the log records it.
    pub fn entries(&self) -> Vec<PatchEntry> {
        self.patches()
            .map(|(level, run, patch)| PatchEntry { block: patch.id().0, level: level as u8, run })
            .collect()
    }
}

fn edited_level(
    old: Option<&Rc<Level>>,
    number: usize,
    removed: &[BlockId],
    added: &[(u8, u64, Rc<Patch>)],
) -> Level {
    let mut patches: Vec<(u64, Rc<Patch>)> = old
        .into_iter()
        .flat_map(|level| &level.runs)
        .flat_map(|run| run.patches.iter().map(|patch| (run.number, Rc::clone(patch))))
        .filter(|(_, patch)| !removed.contains(&patch.id()))
        .collect();
    let joining = added.iter().filter(|(level, ..)| usize::from(*level) == number);
    patches.extend(joining.map(|(_, run, patch)| (*run, Rc::clone(patch))));
    // Newest run first; inside a run lost patches first, then by key, and by age where a key's
    // versions are in two patches.
    patches.sort_by(|(run_a, a), (run_b, b)| {
        run_b
            .cmp(run_a)
            .then_with(|| b.damage().is_some().cmp(&a.damage().is_some()))
            .then_with(|| a.first_key().cmp(b.first_key()))
            .then_with(|| a.last_key().cmp(b.last_key()))
            .then_with(|| a.id().cmp(&b.id()))
    });
    let mut runs: Vec<Run> = Vec::new();
    for (number, patch) in patches {
        match runs.last_mut() {
            Some(run) if run.number == number => run.patches.push(patch),
            _ => runs.push(Run { number, patches: vec![patch] }),
        }
    }
    if planted::bug(Bug::OlderRunFirst) {
        runs.reverse();
    }
    Level { runs: runs.into_iter().map(Rc::new).collect() }
}
