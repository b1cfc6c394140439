//! Interrupt coalescing: gathers completions at the host until an interrupt announces them.

use super::HostPathConfig;
use softflash_base::Time;
use softflash_device::Completion;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// A completion on its way to the host. At equal times, completions arrive in the order of sending.
struct Arriving {
    at: Time,
    serial: u64,
    completion: Completion,
}

impl Arriving {
    fn key(&self) -> (Time, u64) {
        (self.at, self.serial)
    }
}

impl PartialEq for Arriving {
    fn eq(&self, other: &Arriving) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Arriving {}

impl PartialOrd for Arriving {
    fn partial_cmp(&self, other: &Arriving) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arriving {
    fn cmp(&self, other: &Arriving) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The completions of one queue pair between device and caller.
pub(super) struct Gathering {
    complete_ns: u64,
    per_interrupt: usize,
    wait_ns: u64,
    serial: u64,
    arriving: BinaryHeap<Reverse<Arriving>>,
    /// Completions at the host that are not announced yet.
    gathered: Vec<Completion>,
    /// The latest time of the interrupt that announces the gathered completions.
    interrupt_at: Option<Time>,
    /// Announced completions; the caller receives each from its time on.
    announced: VecDeque<Completion>,
}

impl Gathering {
    pub(super) fn new(config: &HostPathConfig) -> Gathering {
        Gathering {
            complete_ns: config.complete_ns,
            per_interrupt: config.completions_per_interrupt.max(1) as usize,
            wait_ns: config.interrupt_wait_ns,
            serial: 0,
            arriving: BinaryHeap::new(),
            gathered: Vec::new(),
            interrupt_at: None,
            announced: VecDeque::new(),
        }
    }

    /// Sends a completion, which arrives at the host at `at`.
    pub(super) fn send(&mut self, at: Time, completion: Completion) {
        self.serial += 1;
        self.arriving.push(Reverse(Arriving { at, serial: self.serial, completion }));
    }

    /// Delivers the completions that are due by `now`; returns the number of interrupts.
    pub(super) fn deliver(&mut self, now: Time, completions: &mut Vec<Completion>) -> u64 {
        let mut interrupts = 0;
        while let Some(at) = self.next_step().filter(|at| *at <= now) {
            if self.interrupt_at == Some(at) {
                self.announce(at);
                interrupts += 1;
                continue;
            }
            let Some(Reverse(arrived)) = self.arriving.pop() else { break };
            self.gathered.push(arrived.completion);
            let latest = self.interrupt_at.unwrap_or(at + self.wait_ns);
            let enough = self.gathered.len() >= self.per_interrupt;
            self.interrupt_at = Some(if enough { at } else { latest });
        }
        while self.announced.front().is_some_and(|first| first.finished_at <= now) {
            completions.extend(self.announced.pop_front());
        }
        interrupts
    }

    fn announce(&mut self, at: Time) {
        self.interrupt_at = None;
        let seen_at = at + self.complete_ns;
        let seen = |completion| Completion { finished_at: seen_at, ..completion };
        self.announced.extend(self.gathered.drain(..).map(seen));
    }

    fn next_step(&self) -> Option<Time> {
        let arrival = self.arriving.peek().map(|Reverse(first)| first.at);
        earlier(self.interrupt_at, arrival)
    }

    /// The time of the next event.
    pub(super) fn next_at(&self) -> Option<Time> {
        let seen_at = self.announced.front().map(|first| first.finished_at);
        earlier(seen_at, self.next_step())
    }
}

/// The earlier of two optional times.
pub(super) fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_device::Tag;
    use softflash_device::backend::Accepted;

    fn gathering(per_interrupt: u32) -> Gathering {
        Gathering::new(&HostPathConfig {
            complete_ns: 10,
            completions_per_interrupt: per_interrupt,
            interrupt_wait_ns: 100,
            ..HostPathConfig::default()
        })
    }

    fn send(gathering: &mut Gathering, tag: u64, at: u64) {
        let accepted = Accepted::new(Tag(tag), Time(at), 0);
        gathering.send(Time(at), accepted.ended(Time(at), None, Ok(())));
    }

    /// Plays to the end; returns each completion with the time at which the caller receives it.
    fn play(mut gathering: Gathering) -> (Vec<(u64, u64)>, u64) {
        let (mut seen, mut interrupts) = (Vec::new(), 0);
        while let Some(at) = gathering.next_at() {
            let mut completions = Vec::new();
            interrupts += gathering.deliver(at, &mut completions);
            seen.extend(completions.iter().map(|completion| (completion.tag.0, at.0)));
            assert!(completions.iter().all(|completion| completion.finished_at == at));
        }
        (seen, interrupts)
    }

    #[test]
    fn alone_each_is_announced_at_once_in_the_order_of_arrival() {
        let mut gathering = gathering(1);
        [(1, 70), (2, 50), (3, 70)].into_iter().for_each(|(tag, at)| send(&mut gathering, tag, at));
        assert_eq!(play(gathering), (vec![(2, 60), (1, 80), (3, 80)], 3));
    }

    #[test]
    fn enough_of_them_or_enough_waiting_make_an_interrupt() {
        let mut gathering = gathering(3);
        [(1, 50), (2, 60), (3, 70), (4, 200), (5, 299), (6, 301)]
            .into_iter()
            .for_each(|(tag, at)| send(&mut gathering, tag, at));
        let seen = vec![(1, 80), (2, 80), (3, 80), (4, 310), (5, 310), (6, 411)];
        assert_eq!(play(gathering), (seen, 3));
    }
}
