//! Submits waiting commands to the device.

use crate::commands::Commands;
use crate::config::FtlConfig;
use crate::layout::REAL_DIE_DEPTH;
use crate::op::Work;
use crate::superblock::FtlError;
use crate::unit::Unit;
use crate::units::Units;
use softflash_base::{Time, UnitId};
use softflash_device::{Command, Completion, Operation, QueuePair, Submit, Tag};

/// A command that must not be submitted any more.
pub(crate) struct Refused {
    pub op: u32,
    pub error: FtlError,
}

/// The device, and the limits of its queues.
pub(crate) struct Dispatcher {
    device: Box<dyn QueuePair>,
    die_depth: u16,
    is_fifo: bool,
}

impl Dispatcher {
    pub fn new(device: Box<dyn QueuePair>, config: &FtlConfig) -> Dispatcher {
        Dispatcher {
            die_depth: device.geometry().die_queue_depth.min(config.max_die_depth).max(1),
            is_fifo: config.order.is_fifo(),
            device,
        }
    }

    pub fn device(&self) -> &dyn QueuePair {
        &*self.device
    }

    /// The device has no command for the unit, and gets none.
    pub fn give_up(&mut self, unit: UnitId) {
        self.device.give_up(unit);
    }

    /// Collects the completions up to `now`.
    pub fn collect_completions(&mut self, now: Time, completions: &mut Vec<Completion>) {
        self.device.poll(now, completions);
    }

    /// Submits commands that need no die. Returns true if the device accepted any.
    pub fn submit_urgent(&mut self, now: Time, commands: &mut Commands) -> bool {
        let mut submitted = false;
        while let Some(op) = commands.pop_urgent() {
            if !self.submit(now, op, commands) {
                commands.put_back_urgent(op);
                break;
            }
            submitted = true;
        }
        submitted
    }

    /// Submits as many commands of the ready dies as the device accepts, and sets `submitted` if
    /// there was any. Stops at a command that must not be submitted; the caller cancels it and
    /// calls again.
    pub fn submit_ready(
        &mut self,
        now: Time,
        units: &mut Units,
        commands: &mut Commands,
        submitted: &mut bool,
    ) -> Option<Refused> {
        while let Some((unit, die)) = commands.next_die() {
            let refused = self.serve_die(now, &mut units[unit], die, commands, submitted);
            if refused.is_some() {
                return refused;
            }
            commands.die_served();
        }
        None
    }

    /// Submits commands to one die up to its depth.
    fn serve_die(
        &mut self,
        now: Time,
        unit: &mut Unit,
        die: u8,
        commands: &mut Commands,
        submitted: &mut bool,
    ) -> Option<Refused> {
        loop {
            let queue = unit.die_mut(die);
            if queue.in_device >= self.die_depth {
                *submitted |= self.pass_read(now, unit, die, commands);
                return None;
            }
            let (class, waiting) = queue.pop()?;
            let op = commands.op(waiting.op);
            let (index, mutation) = (op.index, op.work.is_mutation());
            if mutation {
                let refusal = unit.refusal(op);
                unit.slot_mut(index).leave_queue();
                if let Some(error) = refusal {
                    return Some(Refused { op: waiting.op, error });
                }
            }
            if !self.submit(now, waiting.op, commands) {
                if mutation {
                    unit.slot_mut(index).return_to_queue();
                }
                unit.die_mut(die).put_back(class, waiting);
                commands.die_stalled(unit.place(), die);
                return None;
            }
            unit.die_mut(die).started(now, class);
            *submitted = true;
        }
    }

    /// Submits one read beyond the depth to a real die. A die that suspends programs and erases for
    /// reads accepts it, others do not.
    fn pass_read(&mut self, now: Time, unit: &mut Unit, die: u8, commands: &mut Commands) -> bool {
        let full = self.die_depth;
        let queue = unit.die_mut(die);
        if full > REAL_DIE_DEPTH || queue.in_device > full || self.is_fifo {
            return false;
        }
        let Some((class, waiting)) = queue.pop_read() else { return false };
        let taken = self.submit(now, waiting.op, commands);
        if taken {
            queue.started(now, class);
        } else {
            queue.put_back(class, waiting);
        }
        taken
    }

    /// Submits one command to the device; returns false if the device is full.
    fn submit(&mut self, now: Time, id: u32, commands: &mut Commands) -> bool {
        let op = commands.op_mut(id);
        let data = op.data.take();
        let operation = match (op.work, data) {
            (Work::Read { .. } | Work::Verification, Some(buffer)) => Operation::Read(buffer),
            (Work::Append { .. } | Work::EraseHeader | Work::OpeningHeader, Some(data)) => {
                Operation::Program { data, durable: op.durable }
            }
            (Work::Erase | Work::EraseIdle, None) => Operation::Erase,
            (Work::MarkBad, None) => Operation::MarkBad,
            (Work::Flush { .. }, None) => Operation::Flush,
            (work, data) => unreachable!("{work:?} with {data:?}"),
        };
        let command =
            Command { tag: Tag(u64::from(id)), target: op.target, operation, hint: op.hint };
        match self.device.submit(now, command) {
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
