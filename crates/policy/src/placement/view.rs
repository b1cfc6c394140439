//! The input of a placement policy: columns over the candidates. A *candidate* is a write frontier
//! of a drive, in the order of the static stripe, a unit, or a domain.

use crate::registry::Numbers;

/// How a placement policy chooses.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The candidate; `None` where it depends on the page's number only.
    pub(super) choose: Option<fn(&Candidates<'_>) -> Option<u32>>,
    /// Classes that have write frontiers of their own.
    pub(super) classes: fn(Numbers) -> u32,
}

impl Rule {
    /// Chooses among candidates, whatever the class.
    pub(super) const fn among(choose: fn(&Candidates<'_>) -> Option<u32>) -> Rule {
        Rule { choose: Some(choose), classes: |_| 1 }
    }
}

/// The view of a policy on the candidates.
#[derive(Debug, Clone, Copy)]
pub struct Candidates<'a> {
    /// Pages that each candidate holds, or will hold when what waits for it is written.
    pub occupied: &'a [u32],
    /// The most pages that a candidate can hold and still collect.
    pub most: u32,
    /// Erases of each candidate.
    pub erases: &'a [u32],
    /// The die of each candidate.
    pub die: &'a [u32],
    /// Pages that wait for each die.
    pub waiting: &'a [u32],
    /// Round-robin cursor: the candidate that is next in turn.
    pub cursor: u32,
}

impl Candidates<'_> {
    /// The candidates with room for a page, from the cursor on.
    pub(super) fn with_room(&self) -> impl Iterator<Item = u32> {
        let candidates = self.occupied.len() as u32;
        let from_cursor = (self.cursor..candidates).chain(0..self.cursor);
        from_cursor.filter(|&it| self.occupied[it as usize] < self.most)
    }

    /// What a candidate holds.
    pub(super) fn occupied(&self, candidate: u32) -> u32 {
        self.occupied[candidate as usize]
    }

    /// Pages that wait for the die of a candidate.
    pub(super) fn waiting(&self, candidate: u32) -> u32 {
        self.waiting[self.die[candidate as usize] as usize]
    }

    /// Erases of a candidate.
    pub(super) fn erases(&self, candidate: u32) -> u32 {
        self.erases[candidate as usize]
    }
}
