//! Submits queued commands to the device.

use crate::ftl::Ftl;
use crate::hint::Priority;
use crate::layout::REAL_DIE_DEPTH;
use crate::request::{Op, Work};
use crate::scheduler::{OpKind, QueueClass, Waiting};
use crate::superblock::{FtlError, Superblock};
use crate::unit::State;
use softflash_base::{Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{Command, Operation, Submit, Tag, Target};

/// The target of commands without one.
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
    /// Adds a command to the account of its superblock.
    pub(crate) fn add_op(&mut self, mut op: Op) -> u32 {
        if !self.config.reads_first {
            op.class = QueueClass::ONLY;
        }
        let unit = &mut self.units[op.unit];
        unit.load += 1;
        unit.slot_mut(op.index).under_way += 1;
        self.ops.insert(op)
    }

    /// Queues a program of an allocated superblock, or holds it until the erase header is on the
    /// flash.
    pub(crate) fn add_program(&mut self, op: Op) {
        let (unit, index, class) = (op.unit, op.index, op.class);
        let ready = self.units[unit].slot(index).ready;
        let op = self.add_op(op);
        if ready {
            self.enqueue(op);
        } else {
            self.units[unit].held.push(op);
            self.promote(unit, index, class);
        }
    }

    /// Puts a command into the queue of its die. Programs and erases of one superblock share a
    /// queue class, so that none overtakes another: the most urgent of them determines the class.
    pub(crate) fn enqueue(&mut self, id: u32) {
        let op = self.ops.get(id);
        let (unit, index, die, since) = (op.unit, op.index, op.target.die, op.since);
        let (mut class, mutation) = (op.class, op.work.is_mutation());
        let needs_header = matches!(op.work, Work::Append { .. } | Work::OpeningHeader);
        if mutation {
            self.promote(unit, index, class);
            let slot = self.units[unit].slot_mut(index);
            assert!(
                slot.ready || !needs_header,
                "superblock {index} is programmed before its erase header"
            );
            if slot.queued == 0 {
                slot.class = class;
            }
            slot.queued += 1;
            class = slot.class;
        }
        self.units[unit].dies[usize::from(die)].push(class, Waiting { op: id, since });
        self.ready(unit, die);
    }

    /// Moves the waiting programs and erases of a superblock to a more urgent queue class.
    pub(crate) fn promote(&mut self, unit: usize, index: u32, class: QueueClass) {
        let unit = &mut self.units[unit];
        let slot = unit.slot_mut(index);
        if slot.queued == 0 || slot.class <= class {
            return;
        }
        let from = std::mem::replace(&mut slot.class, class);
        for die in &mut unit.dies {
            die.promote(from, class, |op| self.ops.get(op).index == index);
        }
    }

    /// Records that the queue of a die may have a command to submit.
    pub(crate) fn ready(&mut self, unit: usize, die: u8) {
        if self.ready_dies.last() != Some(&(unit, die)) {
            self.ready_dies.push((unit, die));
        }
    }

    /// Queues a flush for a request, whose count of parts already includes the flush.
    pub(crate) fn queue_flush(&mut self, now: Time, request: u32) {
        self.add_urgent(now, Work::Flush { request }, 0, NOWHERE);
    }

    /// Queues a command that needs no die.
    pub(crate) fn add_urgent(&mut self, now: Time, work: Work, unit: usize, target: Target) {
        let op = self.ops.insert(Op {
            work,
            unit,
            index: 0,
            target,
            data: None,
            durable: false,
            class: QueueClass::new(OpKind::Read, Priority::Foreground),
            since: now,
        });
        self.urgent.push_back(op);
    }

    /// Submits as many commands as the device accepts. Returns true if there was any.
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

    /// Submits commands to one die up to its depth.
    fn run_die(&mut self, now: Time, unit: usize, die: u8) -> bool {
        let mut submitted = false;
        loop {
            let queue = &mut self.units[unit].dies[usize::from(die)];
            if queue.in_device >= self.die_depth {
                return self.pass_read(now, unit, die) || submitted;
            }
            let Some((class, waiting)) = queue.pop() else { return submitted };
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
                unit_state.dies[usize::from(die)].put_back(class, waiting);
                self.stalled_dies.push((unit, die));
                return submitted;
            }
            self.units[unit].dies[usize::from(die)].started(now, class);
            submitted = true;
        }
    }

    /// Submits one read beyond the depth to a real die. A die that suspends programs and erases for
    /// reads accepts it, others do not.
    fn pass_read(&mut self, now: Time, unit: usize, die: u8) -> bool {
        let full = self.die_depth;
        let queue = &mut self.units[unit].dies[usize::from(die)];
        if full > REAL_DIE_DEPTH || queue.in_device > full || !self.config.reads_first {
            return false;
        }
        let Some((class, waiting)) = queue.pop_read() else { return false };
        let taken = self.submit(now, waiting.op);
        let queue = &mut self.units[unit].dies[usize::from(die)];
        if taken {
            queue.started(now, class);
        } else {
            queue.put_back(class, waiting);
        }
        taken
    }

    /// The reason why a program must not be submitted any more.
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

    /// Submits one command to the device; returns false if the device is full.
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
