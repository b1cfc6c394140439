//! The operations that wait for a die, for the orders that rank an operation when it arrives.

use super::deadline;
use super::weighted_fair::{StartTag, WeightedFair};
use softflash_base::AccessKind;
use std::collections::VecDeque;

/// The ranks of the operations that wait for a die. Operations of one kind are served in the order
/// of their arrival, in which their ranks rise.
#[derive(Debug, Clone)]
pub struct Waiting(Rule);

/// The shares of reads and of writes, as weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) reads: u32,
    pub(super) writes: u32,
}

impl Shares {
    fn of(self, kind: AccessKind) -> u32 {
        if kind == AccessKind::Read { self.reads } else { self.writes }
    }
}

#[derive(Debug, Clone)]
enum Rule {
    Deadline { read_ms: u32, due: ByKind<u64> },
    Fair { shares: Shares, fair: WeightedFair, tags: ByKind<StartTag> },
}

impl Waiting {
    /// Nothing waits; reads are due after so many milliseconds.
    pub(super) fn by_deadline(read_ms: u32) -> Waiting {
        Waiting(Rule::Deadline { read_ms, due: ByKind::default() })
    }

    /// Nothing waits; reads and writes share the time of the die.
    pub(super) fn by_share(shares: Shares) -> Waiting {
        let (fair, tags) = (WeightedFair::new(), ByKind::default());
        Waiting(Rule::Fair { shares, fair, tags })
    }

    /// An operation arrives that takes `cost_ns` of the die.
    pub fn arrive(&mut self, now_ns: u64, kind: AccessKind, cost_ns: u64) {
        match &mut self.0 {
            Rule::Deadline { read_ms, due } => {
                due.of(kind).push_back(deadline::due_at(now_ns, kind, *read_ms));
            }
            Rule::Fair { shares, fair, tags } => {
                let tag = fair.arrive(kind as u32, shares.of(kind), cost_ns);
                tags.of(kind).push_back(tag);
            }
        }
    }

    /// The oldest operation of a kind is served.
    pub fn serve(&mut self, kind: AccessKind) {
        match &mut self.0 {
            Rule::Deadline { due, .. } => _ = due.of(kind).pop_front(),
            Rule::Fair { fair, tags, .. } => {
                if let Some(tag) = tags.of(kind).pop_front() {
                    fair.serve(tag);
                }
            }
        }
    }

    /// Whether the oldest read goes before the oldest write. Both kinds must wait.
    pub fn read_is_first(&self) -> bool {
        match &self.0 {
            Rule::Deadline { due, .. } => due.read_is_first(),
            Rule::Fair { tags, .. } => tags.read_is_first(),
        }
    }
}

/// Ranks of reads and of writes, the oldest first.
#[derive(Debug, Clone)]
struct ByKind<T> {
    reads: VecDeque<T>,
    writes: VecDeque<T>,
}

impl<T> Default for ByKind<T> {
    fn default() -> ByKind<T> {
        ByKind { reads: VecDeque::new(), writes: VecDeque::new() }
    }
}

impl<T: Ord> ByKind<T> {
    fn of(&mut self, kind: AccessKind) -> &mut VecDeque<T> {
        if kind == AccessKind::Read { &mut self.reads } else { &mut self.writes }
    }

    /// Of equals the read is first.
    fn read_is_first(&self) -> bool {
        self.reads.front() <= self.writes.front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of service of operations that have all arrived.
    fn order(waiting: &mut Waiting, mut reads: u32, mut writes: u32) -> String {
        let mut order = String::new();
        while reads + writes > 0 {
            let read = writes == 0 || (reads > 0 && waiting.read_is_first());
            let kind = if read { AccessKind::Read } else { AccessKind::Write };
            waiting.serve(kind);
            *(if read { &mut reads } else { &mut writes }) -= 1;
            order.push(if read { 'r' } else { 'w' });
        }
        order
    }

    #[test]
    fn deadlines_order_reads_and_writes_by_their_times() {
        let mut waiting = Waiting::by_deadline(1);
        // Writes due at 10 and 13 ms, reads due at 5, 10 and 14 ms; of equals the read is first.
        for (at_ms, kind) in [
            (0, AccessKind::Write),
            (3, AccessKind::Write),
            (4, AccessKind::Read),
            (9, AccessKind::Read),
            (13, AccessKind::Read),
        ] {
            waiting.arrive(at_ms * 1_000_000, kind, 1);
        }
        assert_eq!(order(&mut waiting, 3, 2), "rrwwr");
    }

    #[test]
    fn shares_order_reads_and_writes_by_their_costs() {
        let shares = Shares { reads: 1, writes: 1 };
        let mut waiting = Waiting::by_share(shares);
        for _ in 0..8 {
            waiting.arrive(0, AccessKind::Read, 25);
        }
        for _ in 0..2 {
            waiting.arrive(0, AccessKind::Write, 100);
        }
        // Start tags of reads: 0, 25, 50 ...; of writes: 0, 100.
        assert_eq!(order(&mut waiting, 8, 2), "rwrrrrwrrr");
    }
}
