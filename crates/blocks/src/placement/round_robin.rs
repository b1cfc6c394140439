//! Round-robin placement: one unit after the other, regardless of load.

use super::{Candidate, Placement};

/// The unit after the one that took the last block; units without space are skipped. With the log
/// on a device of its own, the `n`th patch goes to unit `n % units`, as the SDF paper places blocks
/// by their ids. Where log blocks and patches alternate on the same flash, and the number of units
/// is even, patches use every second unit only: not suitable for a server.
#[derive(Debug, Default)]
pub(crate) struct RoundRobin {
    last: Option<u16>,
}

impl Placement for RoundRobin {
    fn choose(&mut self, candidates: &[Candidate]) -> Option<u16> {
        let is_next = |candidate: &&Candidate| self.last.is_none_or(|last| candidate.unit > last);
        let with_space = || candidates.iter().filter(|candidate| candidate.free > 0);
        let next = with_space().find(is_next).or_else(|| with_space().next())?;
        self.last = Some(next.unit);
        Some(next.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::tests::units;

    #[test]
    fn units_are_chosen_in_cyclic_order_regardless_of_load_and_full_units_are_skipped() {
        let mut policy = RoundRobin::default();
        let busy_first = units(&[(9, 1), (0, 9), (0, 0), (0, 9)]);
        let chosen: Vec<_> = (0..5).filter_map(|_| policy.choose(&busy_first)).collect();
        assert_eq!(chosen, [0, 1, 3, 0, 1]);
        assert_eq!(policy.choose(&units(&[(0, 0), (0, 0)])), None);
    }
}
