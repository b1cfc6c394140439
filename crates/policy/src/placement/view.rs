//! The input of a placement policy: columns over the lanes of a drive. A *lane* is a write frontier
//! of the static stripe, in the order of the stripe.

use crate::registry::Numbers;

/// How a placement policy chooses.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The lane; `None` where it depends on the page's number only.
    pub(super) choose: Option<fn(&Lanes<'_>) -> Option<u32>>,
    /// Classes that have write frontiers of their own.
    pub(super) classes: fn(Numbers) -> u32,
}

impl Rule {
    /// Chooses among lanes, whatever the class.
    pub(super) const fn among(choose: fn(&Lanes<'_>) -> Option<u32>) -> Rule {
        Rule { choose: Some(choose), classes: |_| 1 }
    }
}

/// The view of a policy on the lanes.
#[derive(Debug, Clone, Copy)]
pub struct Lanes<'a> {
    /// Pages that each lane holds, or will hold when what waits for it is written.
    pub occupied: &'a [u32],
    /// The most pages that a lane can hold and still collect.
    pub most: u32,
    /// Erases of each lane.
    pub erases: &'a [u32],
    /// The die of each lane.
    pub die: &'a [u32],
    /// Pages that wait for each die.
    pub waiting: &'a [u32],
    /// Round-robin cursor: the lane that is next in turn.
    pub cursor: u32,
}

impl Lanes<'_> {
    /// The lanes with room for a page, from the cursor on.
    pub(super) fn with_room(&self) -> impl Iterator<Item = u32> {
        let lanes = self.occupied.len() as u32;
        let from_cursor = (self.cursor..lanes).chain(0..self.cursor);
        from_cursor.filter(|&lane| self.occupied[lane as usize] < self.most)
    }

    /// What a lane holds.
    pub(super) fn occupied(&self, lane: u32) -> u32 {
        self.occupied[lane as usize]
    }

    /// Pages that wait for the die of a lane.
    pub(super) fn waiting(&self, lane: u32) -> u32 {
        self.waiting[self.die[lane as usize] as usize]
    }

    /// Erases of a lane.
    pub(super) fn erases(&self, lane: u32) -> u32 {
        self.erases[lane as usize]
    }
}
