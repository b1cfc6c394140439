//! The queue of one die, in the order that a policy gives.
//!
//! Each kind of operation and priority is a queue class with a FIFO queue. The head of a queue is
//! *due* once the allowance of its class has passed since the head arrived or, where the policy
//! says so, since the class was last served. The die serves the head that is due first. With
//! `reads-first`, a new foreground read waits only for the operation in progress, however many
//! programs are queued, and a class that has been overtaken for its allowance is served once before
//! the next foreground read.

use softflash_base::Time;
use softflash_device::Priority;
use softflash_policy::order::{Allowances, PRIORITIES};
use std::collections::VecDeque;

/// The kind of operation on the die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OpKind {
    Read,
    Program,
    Erase,
}

/// A kind of operation and a priority. A lower number is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueueClass(u8);

/// Kinds of operations times priorities.
const CLASSES: usize = 3 * PRIORITIES;

impl QueueClass {
    /// The class of all requests if the queue is FIFO.
    pub const ONLY: QueueClass = QueueClass(0);

    /// The class for a kind of operation and a priority.
    pub const fn new(kind: OpKind, priority: Priority) -> QueueClass {
        QueueClass(kind as u8 * PRIORITIES as u8 + priority as u8)
    }

    /// The priority of a command in this class.
    pub fn priority(self) -> Priority {
        match self.0 % PRIORITIES as u8 {
            0 => Priority::Foreground,
            1 => Priority::Normal,
            _ => Priority::Background,
        }
    }
}

/// A command in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub op: u32,
    pub since: Time,
}

/// The queues of a die, and the commands that it executes.
pub(crate) struct DieQueue {
    allowances: Allowances,
    queues: [VecDeque<Waiting>; CLASSES],
    /// The time at which each class was last served.
    served_at: [Time; CLASSES],
    waiting: u32,
    /// Commands in the device.
    pub in_device: u16,
    busy_since: Time,
    /// Time with at least one command in the device, up to the last time at which it became idle.
    pub busy_ns: u64,
}

impl DieQueue {
    /// An empty queue, whose commands wait for more urgent ones as an order says.
    pub fn new(allowances: Allowances) -> DieQueue {
        DieQueue {
            allowances,
            queues: Default::default(),
            served_at: Default::default(),
            waiting: 0,
            in_device: 0,
            busy_since: Time::default(),
            busy_ns: 0,
        }
    }

    pub fn push(&mut self, class: QueueClass, waiting: Waiting) {
        self.queues[usize::from(class.0)].push_back(waiting);
        self.waiting += 1;
    }

    /// Puts back a command that the device did not accept.
    pub fn put_back(&mut self, class: QueueClass, waiting: Waiting) {
        self.queues[usize::from(class.0)].push_front(waiting);
        self.waiting += 1;
    }

    /// Takes the command that is due first; of those due at the same time, the one of the most
    /// urgent class.
    pub fn pop(&mut self) -> Option<(QueueClass, Waiting)> {
        if self.waiting == 0 {
            return None;
        }
        let Allowances { reads, programs, erases, renewed } = &self.allowances;
        let allowances = reads.iter().chain(programs).chain(erases);
        let heads = self.queues.iter().zip(&self.served_at).zip(allowances);
        let (_, class) = (0_u8..)
            .map(QueueClass)
            .zip(heads)
            .filter_map(|(class, ((queue, served_at), allowance_ns))| {
                let since = queue.front()?.since;
                let waits_since = if *renewed { since.max(*served_at) } else { since };
                Some((waits_since + *allowance_ns, class))
            })
            .min()?;
        self.waiting -= 1;
        self.queues[usize::from(class.0)].pop_front().map(|waiting| (class, waiting))
    }

    /// Takes the most urgent read, ignoring programs and erases.
    pub fn pop_read(&mut self) -> Option<(QueueClass, Waiting)> {
        let reads = [Priority::Foreground, Priority::Normal, Priority::Background];
        let mut classes = reads.into_iter().map(|priority| QueueClass::new(OpKind::Read, priority));
        let class = classes.find(|class| !self.queues[usize::from(class.0)].is_empty())?;
        self.waiting -= 1;
        self.queues[usize::from(class.0)].pop_front().map(|waiting| (class, waiting))
    }

    /// Moves the commands for which `belongs` is true to a more urgent class, in their order.
    pub fn promote(&mut self, from: QueueClass, to: QueueClass, belongs: impl Fn(u32) -> bool) {
        for _ in 0..self.queues[usize::from(from.0)].len() {
            if let Some(waiting) = self.queues[usize::from(from.0)].pop_front() {
                let class = if belongs(waiting.op) { to } else { from };
                self.queues[usize::from(class.0)].push_back(waiting);
            }
        }
    }

    /// Records that the device accepted a command.
    pub fn started(&mut self, now: Time, class: QueueClass) {
        self.served_at[usize::from(class.0)] = now;
        if self.in_device == 0 {
            self.busy_since = now;
        }
        self.in_device += 1;
    }

    /// Records that the device finished a command.
    pub fn finished(&mut self, at: Time) {
        assert!(self.in_device > 0, "a die finished a command that was not submitted");
        self.in_device -= 1;
        if self.in_device == 0 {
            self.busy_ns += at.since_ns(self.busy_since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use OpKind::{Erase, Program, Read};
    use Priority::{Background, Foreground, Normal};
    use softflash_policy::Schedule;

    const MS: u64 = 1_000_000;

    fn queue_in(order: Schedule) -> DieQueue {
        DieQueue::new(order.allowances().expect("an order of the FTL"))
    }

    fn queue(requests: &[(OpKind, Priority, u64)]) -> DieQueue {
        let mut queue = queue_in(Schedule::READS_FIRST);
        for (op, (kind, priority, since_ms)) in requests.iter().enumerate() {
            let waiting = Waiting { op: op as u32, since: Time(since_ms * MS) };
            queue.push(QueueClass::new(*kind, *priority), waiting);
        }
        queue
    }

    fn order(mut queue: DieQueue) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop().map(|(_, waiting)| waiting.op)).collect()
    }

    #[test]
    fn reads_go_before_programs_before_erases_and_by_priority_inside() {
        let queue = queue(&[
            (Erase, Background, 0),
            (Erase, Foreground, 0),
            (Program, Background, 0),
            (Program, Foreground, 0),
            (Program, Normal, 0),
            (Read, Background, 0),
            (Read, Foreground, 0),
        ]);
        assert_eq!(order(queue), [6, 5, 3, 4, 2, 1, 0]);
    }

    #[test]
    fn commands_of_one_queue_class_keep_their_order() {
        assert_eq!(order(queue(&[(Program, Normal, 0); 5])), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn every_class_goes_before_a_new_foreground_read_after_its_allowance() {
        for kind in [Read, Program, Erase] {
            for priority in [Foreground, Normal, Background] {
                let allowances = Schedule::READS_FIRST.allowances().unwrap();
                let of_kind = match kind {
                    Read => allowances.reads,
                    Program => allowances.programs,
                    Erase => allowances.erases,
                };
                let allowance_ms = of_kind[priority as usize] / MS;
                let later = queue(&[(kind, priority, 0), (Read, Foreground, allowance_ms + 1)]);
                assert_eq!(order(later), [0, 1], "{kind:?} {priority:?} starves");
                if allowance_ms > 0 {
                    let sooner =
                        queue(&[(kind, priority, 0), (Read, Foreground, allowance_ms - 1)]);
                    assert_eq!(order(sooner), [1, 0], "{kind:?} {priority:?} overtakes");
                }
            }
        }
    }

    #[test]
    fn a_flood_of_reads_delays_an_erase_by_no_more_than_its_allowance() {
        let mut queue = queue(&[(Erase, Background, 0)]);
        for ms in 0.. {
            assert!(ms <= 101, "the erase starves");
            let read = Waiting { op: 7, since: Time(ms * MS) };
            queue.push(QueueClass::new(Read, Foreground), read);
            if queue.pop().unwrap().1.op == 0 {
                break;
            }
        }
    }

    #[test]
    fn a_new_read_does_not_wait_for_all_of_many_old_programs() {
        let mut queue = queue(&[(Program, Foreground, 0); 50]);
        let mut served = Vec::new();
        // One operation per millisecond, and a new read before each.
        for ms in 100..200 {
            queue.push(QueueClass::new(Read, Foreground), Waiting { op: 99, since: Time(ms * MS) });
            let (class, waiting) = queue.pop().unwrap();
            queue.started(Time(ms * MS), class);
            queue.finished(Time(ms * MS));
            served.push(waiting.op);
        }
        let programs = served.iter().filter(|op| **op != 99).count();
        assert!((10..=14).contains(&programs), "one program in 8 ms, and there were {programs}");
    }

    #[test]
    fn by_deadline_all_that_are_due_go_before_a_new_read() {
        let mut queue = queue_in(Schedule::deadline(1));
        let arrivals = [(Program, 0), (Program, 1), (Read, 9), (Read, 11), (Erase, 2)];
        for (op, (kind, since_ms)) in (0..).zip(arrivals) {
            let waiting = Waiting { op, since: Time(since_ms * MS) };
            queue.push(QueueClass::new(kind, Foreground), waiting);
            queue.served_at = [Time(5 * MS); CLASSES];
        }
        // Programs are due at 10 and 11 ms, reads at 10 and 12 ms, the erase at 12 ms; of equals
        // the read is first.
        assert_eq!(order(queue), [2, 0, 1, 3, 4]);
    }

    #[test]
    fn promotion_keeps_the_order_within_both_classes() {
        let mut queue = queue(&[(Program, Background, 0); 6]);
        let (from, to) =
            (QueueClass::new(Program, Background), QueueClass::new(Program, Foreground));
        queue.promote(from, to, |op| op % 2 == 1);
        assert_eq!(order(queue), [1, 3, 5, 0, 2, 4]);
    }

    #[test]
    fn busy_time_counts_overlapping_commands_once() {
        let mut queue = queue_in(Schedule::READS_FIRST);
        let class = QueueClass::new(Read, Foreground);
        queue.started(Time(10), class);
        queue.started(Time(15), class);
        queue.finished(Time(20));
        queue.finished(Time(30));
        assert_eq!(queue.busy_ns, 20);
    }
}
