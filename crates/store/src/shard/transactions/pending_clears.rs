//! Removals of all keys that a crash may undo, because the transaction that they are part of, or
//! an earlier one, is undecided.

use crate::kv::patch::Patch;
use softflash_base::planted::{self, Bug};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Removals that a crash may undo, oldest first.
#[derive(Default)]
pub(in crate::shard) struct PendingClears {
    pending: RefCell<VecDeque<PendingClear>>,
}

/// A removal, and what is kept to undo it.
pub(in crate::shard) struct PendingClear {
    /// Its sequence number.
    pub(in crate::shard) seq: u64,
    /// The first segment of the log with events of the memtables before the removal.
    pub(in crate::shard) first_segment: u64,
    /// The patches of each slice.
    pub(in crate::shard) patches: Vec<Vec<Rc<Patch>>>,
}

impl PendingClears {
    /// The first segment of the log that is needed to undo them; `u64::MAX` if there are none.
    pub(in crate::shard) fn first_segment_needed(&self) -> u64 {
        let pending = self.pending.borrow();
        pending.iter().map(|clear| clear.first_segment).min().unwrap_or(u64::MAX)
    }

    /// Adds the newest removal.
    pub(in crate::shard) fn add(&self, clear: PendingClear) {
        self.pending.borrow_mut().push_back(clear);
    }

    /// Takes the oldest removal, if it is older than every undecided transaction.
    pub(in crate::shard) fn take_decided(&self, undecided_from: u64) -> Option<PendingClear> {
        let mut pending = self.pending.borrow_mut();
        let undecided_from =
            undecided_from.saturating_add(planted::bug(Bug::UndecidedDoomed).into());
        if pending.front()?.seq >= undecided_from {
            return None;
        }
        pending.pop_front()
    }
}

#[cfg(test)]
mod tests;
