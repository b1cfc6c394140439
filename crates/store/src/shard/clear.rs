//! Removal of all keys: from memory at once, from flash once the removal is decided.
//!
//! A crash before the commit undoes a removal that is part of an undecided transaction or follows
//! one, because recovery cuts the log there. Until the commit the manifest keeps the patches, and
//! the log keeps the events of the memtables.

use super::Shard;
use crate::kv::patch::Patch;
use softflash_base::planted::{self, Bug};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Removals that a crash may undo, oldest first.
#[derive(Default)]
pub(super) struct PendingClears {
    pending: RefCell<VecDeque<Pending>>,
}

struct Pending {
    seq: u64,
    /// The first segment of the log with events of the memtables before the removal.
    first_segment: u64,
    /// The patches of each slice.
    patches: Vec<Vec<Rc<Patch>>>,
}

impl PendingClears {
    /// The first segment of the log that is needed to undo them; `u64::MAX` if there are none.
    pub(super) fn first_segment_needed(&self) -> u64 {
        let pending = self.pending.borrow();
        pending.iter().map(|clear| clear.first_segment).min().unwrap_or(u64::MAX)
    }

    /// Takes the oldest removal, if it is older than every undecided transaction.
    fn take_decided(&self, undecided_from: u64) -> Option<Pending> {
        let mut pending = self.pending.borrow_mut();
        let undecided_from =
            undecided_from.saturating_add(planted::bug(Bug::UndecidedDoomed).into());
        if pending.front()?.seq >= undecided_from {
            return None;
        }
        pending.pop_front()
    }
}

impl Shard {
    /// Removes all keys from memory. [`Shard::drop_cleared_patches`] removes them from flash.
    pub(super) fn clear(&self, seq: u64) {
        let first_segment = self.first_segment_needed();
        let mut patches = Vec::new();
        for slice in &self.slices {
            slice.clears.set(slice.clears.get() + 1);
            slice.cleared_seq.set(seq);
            slice.each_newest_in_memory(|_, version| {
                if let Some(separated) = version.as_separated() {
                    self.values.ledger().borrow_mut().supersede(separated);
                }
            });
            slice.clear_memory();
            slice.live_keys.set(0);
            let tree = slice.tree.take();
            patches.push(tree.patches().map(|(.., patch)| Rc::clone(patch)).collect());
        }
        self.values.ledger().borrow_mut().clear();
        self.tasks.collect.notify_one();
        self.history.clears.pending.borrow_mut().push_back(Pending { seq, first_segment, patches });
        if !planted::bug(Bug::ClearKeepsCache) {
            self.caches.read.borrow_mut().clear();
        }
        if !planted::bug(Bug::ClearTouchesNoWatch) {
            self.history.watches.borrow_mut().touch_all();
        }
        self.tasks.room.notify_all();
    }

    /// Drops the patches of decided removals from the manifest, and retires them once that is
    /// durable. `decided` is a transaction that is now committed.
    pub(super) fn drop_cleared_patches(&self, decided: Option<u64>) {
        let undecided_from = self.log.undecided_from(decided);
        let mut dropped = Vec::new();
        while let Some(clear) = self.history.clears.take_decided(undecided_from) {
            for (slice, patches) in self.slices.iter().zip(clear.patches) {
                if !patches.is_empty() {
                    self.edit(slice, &patches, Vec::new());
                    dropped.extend(patches);
                }
            }
        }
        if dropped.is_empty() {
            return;
        }
        let (log, seq) = (self.log.clone(), self.history.seq.get());
        self.runtime.spawn(Box::pin(async move {
            if log.stable_soon(seq).await.is_ok() {
                dropped.iter().for_each(|patch| patch.retire());
            }
        }));
    }
}

#[cfg(test)]
mod tests;
