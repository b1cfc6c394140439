//! Reads that interrupt programs and erases.

use super::Core;
use super::die::{CellArray, Die, NONE, SUSPENDER, Stage};
use crate::channel::Channel;
use crate::timing::SuspendTiming;

impl Core {
    /// A suspending read and the suspended operation are served before the die's queue.
    pub(super) fn serve_suspender(&mut self, die: &mut Die, bus: &mut Channel) {
        let waiting = die.stage(SUSPENDER);
        match die.array {
            CellArray::Holding if waiting == Stage::Sensed && die.output == NONE => {
                self.unload(die, bus, SUSPENDER);
                self.serve_suspender(die, bus);
            }
            CellArray::Idle if waiting == Stage::ReadQueued => self.start_sense(die, SUSPENDER),
            CellArray::Idle if die.parked != NONE => self.resume(die),
            CellArray::Working if waiting == Stage::ReadQueued => self.consider_suspending(die),
            _ => {}
        }
    }

    /// Suspends the program or erase in the cell array if the waiting read may do so.
    fn consider_suspending(&mut self, die: &mut Die) {
        let Some(SuspendTiming { suspend_ns, at_most, .. }) = self.suspend_rules(die) else {
            return;
        };
        let left_ns = die.work_ends - self.now;
        let worth_it = left_ns > suspend_ns && die.suspends < at_most;
        if !worth_it || die.suspender_conflicts(die.array_slot) {
            return;
        }
        die.suspends += 1;
        die.parked_left_ns = left_ns;
        die.array = CellArray::Suspending;
        self.counters.suspensions += 1;
        self.wake_at(die, self.now + suspend_ns);
    }

    fn resume(&mut self, die: &mut Die) {
        die.array = CellArray::Resuming;
        die.array_slot = std::mem::replace(&mut die.parked, NONE);
        let resume_ns = self.suspend_rules(die).map_or(0, |rules| rules.resume_ns);
        self.wake_at(die, self.now + resume_ns);
    }

    /// Continues the resumed operation.
    pub(super) fn resumed(&mut self, die: &mut Die) {
        die.array = CellArray::Working;
        die.work_ends = self.now + die.parked_left_ns;
        self.wake_at(die, die.work_ends);
    }

    /// The suspend rules of the operation in the cell array, if it can be suspended.
    fn suspend_rules(&self, die: &Die) -> Option<SuspendTiming> {
        match die.stage(die.array_slot) {
            Stage::Programming => self.timing.program_suspend,
            Stage::Erasing => self.timing.erase_suspend,
            _ => None,
        }
    }
}
