//! The erase of all free superblocks of a unit, before it gets another owner.

use super::Ftl;
use crate::erase;
use crate::requests::RequestId;
use crate::superblock::FtlError;
use softflash_base::{Time, UnitId};
use softflash_device::{Hint, Priority};

impl Ftl {
    /// Requests that all free superblocks of a unit are erased, and the blocks that no superblock
    /// has. When it is done, each superblock has an erase header that survives a power cut: a mount
    /// finds nothing of what they held, except in bad blocks. Superblocks with data stay. Nothing
    /// may be allocated in the unit meanwhile.
    ///
    /// # Errors
    /// [`NotOurs`](FtlError::NotOurs).
    pub fn erase_free(&mut self, now: Time, unit: UnitId) -> Result<RequestId, FtlError> {
        let place = self.units.place(unit)?;
        let hint = Hint::HEADER.at(Priority::Background);
        let (request, id) = self.requests.begin_single(hint);
        self.requests.set_flush_at_end(request, true);
        let unit = &mut self.units[place];
        unit.want_all_erased(true);
        erase::start_idle(unit, &mut self.commands, now);
        self.erasures.push((place, request));
        self.dispatch(now);
        Ok(id)
    }

    /// Ends the requests for the erase of units in which no superblock is left to be erased.
    pub(super) fn end_erasures(&mut self, now: Time) {
        for (place, request) in std::mem::take(&mut self.erasures) {
            let Some(result) = self.units[place].all_erased() else {
                self.erasures.push((place, request));
                continue;
            };
            self.units[place].want_all_erased(false);
            self.requests.finish_one(request, result);
            self.queue_flushes(now);
        }
    }
}
