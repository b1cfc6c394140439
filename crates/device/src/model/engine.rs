//! Commands in progress on the dies of one queue pair: each is a sequence of rows, submitted to its
//! die when the die has room.

use super::group::Group;
use crate::accepted::Accepted;
use crate::command::{Command, Completion, DeviceError, Operation, Target};
use crate::geometry::UnitGeometry;
use softflash_base::{IoBuf, Time};
use softflash_nand::{
    CommandKind, DieCommand, DieIndex, Finished, PageStatus, Refused, RuleBroken,
};
use std::collections::VecDeque;

/// A command that a die has accepted.
#[derive(Debug)]
struct Active {
    accepted: Accepted,
    kind: CommandKind,
    target: Target,
    die: DieIndex,
    buffer: Option<IoBuf>,
    /// A read whose buffer has room only for the beginning of its page.
    head: bool,
    durable: bool,
    /// Rows of pages; an erase has one.
    rows: u32,
    submitted: u32,
    finished: u32,
    /// The most read retries of any row.
    retries: u8,
    /// The first row that failed, and why. No row is submitted after it.
    failure: Option<(u32, DeviceError)>,
}

impl Active {
    fn has_rows_to_submit(&self) -> bool {
        self.failure.is_none() && self.submitted < self.rows
    }

    fn has_ended(&self) -> bool {
        !self.has_rows_to_submit() && self.finished == self.submitted
    }

    fn fail(&mut self, row: u32, error: DeviceError) {
        if self.failure.as_ref().is_none_or(|(first, _)| row < *first) {
            self.failure = Some((row, error));
        }
    }

    /// The command for the array that carries out one row.
    fn die_command(&self, slot: u32, row: u32) -> DieCommand {
        let Target { plane, planes, blocks, page, .. } = self.target;
        let page = if self.kind == CommandKind::Erase { 0 } else { page + row };
        let tag = u64::from(slot) << 32 | u64::from(row);
        DieCommand {
            tag,
            die: self.die,
            kind: self.kind,
            plane,
            planes,
            blocks,
            page,
            head: self.head,
        }
    }
}

/// The work of one die.
#[derive(Debug, Default)]
struct DieQueue {
    /// Slots of commands with rows to submit, oldest first.
    waiting: VecDeque<u32>,
    /// Commands accepted and not completed.
    load: u16,
}

/// The commands of a queue pair.
#[derive(Debug)]
pub(super) struct Engine {
    geometry: UnitGeometry,
    /// Whether a read may pass programs and erases.
    reads_pass: bool,
    slots: Vec<Option<Active>>,
    free: Vec<u32>,
    dies: Vec<DieQueue>,
    /// Completions that are not delivered yet.
    ended: Vec<Completion>,
}

impl Engine {
    pub(super) fn new(geometry: UnitGeometry, reads_pass: bool, dies: u32) -> Engine {
        Engine {
            geometry,
            reads_pass,
            slots: Vec::new(),
            free: Vec::new(),
            dies: (0..dies).map(|_| DieQueue::default()).collect(),
            ended: Vec::new(),
        }
    }

    /// Commands accepted and not completed.
    pub(super) fn pending(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether completions wait for delivery.
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Delivers the completions.
    pub(super) fn deliver(&mut self, completions: &mut Vec<Completion>) {
        completions.append(&mut self.ended);
    }

    /// Completes a command without the array.
    pub(super) fn end(&mut self, command: Command, result: Result<(), DeviceError>, now: Time) {
        let buffer = match command.operation {
            Operation::Read(buffer) | Operation::Program { data: buffer, .. } => Some(buffer),
            Operation::Erase | Operation::Flush | Operation::MarkBad => None,
        };
        self.ended.push(Accepted::new(command.tag, now, 0).ended(now, buffer, result));
    }

    /// Whether the die accepts this operation now: as many commands as its queue depth, and one
    /// more read if reads may pass.
    pub(super) fn has_room(&self, die: DieIndex, operation: &Operation) -> bool {
        let extra = self.reads_pass && matches!(operation, Operation::Read(_));
        let depth = self.geometry.die_queue_depth + u16::from(extra);
        self.dies[die.index()].load < depth
    }

    /// Accepts a checked read, program or erase, and submits the rows for which the die has room.
    pub(super) fn accept(&mut self, group: &mut Group, die: DieIndex, command: Command) {
        let Command { tag, target, operation, .. } = command;
        let page_bytes = self.geometry.page_bytes as usize;
        let (kind, buffer, durable) = match operation {
            Operation::Read(buffer) => (CommandKind::Read, Some(buffer), false),
            Operation::Program { data, durable } => (CommandKind::Program, Some(data), durable),
            _ => (CommandKind::Erase, None, false),
        };
        let rows = if kind == CommandKind::Erase { 1 } else { target.rows };
        let accepted = Accepted::new(tag, group.array.now(), self.dies[die.index()].load);
        let active = Active {
            accepted,
            kind,
            target,
            die,
            head: kind == CommandKind::Read
                && buffer.as_ref().is_some_and(|buffer| buffer.len() < page_bytes),
            buffer,
            durable,
            rows,
            submitted: 0,
            finished: 0,
            retries: 0,
            failure: None,
        };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize] = Some(active);
        let queue = &mut self.dies[die.index()];
        queue.load += 1;
        queue.waiting.push_back(slot);
        self.dispatch(group, die);
    }

    /// Records the rows that the array has just completed, and submits further rows to their dies.
    pub(super) fn completed(&mut self, group: &mut Group, finished: &[Finished]) {
        for row in finished {
            self.row_finished(group, row);
        }
        for row in finished {
            self.dispatch(group, row.die);
        }
    }

    /// Fails all commands, as the array completes none of them any more.
    pub(super) fn lose_all(&mut self, now: Time) {
        for queue in &mut self.dies {
            *queue = DieQueue::default();
        }
        self.free.clear();
        let lost = self.slots.drain(..).flatten();
        self.ended.extend(lost.map(|Active { accepted, buffer, .. }| {
            accepted.ended(now, buffer, Err(DeviceError::Io { errno: libc::ENODEV }))
        }));
    }

    fn active(&mut self, slot: u32) -> &mut Active {
        match &mut self.slots[slot as usize] {
            Some(active) => active,
            None => unreachable!("slot {slot} is empty"),
        }
    }

    /// Submits rows to a die while it has room, oldest command first; if reads may pass, they do
    /// not wait behind commands for which there is no room.
    fn dispatch(&mut self, group: &mut Group, die: DieIndex) {
        let mut place = 0;
        while let Some(&slot) = self.dies[die.index()].waiting.get(place) {
            let kind = self.active(slot).kind;
            let may_go = place == 0 || (self.reads_pass && kind == CommandKind::Read);
            if !may_go || !group.array.has_room(die, kind) {
                place += 1;
                continue;
            }
            self.submit_row(group, slot);
            if !self.active(slot).has_rows_to_submit() {
                self.dies[die.index()].waiting.remove(place);
                self.end_if_done(group, slot);
            }
        }
    }

    /// Submits the next row of a command to its die, which has room.
    fn submit_row(&mut self, group: &mut Group, slot: u32) {
        let row_bytes = self.geometry.page_bytes as usize;
        let active = self.active(slot);
        let row = active.submitted;
        let command = active.die_command(slot, row);
        let data: &[u8] = match (&active.buffer, active.kind) {
            (Some(buffer), CommandKind::Program) => {
                let row_bytes = row_bytes * usize::from(command.planes);
                &buffer[row as usize * row_bytes..][..row_bytes]
            }
            _ => &[],
        };
        let now = group.array.now();
        match group.array.submit(now, &command, data) {
            Ok(()) => {
                active.submitted += 1;
                group.touch(&command);
            }
            Err(Refused::Rule(rule)) => active.fail(row, broken(rule)),
            Err(Refused::Busy) => unreachable!("the die has room"),
        }
    }

    fn row_finished(&mut self, group: &mut Group, finished: &Finished) {
        let slot = (finished.tag >> 32) as u32;
        let row = finished.tag as u32;
        let active = self.active(slot);
        active.finished += 1;
        active.retries = active.retries.max(finished.retries);
        if let Some(error) = outcome(finished, active.target.page + row) {
            active.fail(row, error);
        }
        match (active.kind, &mut active.buffer) {
            // After a failed read the contents of the buffer are undefined.
            (CommandKind::Read, _) if active.failure.is_some() => {}
            (CommandKind::Read, Some(buffer)) => {
                let data = group.array.read_data(finished);
                let data = &data[..data.len().min(buffer.len())];
                buffer[row as usize * data.len()..][..data.len()].copy_from_slice(data);
            }
            (CommandKind::Read, None) => {}
            _ => {
                let command = active.die_command(slot, row);
                if let Err(error) = group.save_blocks_of(&command) {
                    active.fail(row, error);
                }
            }
        }
        if active.failure.is_some() {
            let die = active.die;
            self.dies[die.index()].waiting.retain(|waiting| *waiting != slot);
        }
        self.end_if_done(group, slot);
    }

    /// Completes a command whose last row has ended.
    fn end_if_done(&mut self, group: &Group, slot: u32) {
        if !self.active(slot).has_ended() {
            return;
        }
        let Some(active) = self.slots[slot as usize].take() else { return };
        self.free.push(slot);
        self.dies[active.die.index()].load -= 1;
        let result = match active.failure {
            Some((_, error)) => Err(error),
            None if active.durable => group.sync(),
            None => Ok(()),
        };
        let Active { accepted, buffer, retries, .. } = active;
        let ended = accepted.ended(group.array.now(), buffer, result);
        self.ended.push(Completion { retries, ..ended });
    }
}

/// The error of a finished row, if any.
fn outcome(finished: &Finished, page: u32) -> Option<DeviceError> {
    let statuses = finished.statuses();
    let any = |status| statuses.contains(&status);
    let store_failure = statuses.iter().find_map(|status| match status {
        PageStatus::StoreFailed(failure) => Some(i32::from(failure.errno)),
        _ => None,
    });
    match (store_failure, finished.kind) {
        (Some(errno), _) => Some(DeviceError::Io { errno }),
        (None, _) if any(PageStatus::Dead) => Some(DeviceError::DeadDie),
        (None, CommandKind::Program) if any(PageStatus::Failed) => Some(DeviceError::ProgramFailed),
        (None, CommandKind::Erase) if any(PageStatus::Failed) => Some(DeviceError::EraseFailed),
        (None, _) if any(PageStatus::Uncorrectable) => Some(DeviceError::Uncorrectable),
        (None, _) if any(PageStatus::Erased) => Some(DeviceError::Erased { page }),
        (None, _) => None,
    }
}

fn broken(rule: RuleBroken) -> DeviceError {
    match rule {
        RuleBroken::BadBlock { block } => DeviceError::BadBlock { block },
        other => DeviceError::RuleBroken(other.to_string()),
    }
}
