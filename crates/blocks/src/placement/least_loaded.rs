//! Placement on the least loaded unit, which serves a block soonest.

use super::{Candidate, Placement};

/// The least loaded unit; among equally loaded units the one with the most free space, and among
/// those the next in cyclic order, so that blocks spread evenly over idle units.
#[derive(Debug, Default)]
pub(crate) struct LeastLoaded {
    last: u16,
}

impl Placement for LeastLoaded {
    fn choose(&mut self, candidates: &[Candidate]) -> Option<u16> {
        let distance = |unit: u16| unit.wrapping_sub(self.last).wrapping_sub(1);
        let best = candidates
            .iter()
            .filter(|candidate| candidate.free > 0)
            .min_by_key(|c| (c.load, std::cmp::Reverse(c.free), distance(c.unit)))?;
        self.last = best.unit;
        Some(best.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::units;

    #[test]
    fn idle_units_are_chosen_in_cyclic_order_and_busy_or_full_units_are_skipped() {
        let mut policy = LeastLoaded::default();
        let idle = units(&[(0, 9), (0, 9), (0, 9)]);
        let chosen: Vec<_> = (0..4).filter_map(|_| policy.choose(&idle)).collect();
        assert_eq!(chosen, [1, 2, 0, 1]);
        assert_eq!(policy.choose(&units(&[(1, 9), (0, 9), (2, 9)])), Some(1));
        assert_eq!(policy.choose(&units(&[(0, 0), (7, 1)])), Some(1));
        assert_eq!(policy.choose(&units(&[(0, 0), (7, 0)])), None);
    }
}
