//! All commands until they end. A command waits in the queue of its die (`unit.rs`), among the held
//! programs until its superblock can be programmed, or, if it needs no die, in `urgent`.

use crate::op::{Op, Work};
use crate::scheduler::{OpKind, QueueClass, Waiting};
use crate::slab::Slab;
use crate::unit::Unit;
use softflash_base::{Time, UnitId};
use softflash_device::geometry::MAX_PLANES;
use softflash_device::{Hint, Priority, Target};
use std::collections::VecDeque;

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

/// All commands, waiting or in the device.
pub(crate) struct Commands {
    ops: Slab<Op>,
    /// Commands that need no die: flushes, and records of bad blocks.
    urgent: VecDeque<u32>,
    /// For each unit, the programs that wait for their superblock's erase header, in order.
    held: Vec<Vec<u32>>,
    /// Dies whose queue may have a command to submit, as `(unit, die)`.
    ready_dies: Vec<(usize, u8)>,
    /// The ready dies before this one have been served.
    next_ready: usize,
    /// Dies whose command the device refused because it was full.
    stalled_dies: Vec<(usize, u8)>,
    /// Whether the queue of a die is FIFO.
    is_fifo: bool,
}

impl Commands {
    pub fn new(units: usize, is_fifo: bool) -> Commands {
        Commands {
            ops: Slab::new(),
            urgent: VecDeque::new(),
            held: vec![Vec::new(); units],
            ready_dies: Vec::new(),
            next_ready: 0,
            stalled_dies: Vec::new(),
            is_fifo,
        }
    }

    pub fn op(&self, id: u32) -> &Op {
        self.ops.get(id)
    }

    pub fn op_mut(&mut self, id: u32) -> &mut Op {
        self.ops.get_mut(id)
    }

    /// Takes a command that has ended.
    pub fn take_op(&mut self, id: u32) -> Op {
        self.ops.remove(id)
    }

    /// Whether no command is waiting or in the device.
    pub fn no_ops(&self) -> bool {
        self.ops.stored() == 0
    }

    /// Whether a command for a unit is waiting or in the device. Looks at all commands.
    pub fn any_of(&self, unit: usize) -> bool {
        let is_of_unit = |op: &Op| op.unit == unit && !matches!(op.work, Work::Flush { .. });
        self.ops.values().any(is_of_unit)
    }

    /// Whether a program or an erase of a unit is waiting or in the device. Looks at all commands.
    pub fn any_changes(&self, unit: usize) -> bool {
        self.ops.values().any(|op| op.unit == unit && op.work.is_mutation())
    }

    /// Adds a command to the account of its superblock and to the queue of its die.
    pub fn add(&mut self, unit: &mut Unit, op: Op) {
        let op = self.add_op(unit, op);
        self.enqueue(unit, op);
    }

    /// Adds a program of an allocated superblock: queues it, or holds it until the erase header is
    /// on the flash.
    pub fn add_program(&mut self, unit: &mut Unit, op: Op) {
        let (index, class) = (op.index, op.class);
        let ready = unit.slot(index).is_ready();
        let op = self.add_op(unit, op);
        if ready {
            self.enqueue(unit, op);
        } else {
            self.held[unit.place()].push(op);
            self.promote(unit, index, class);
        }
    }

    /// Adds a command to the account of its superblock.
    fn add_op(&mut self, unit: &mut Unit, mut op: Op) -> u32 {
        if self.is_fifo {
            op.class = QueueClass::ONLY;
        }
        unit.command_added(op.index);
        self.ops.insert(op)
    }

    /// Puts a command into the queue of its die. Programs and erases of one superblock share a
    /// queue class, so that none overtakes another: the most urgent of them determines the class.
    pub fn enqueue(&mut self, unit: &mut Unit, id: u32) {
        let op = self.ops.get(id);
        let (index, die, since) = (op.index, op.target.die, op.since);
        let (mut class, mutation) = (op.class, op.work.is_mutation());
        let needs_header = matches!(op.work, Work::Append { .. } | Work::OpeningHeader);
        if mutation {
            self.promote(unit, index, class);
            let slot = unit.slot_mut(index);
            assert!(
                slot.is_ready() || !needs_header,
                "superblock {index} is programmed before its erase header"
            );
            class = slot.join_queue(class);
        }
        unit.die_mut(die).push(class, Waiting { op: id, since });
        self.die_ready(unit.place(), die);
    }

    /// Moves the waiting programs and erases of a superblock to a more urgent queue class.
    pub fn promote(&self, unit: &mut Unit, index: u32, class: QueueClass) {
        unit.promote(index, class, |op| self.ops.get(op).index == index);
    }

    /// Takes the held programs of a superblock.
    pub fn take_held(&mut self, unit: usize, index: u32) -> Vec<u32> {
        let ops = &self.ops;
        self.held[unit].extract_if(.., |id| ops.get(*id).index == index).collect()
    }

    /// Queues a flush for a request, whose count of parts already includes the flush.
    pub fn queue_flush(&mut self, now: Time, request: u32, hint: Hint) {
        self.add_urgent(now, Work::Flush { request }, hint, 0, NOWHERE);
    }

    /// Queues the record of a bad block.
    pub fn queue_mark_bad(&mut self, now: Time, unit: usize, target: Target) {
        self.add_urgent(now, Work::MarkBad, Hint::HEADER, unit, target);
    }

    /// Queues a command that needs no die.
    fn add_urgent(&mut self, now: Time, work: Work, hint: Hint, unit: usize, target: Target) {
        let op = self.ops.insert(Op {
            work,
            unit,
            index: 0,
            target,
            data: None,
            durable: false,
            class: QueueClass::new(OpKind::Read, Priority::Foreground),
            hint,
            since: now,
        });
        self.urgent.push_back(op);
    }

    /// Takes the next command that needs no die.
    pub fn pop_urgent(&mut self) -> Option<u32> {
        self.urgent.pop_front()
    }

    /// Puts back a command that needs no die and that the device did not accept.
    pub fn put_back_urgent(&mut self, id: u32) {
        self.urgent.push_front(id);
    }

    /// Records that the queue of a die may have a command to submit.
    pub fn die_ready(&mut self, unit: usize, die: u8) {
        if self.ready_dies.last() != Some(&(unit, die)) {
            self.ready_dies.push((unit, die));
        }
    }

    /// Marks all dies of a unit ready, so that queued commands of a failed superblock are
    /// cancelled.
    pub fn wake_dies(&mut self, unit: &Unit) {
        for die in 0..unit.layout().dies as u8 {
            self.die_ready(unit.place(), die);
        }
    }

    /// The die to serve next, until [`die_served`](Self::die_served).
    pub fn next_die(&mut self) -> Option<(usize, u8)> {
        let next = self.ready_dies.get(self.next_ready).copied();
        if next.is_none() {
            self.ready_dies.clear();
            self.next_ready = 0;
        }
        next
    }

    /// Records that the next die has no command that the device accepts.
    pub fn die_served(&mut self) {
        self.next_ready += 1;
    }

    /// Records that the device is full, with a command of a die refused.
    pub fn die_stalled(&mut self, unit: usize, die: u8) {
        self.stalled_dies.push((unit, die));
    }

    /// Makes the stalled dies ready again.
    pub fn retry_stalled(&mut self) {
        self.ready_dies.extend_from_slice(&self.stalled_dies);
        self.stalled_dies.clear();
    }

    /// Whether a command waits until the device is no longer full.
    pub fn wait_for_device(&self) -> bool {
        !self.stalled_dies.is_empty() || !self.urgent.is_empty()
    }
}
