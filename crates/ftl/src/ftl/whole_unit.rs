//! Work on whole units: the erase of all free superblocks of one, before it gets another owner, and
//! its way out of the FTL.

use super::Ftl;
use crate::erase;
use crate::requests::RequestId;
use crate::superblock::FtlError;
use softflash_base::{Time, UnitId};
use softflash_device::{Hint, Priority};

/// A request for a whole unit.
#[derive(Clone, Copy)]
pub(super) struct UnitWork {
    /// The place of the unit.
    place: usize,
    request: u32,
    goal: Goal,
}

/// The end of the work on a unit.
#[derive(Clone, Copy)]
enum Goal {
    /// All free superblocks are erased.
    Erased,
    /// No command for the unit is left, and its queue pair gives it up.
    GivenUp,
}

impl Ftl {
    /// Requests that all free superblocks of a unit are erased, and the blocks that no superblock
    /// has. When it is done, each superblock has an erase header that survives a power cut: a mount
    /// finds nothing of what they held. Superblocks with data stay, and then a mount finds again
    /// what bad blocks keep. Nothing may be allocated in the unit meanwhile.
    ///
    /// # Errors
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn erase_free(&mut self, now: Time, unit: UnitId) -> Result<RequestId, FtlError> {
        let place = self.units.place(unit)?;
        let (request, id) = self.begin_unit_work(place, Goal::Erased);
        self.requests.set_flush_at_end(request, true);
        let unit = &mut self.units[place];
        unit.want_all_erased(true);
        if unit.held_superblocks() == 0 {
            unit.void_older();
        }
        erase::start_idle(unit, &mut self.commands, now);
        self.dispatch(now);
        Ok(id)
    }

    /// Requests that a unit leaves. When it is done, another queue pair can open the unit. From now
    /// on it is [`NotOurs`](FtlError::NotOurs), and nothing is started on it; the commands under
    /// way end first, and so does an [erase](Ftl::erase_free) of all its free superblocks. Its
    /// counts can still be read. A mount finds the superblocks in it that were released and not
    /// erased.
    ///
    /// # Errors
    /// [`InUse`](FtlError::InUse) if a superblock of the unit has data or takes appends: the unit
    /// stays. [`NotOurs`](FtlError::NotOurs).
    pub fn leave(&mut self, unit: UnitId) -> Result<RequestId, FtlError> {
        let place = self.units.place(unit)?;
        let held = self.units[place].held_superblocks();
        if held > 0 {
            let reason = format!("its owner has not released {held} of its superblocks");
            return Err(FtlError::InUse { unit, reason });
        }
        self.units[place].leave();
        Ok(self.begin_unit_work(place, Goal::GivenUp).1)
    }

    /// Starts no erase ahead of need on a unit from now on, or some again: a superblock that is
    /// opened is still erased, if it was not before.
    ///
    /// # Errors
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn hold_erases(&mut self, unit: UnitId, is_held: bool) -> Result<(), FtlError> {
        let place = self.units.place(unit)?;
        self.units[place].hold_erases(is_held);
        Ok(())
    }

    fn begin_unit_work(&mut self, place: usize, goal: Goal) -> (u32, RequestId) {
        let (request, id) = self.requests.begin_single(Hint::HEADER.at(Priority::Background));
        self.unit_work.push(UnitWork { place, request, goal });
        (request, id)
    }

    /// Ends the requests for whole units that have reached their goal.
    pub(super) fn end_unit_work(&mut self, now: Time) {
        for work in std::mem::take(&mut self.unit_work) {
            let ended = match work.goal {
                Goal::Erased => self.end_erase(work.place),
                Goal::GivenUp => self.end_leave(work.place),
            };
            match ended {
                Some(result) => {
                    self.requests.finish_one(work.request, result);
                    self.queue_flushes(now);
                }
                None => self.unit_work.push(work),
            }
        }
    }

    /// The end of the erase of a unit in which no superblock is left to be erased.
    fn end_erase(&mut self, place: usize) -> Option<Result<(), FtlError>> {
        let result = self.units[place].all_erased()?;
        self.units[place].want_all_erased(false);
        Some(result)
    }

    /// Gives up a leaving unit for which no command is left.
    fn end_leave(&mut self, place: usize) -> Option<Result<(), FtlError>> {
        let unit = &self.units[place];
        let is_at_work = unit.load() > 0 || unit.wants_all_erased() || self.commands.any_of(place);
        if is_at_work {
            return None;
        }
        self.dispatcher.give_up(unit.id());
        Some(Ok(()))
    }
}
