//! From queues to the device: which command is submitted next.

use crate::ftl::Ftl;
use crate::hint::Priority;
use crate::layout::REAL_DIE_DEPTH;
use crate::request::{Op, Work};
use crate::scheduler::{Class, Lane, Waiting};
use crate::superblock::{FtlError, Superblock};
use crate::unit::State;
use softflash_base::{Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{Command, Operation, Submit, Tag, Target};

/// A target where none is looked at.
const NOWHERE: Target = Target {
    unit: UnitId(0),
    die: 0,
    plane: 0,
    planes: 1,
    blocks: [0; MAX_PLANES],
    page: 0,
    rows: 0,
};

impl Ftl {
    /// Accounts for a command of a superblock.
    pub(crate) fn add_op(&mut self, mut op: Op) -> u32 {
        if !self.config.reads_first {
            op.lane = Lane::ONLY;
        }
        let unit = &mut self.units[op.unit];
        unit.load += 1;
        unit.slot_mut(op.index).under_way += 1;
        self.ops.insert(op)
    }

    /// Queues a program of an allocated superblock, or holds it until the erase header is written.
    pub(crate) fn add_program(&mut self, op: Op) {
        let (unit, index, lane) = (op.unit, op.index, op.lane);
        let ready = self.units[unit].slot(index).ready;
        let op = self.add_op(op);
        if ready {
            self.enqueue(op);
        } else {
            self.units[unit].held.push(op);
            self.promote(unit, index, lane);
        }
    }

    /// Puts a command into its die's queue. Those that change one superblock share a lane, so that none
    /// overtakes another: the most urgent of them decides which.
    pub(crate) fn enqueue(&mut self, id: u32) {
        let op = self.ops.get(id);
        let (unit, index, die, since) = (op.unit, op.index, op.target.die, op.since);
        let (mut lane, mutation) = (op.lane, op.work.is_mutation());
        if mutation {
            self.promote(unit, index, lane);
            let slot = self.units[unit].slot_mut(index);
            if slot.queued == 0 {
                slot.lane = lane;
            }
            slot.queued += 1;
            lane = slot.lane;
        }
        self.units[unit].dies[usize::from(die)].push(lane, Waiting { op: id, since });
        self.ready(unit, die);
    }

    /// Moves what waits to change a superblock to a more urgent lane.
    pub(crate) fn promote(&mut self, unit: usize, index: u32, lane: Lane) {
        let unit = &mut self.units[unit];
        let slot = unit.slot_mut(index);
        if slot.queued == 0 || slot.lane <= lane {
            return;
        }
        let from = std::mem::replace(&mut slot.lane, lane);
        for die in &mut unit.dies {
            die.promote(from, lane, |op| self.ops.get(op).index == index);
        }
    }

    /// Notes that a die's queue may be able to go on.
    pub(crate) fn ready(&mut self, unit: usize, die: u8) {
        if self.ready_dies.last() != Some(&(unit, die)) {
            self.ready_dies.push((unit, die));
        }
    }

    /// Queues a flush on behalf of a request, which is counted on already.
    pub(crate) fn queue_flush(&mut self, now: Time, request: u32) {
        self.add_urgent(now, Work::Flush { request }, 0, NOWHERE);
    }

    /// Queues a command that waits for no die.
    pub(crate) fn add_urgent(&mut self, now: Time, work: Work, unit: usize, target: Target) {
        let op = self.ops.insert(Op {
            work,
            unit,
            index: 0,
            target,
            data: None,
            durable: false,
            lane: Lane::new(Class::Read, Priority::Foreground),
            since: now,
        });
        self.urgent.push_back(op);
    }

    /// Submits what the device takes; true where it took anything.
    pub(crate) fn run_queues(&mut self, now: Time) -> bool {
        let mut submitted = false;
        while let Some(op) = self.urgent.pop_front() {
            if !self.submit(now, op) {
                self.urgent.push_front(op);
                break;
            }
            submitted = true;
        }
        let mut next = 0;
        while let Some((unit, die)) = self.ready_dies.get(next).copied() {
            submitted |= self.run_die(now, unit, die);
            next += 1;
        }
        self.ready_dies.clear();
        submitted
    }

    /// Fills one die up to its depth.
    fn run_die(&mut self, now: Time, unit: usize, die: u8) -> bool {
        let mut submitted = false;
        loop {
            let queue = &mut self.units[unit].dies[usize::from(die)];
            if queue.in_device >= self.die_depth {
                return self.pass_read(now, unit, die) || submitted;
            }
            let Some((lane, waiting)) = queue.pop() else { return submitted };
            let op = self.ops.get(waiting.op);
            let (index, mutation) = (op.index, op.work.is_mutation());
            if mutation {
                let refusal = self.refusal(unit, index, op.work);
                self.units[unit].slot_mut(index).queued -= 1;
                if let Some(error) = refusal {
                    self.cancel(now, waiting.op, error);
                    continue;
                }
            }
            if !self.submit(now, waiting.op) {
                let unit_state = &mut self.units[unit];
                unit_state.slot_mut(index).queued += u32::from(mutation);
                unit_state.dies[usize::from(die)].put_back(lane, waiting);
                self.stalled_dies.push((unit, die));
                return submitted;
            }
            self.units[unit].dies[usize::from(die)].started(now, lane);
            submitted = true;
        }
    }

    /// Offers one read more than the depth to a real die: one that suspends programs and erases for
    /// reads takes it, others do not.
    fn pass_read(&mut self, now: Time, unit: usize, die: u8) -> bool {
        let full = self.die_depth;
        let queue = &mut self.units[unit].dies[usize::from(die)];
        if full > REAL_DIE_DEPTH || queue.in_device > full || !self.config.reads_first {
            return false;
        }
        let Some((lane, waiting)) = queue.pop_read() else { return false };
        let taken = self.submit(now, waiting.op);
        let queue = &mut self.units[unit].dies[usize::from(die)];
        if taken {
            queue.started(now, lane);
        } else {
            queue.put_back(lane, waiting);
        }
        taken
    }

    /// Why a program must not be submitted any more.
    fn refusal(&self, unit: usize, index: u32, work: Work) -> Option<FtlError> {
        let slot = self.units[unit].slot(index);
        let superblock =
            Superblock { unit: self.units[unit].id, index, generation: slot.generation };
        match (work, slot.state) {
            (Work::Erase, _) => None,
            (Work::EraseHeader, State::Releasing) if !slot.failed => None,
            (_, State::Releasing) => Some(FtlError::Stale { superblock }),
            _ if slot.failed => Some(FtlError::Sealed { superblock }),
            _ => None,
        }
    }

    /// Hands one command to the device; false where it is full.
    fn submit(&mut self, now: Time, id: u32) -> bool {
        let op = self.ops.get_mut(id);
        let data = op.data.take();
        let operation = match (op.work, data) {
            (Work::Read { .. } | Work::Verification, Some(buffer)) => Operation::Read(buffer),
            (Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader, Some(data)) => {
                Operation::Program { data, durable: op.durable }
            }
            (Work::Erase, None) => Operation::Erase,
            (Work::MarkBad, None) => Operation::MarkBad,
            (Work::Flush { .. }, None) => Operation::Flush,
            (work, data) => unreachable!("{work:?} with {data:?}"),
        };
        let command = Command { tag: Tag(u64::from(id)), target: op.target, operation };
        match self.queue.submit(now, command) {
            Submit::Accepted => true,
            Submit::Full(command) => {
                op.data = match command.operation {
                    Operation::Read(buffer) | Operation::Program { data: buffer, .. } => {
                        Some(buffer)
                    }
                    _ => None,
                };
                false
            }
        }
    }
}
