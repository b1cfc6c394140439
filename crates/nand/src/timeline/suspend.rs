//! Reads that pass programs and erases, by the rules of the array (`array/suspend.rs`): a die takes
//! one such read, which is sensed before all work that waits, and may suspend the work in the cell
//! array. If no program or erase is left, the read goes on as one in order.

use super::bus::BusLine;
use super::clock::Clock;
use super::die::{CellArray, DieLine, Passing, Register};
use super::event_queue::{EventClass, Owner};
use super::recorder::Interval;
use super::work::{Work, WorkKind};
use crate::channel::Direction;
use crate::timing::SuspendTiming;

impl DieLine {
    /// Whether a read that starts now passes a program or an erase.
    #[inline]
    pub(super) fn is_passed_by_reads(&self) -> bool {
        let reads_only = matches!(self.register, Register::Free | Register::Out);
        self.array != CellArray::Idle || !reads_only
    }
}

impl Clock {
    /// Starts a read on a die that loads, programs or erases; `waits` says whether it may suspend
    /// the work in the cell array.
    #[cold]
    pub(super) fn pass(&mut self, line: &mut DieLine, read: Work, waits: Passing) {
        line.outgoing = read;
        if line.array == CellArray::Idle {
            // The program waits for its data.
            return self.sense_passing(line);
        }
        line.set_passing(waits);
        self.consider_suspending(line);
    }

    /// Suspends the program or erase in the cell array if the waiting read may do so.
    fn consider_suspending(&mut self, line: &mut DieLine) {
        let at_work = matches!(line.array, CellArray::Programming | CellArray::Rewriting);
        if line.passing != Passing::Waits || !at_work {
            return;
        }
        let Some(SuspendTiming { suspend_ns, at_most, .. }) = self.suspend_rules(line) else {
            return;
        };
        let (class, ends) = self.end_of(line);
        let left_ns = ends - self.now;
        if left_ns <= suspend_ns || line.suspensions >= at_most {
            return;
        }
        self.events.remove(class, ends, Owner::Die(line.die), self.now);
        self.recorder.shorten(line.die, line.began_at, self.now);
        line.suspensions += 1;
        line.left_ns = left_ns;
        line.array = CellArray::Suspending;
        self.wake_at(line, self.now + suspend_ns);
    }

    /// Handles the event of a die while a read passes, or suspended work is resumed; returns the
    /// work that ended.
    #[cold]
    pub(super) fn array_ended_beside_read(
        &mut self,
        line: &mut DieLine,
        bus: &mut BusLine,
    ) -> Option<Work> {
        match line.array {
            CellArray::Suspending => {
                line.suspended = true;
                self.sense_passing(line);
            }
            CellArray::Resuming => self.resumed(line),
            CellArray::Passing => self.passing_sensed(line, bus),
            CellArray::Programming | CellArray::Rewriting => {
                let ended = line.at_work;
                self.passed_work_ended(line, bus);
                return Some(ended);
            }
            array => unreachable!("an event of a cell array that is {array:?} beside a read"),
        }
        None
    }

    fn sense_passing(&mut self, line: &mut DieLine) {
        let sense_ns = self.timing.read_ns[self.level(line.outgoing.page)];
        let ends = self.now + sense_ns;
        line.set_passing(Passing::Senses);
        line.array = CellArray::Passing;
        line.busy_ns += sense_ns;
        let (die, read) = (line.die, line.outgoing);
        self.recorder.note(|| Interval::of_array(die, read, false, self.now, ends));
        self.events.add(EventClass::Sense, ends, Owner::Die(die), self.now);
    }

    /// The page of the passing read is sensed. Without a cache register it occupies the cell array
    /// until it is transferred.
    fn passing_sensed(&mut self, line: &mut DieLine, bus: &mut BusLine) {
        line.set_passing(Passing::Unloads);
        line.array = if self.timing.cache_read { CellArray::Idle } else { CellArray::Holding };
        self.request_bus(line, bus, line.outgoing, Direction::Out);
        self.continue_passed(line);
    }

    /// Completes the transfer of the passing read.
    #[cold]
    pub(super) fn passing_unloaded(&mut self, line: &mut DieLine) {
        let resumes = line.array == CellArray::Resuming;
        line.set_passing(if resumes { Passing::Resumes } else { Passing::None });
        if line.array == CellArray::Holding {
            line.array = CellArray::Idle;
        }
        self.continue_passed(line);
    }

    /// If the cell array is free, resumes the suspended work, or starts a program that is loaded.
    fn continue_passed(&mut self, line: &mut DieLine) {
        if line.array != CellArray::Idle {
            return;
        }
        if line.suspended {
            let resume_ns = self.suspend_rules(line).map_or(0, |rules| rules.resume_ns);
            line.suspended = false;
            line.array = CellArray::Resuming;
            if line.passing == Passing::None {
                line.set_passing(Passing::Resumes);
            }
            self.wake_at(line, self.now + resume_ns);
        } else if line.register == Register::Loaded {
            self.program_loaded(line, line.incoming, self.now);
        }
    }

    /// Continues the resumed work, which the next read may suspend again.
    fn resumed(&mut self, line: &mut DieLine) {
        let programs = line.at_work.kind == WorkKind::Program;
        line.array = if programs { CellArray::Programming } else { CellArray::Rewriting };
        line.began_at = self.now;
        if line.passing == Passing::Resumes {
            line.set_passing(Passing::None);
        }
        let ends = self.now + line.left_ns;
        let DieLine { die, at_work, moving, .. } = *line;
        self.recorder.note(|| Interval::of_array(die, at_work, moving, self.now, ends));
        self.wake_at(line, ends);
        self.consider_suspending(line);
    }

    /// The program or erase that the read passes has ended: a read that waited is sensed before a
    /// program that is loaded.
    fn passed_work_ended(&mut self, line: &mut DieLine, bus: &mut BusLine) {
        line.moving = false;
        line.array = CellArray::Idle;
        let last = line.register == Register::Free;
        match (line.passing, last) {
            (Passing::Unloads, false) => self.continue_passed(line),
            (Passing::Unloads, true) => {
                line.set_passing(Passing::None);
                line.register = Register::Out;
            }
            (_, false) => self.sense_passing(line),
            (_, true) => {
                line.set_passing(Passing::None);
                self.read(line, bus, line.outgoing);
            }
        }
    }

    /// The event class and the time of the end of the program or erase in the cell array.
    fn end_of(&self, line: &DieLine) -> (EventClass, u64) {
        let level = self.level(line.at_work.page);
        let (class, work_ns) = match line.at_work.kind {
            _ if line.suspensions > 0 => (EventClass::Other, line.left_ns),
            WorkKind::Erase => (EventClass::Erase, self.timing.erase_ns),
            _ => (self.program_class(level), self.timing.program_ns[level]),
        };
        (class, line.began_at + work_ns)
    }

    /// The suspend rules of the work in the cell array.
    fn suspend_rules(&self, line: &DieLine) -> Option<SuspendTiming> {
        match line.at_work.kind {
            WorkKind::Erase => self.timing.erase_suspend,
            _ => self.timing.program_suspend,
        }
    }

    /// Schedules the next event of a die whose work is suspended.
    fn wake_at(&mut self, line: &DieLine, at: u64) {
        self.events.add(EventClass::Other, at, Owner::Die(line.die), self.now);
    }
}
