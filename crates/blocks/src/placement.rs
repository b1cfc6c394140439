//! Placement: the choice of the unit of a new block, by a policy of the registry. A unit is a
//! candidate of the policy's view; its load is what waits for its dies.

use softflash_policy::PlacementPolicy;
use softflash_policy::placement::{self, Candidates};
use std::cell::Cell;

/// A unit that a block can be placed on, if it has room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The unit.
    pub(crate) unit: u16,
    /// Requests queued or under way, and blocks being written.
    pub(crate) load: u32,
    /// Superblocks that can be allocated.
    pub(crate) free: u32,
    /// Erases of its most worn block.
    pub(crate) erases: u32,
}

/// A policy, and its round-robin cursor: the unit that is next in turn.
pub(crate) struct Placement {
    policy: Cell<PlacementPolicy>,
    cursor: Cell<u16>,
}

impl Placement {
    /// Places by a policy.
    pub(crate) fn new(policy: PlacementPolicy) -> Placement {
        Placement { policy: Cell::new(policy), cursor: Cell::new(0) }
    }

    /// Places by another policy from now on.
    ///
    /// # Panics
    /// If it depends on pages' numbers, which blocks have not.
    pub(crate) fn set(&self, policy: PlacementPolicy) {
        assert!(!policy.is_static(), "`{policy}` places pages, not blocks");
        self.policy.set(policy);
        self.cursor.set(0);
    }

    /// Chooses a unit for a new block among candidates in the order of their units; `None` where
    /// none has room.
    pub(crate) fn choose(&self, candidates: &[Candidate]) -> Option<u16> {
        let most = candidates.iter().map(|candidate| candidate.free).max()?;
        let column = |of: fn(&Candidate) -> u32| candidates.iter().map(of).collect::<Vec<u32>>();
        let cursor = candidates.iter().position(|candidate| candidate.unit >= self.cursor.get());
        let view = Candidates {
            occupied: &candidates.iter().map(|one| most - one.free).collect::<Vec<u32>>(),
            most,
            erases: &column(|candidate| candidate.erases),
            die: &(0..candidates.len() as u32).collect::<Vec<u32>>(),
            waiting: &column(|candidate| candidate.load),
            cursor: cursor.unwrap_or(0) as u32,
        };
        let chosen = candidates.get(placement::choose(self.policy.get(), &view)? as usize)?;
        self.cursor.set(chosen.unit + 1);
        Some(chosen.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Units from 0 on with their loads and free superblocks.
    fn units(loads: &[(u32, u32)]) -> Vec<Candidate> {
        let unit = |(unit, &(load, free))| Candidate { unit: unit as u16, load, free, erases: 0 };
        loads.iter().enumerate().map(unit).collect()
    }

    #[test]
    fn idle_units_are_chosen_in_cyclic_order_and_busy_or_full_units_are_skipped() {
        let placement = Placement::new(PlacementPolicy::LEAST_LOADED);
        let idle = units(&[(0, 9), (0, 9), (0, 9)]);
        let chosen: Vec<_> = (0..4).filter_map(|_| placement.choose(&idle)).collect();
        assert_eq!(chosen, [0, 1, 2, 0]);
        assert_eq!(placement.choose(&idle[1..]), Some(1), "unit 0 is taken");
        assert_eq!(placement.choose(&units(&[(1, 9), (0, 9), (2, 9)])), Some(1));
        assert_eq!(placement.choose(&units(&[(0, 8), (0, 9), (0, 7)])), Some(1));
        assert_eq!(placement.choose(&units(&[(0, 0), (7, 1)])), Some(1));
        assert_eq!(placement.choose(&units(&[(0, 0), (7, 0)])), None);
        assert_eq!(placement.choose(&[]), None);
    }

    #[test]
    fn in_turn_load_does_not_matter() {
        let placement = Placement::new(PlacementPolicy::ROUND_ROBIN);
        let busy_first = units(&[(9, 1), (0, 9), (0, 0), (0, 9)]);
        let chosen: Vec<_> = (0..5).filter_map(|_| placement.choose(&busy_first)).collect();
        assert_eq!(chosen, [0, 1, 3, 0, 1]);
        assert_eq!(placement.choose(&units(&[(0, 0), (0, 0)])), None);
    }
}
