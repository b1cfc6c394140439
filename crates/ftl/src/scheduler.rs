//! The queue of one die: reads before programs before erases, by priority inside each, with ageing.
//!
//! Every class and priority has a lane, first come, first served. The head of a lane is *due* when its
//! lane's allowance has passed since it arrived, or since the lane was served last, whichever is later; the die
//! takes the head that is due first. So a new foreground read waits for the operation under way and for nothing
//! else, however long the queue of programs, while a lane that has been passed over for its
//! allowance gets one turn before it: nothing starves, and every lane moves on at least once in 100 ms.

use crate::hint::Priority;
use softflash_base::Time;
use std::collections::VecDeque;

/// What a request does to the die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Read,
    Program,
    Erase,
}

/// A class and a priority; the lower, the more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Lane(u8);

/// Classes times priorities.
const LANES: usize = 9;

const MS: u64 = 1_000_000;

/// How long foreground reads may pass over a lane, in nanoseconds.
/// A read takes about 0.1 ms, a program 1 ms, an erase 5 ms: a program so lets some dozens of reads
/// pass and an erase some dozens of programs.
const ALLOWANCE_NS: [u64; LANES] =
    [0, MS, 4 * MS, 8 * MS, 12 * MS, 24 * MS, 40 * MS, 60 * MS, 100 * MS];

impl Lane {
    /// The lane of everything where nothing goes first.
    pub const ONLY: Lane = Lane(0);

    /// The lane for a class and priority.
    pub const fn new(class: Class, priority: Priority) -> Lane {
        Lane(class as u8 * 3 + priority as u8)
    }

    fn allowance_ns(self) -> u64 {
        ALLOWANCE_NS[usize::from(self.0)]
    }
}

/// A request in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub op: u32,
    pub since: Time,
}

/// What waits for a die and what it does now.
#[derive(Default)]
pub(crate) struct DieQueue {
    lanes: [VecDeque<Waiting>; LANES],
    /// When each lane was served last.
    served_at: [Time; LANES],
    waiting: u32,
    /// Commands that the device has.
    pub in_device: u16,
    busy_since: Time,
    /// Time with at least one command in the device, up to the last time it had none.
    pub busy_ns: u64,
}

impl DieQueue {
    pub fn push(&mut self, lane: Lane, waiting: Waiting) {
        self.lanes[usize::from(lane.0)].push_back(waiting);
        self.waiting += 1;
    }

    /// Puts back what the device did not take.
    pub fn put_back(&mut self, lane: Lane, waiting: Waiting) {
        self.lanes[usize::from(lane.0)].push_front(waiting);
        self.waiting += 1;
    }

    /// Takes the request that is due first; among those due at the same time the most urgent lane's.
    pub fn pop(&mut self) -> Option<(Lane, Waiting)> {
        if self.waiting == 0 {
            return None;
        }
        let heads = (0_u8..).map(Lane).zip(self.lanes.iter().zip(&self.served_at));
        let (lane, _) = heads
            .filter_map(|(lane, (queue, served_at))| {
                let waits_since = queue.front()?.since.max(*served_at);
                Some((lane, waits_since + lane.allowance_ns()))
            })
            .min_by_key(|(lane, due)| (*due, *lane))?;
        self.waiting -= 1;
        self.lanes[usize::from(lane.0)].pop_front().map(|waiting| (lane, waiting))
    }

    /// Takes the most urgent read, whatever else waits.
    pub fn pop_read(&mut self) -> Option<(Lane, Waiting)> {
        let reads = [Priority::Foreground, Priority::Normal, Priority::Background];
        let mut lanes = reads.into_iter().map(|priority| Lane::new(Class::Read, priority));
        let lane = lanes.find(|lane| !self.lanes[usize::from(lane.0)].is_empty())?;
        self.waiting -= 1;
        self.lanes[usize::from(lane.0)].pop_front().map(|waiting| (lane, waiting))
    }

    /// Moves the requests that `belongs` picks to a more urgent lane, in their order.
    pub fn promote(&mut self, from: Lane, to: Lane, belongs: impl Fn(u32) -> bool) {
        for _ in 0..self.lanes[usize::from(from.0)].len() {
            if let Some(waiting) = self.lanes[usize::from(from.0)].pop_front() {
                let lane = if belongs(waiting.op) { to } else { from };
                self.lanes[usize::from(lane.0)].push_back(waiting);
            }
        }
    }

    /// The device took a command.
    pub fn started(&mut self, now: Time, lane: Lane) {
        self.served_at[usize::from(lane.0)] = now;
        if self.in_device == 0 {
            self.busy_since = now;
        }
        self.in_device += 1;
    }

    /// The device finished a command.
    pub fn finished(&mut self, at: Time) {
        assert!(self.in_device > 0, "a die finished a command that it never had");
        self.in_device -= 1;
        if self.in_device == 0 {
            self.busy_ns += at.since_ns(self.busy_since);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Class::{Erase, Program, Read};
    use Priority::{Background, Foreground, Normal};

    fn queue(requests: &[(Class, Priority, u64)]) -> DieQueue {
        let mut queue = DieQueue::default();
        for (op, (class, priority, since_ms)) in requests.iter().enumerate() {
            let waiting = Waiting { op: op as u32, since: Time(since_ms * MS) };
            queue.push(Lane::new(*class, *priority), waiting);
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
    fn requests_of_one_lane_keep_their_order() {
        assert_eq!(order(queue(&[(Program, Normal, 0); 5])), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn whatever_waits_long_enough_goes_before_a_new_foreground_read() {
        for class in [Read, Program, Erase] {
            for priority in [Foreground, Normal, Background] {
                let allowance_ms = ALLOWANCE_NS[usize::from(Lane::new(class, priority).0)] / MS;
                let later = queue(&[(class, priority, 0), (Read, Foreground, allowance_ms + 1)]);
                assert_eq!(order(later), [0, 1], "{class:?} {priority:?} starves");
                if allowance_ms > 0 {
                    let sooner =
                        queue(&[(class, priority, 0), (Read, Foreground, allowance_ms - 1)]);
                    assert_eq!(order(sooner), [1, 0], "{class:?} {priority:?} overtakes");
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
            queue.push(Lane::new(Read, Foreground), read);
            if queue.pop().unwrap().1.op == 0 {
                break;
            }
        }
    }

    #[test]
    fn old_programs_in_number_do_not_make_a_read_wait_for_all_of_them() {
        let mut queue = queue(&[(Program, Foreground, 0); 50]);
        let mut served = Vec::new();
        // One operation per millisecond, and a new read before each.
        for ms in 100..200 {
            queue.push(Lane::new(Read, Foreground), Waiting { op: 99, since: Time(ms * MS) });
            let (lane, waiting) = queue.pop().unwrap();
            queue.started(Time(ms * MS), lane);
            queue.finished(Time(ms * MS));
            served.push(waiting.op);
        }
        let programs = served.iter().filter(|op| **op != 99).count();
        assert!((10..=14).contains(&programs), "one program in 8 ms, and there were {programs}");
    }

    #[test]
    fn promotion_keeps_the_order_of_what_moves_and_of_what_stays() {
        let mut queue = queue(&[(Program, Background, 0); 6]);
        let (from, to) = (Lane::new(Program, Background), Lane::new(Program, Foreground));
        queue.promote(from, to, |op| op % 2 == 1);
        assert_eq!(order(queue), [1, 3, 5, 0, 2, 4]);
    }

    #[test]
    fn busy_time_counts_overlapping_commands_once() {
        let mut queue = DieQueue::default();
        let lane = Lane::new(Read, Foreground);
        queue.started(Time(10), lane);
        queue.started(Time(15), lane);
        queue.finished(Time(20));
        queue.finished(Time(30));
        assert_eq!(queue.busy_ns, 20);
    }
}
