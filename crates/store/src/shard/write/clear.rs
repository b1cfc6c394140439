//! Removal of all keys: from memory at once, from flash once the removal is decided.
//!
//! A crash before the commit undoes a removal that is part of an undecided transaction or follows
//! one, because recovery cuts the log there. Until the commit the manifest keeps the patches, and
//! the log keeps the events of the memtables.

use crate::shard::Shard;
use crate::shard::log::Log;
use crate::shard::maintenance::manifest::Manifest;
use crate::shard::maintenance::tasks::Tasks;
use crate::shard::resources::caches::Caches;
use crate::shard::slices::Slices;
use crate::shard::transactions::history::History;
use crate::shard::transactions::pending_clears::PendingClear;
use crate::shard::values::ValueLog;
use softflash_base::planted::{self, Bug};
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;

/// Removes all keys of a shard.
pub(in crate::shard) struct Clear<'a> {
    slices: &'a Slices,
    values: &'a ValueLog,
    caches: &'a Caches,
    history: &'a History,
    log: &'a Log,
    tasks: &'a Tasks,
    runtime: &'a RuntimeHandle,
    manifest: Manifest<'a>,
}

impl Clear<'_> {
    /// The parts of a shard that have keys.
    pub(in crate::shard) fn of(shard: &Shard) -> Clear<'_> {
        let Shard { slices, values, caches, history, log, tasks, runtime, .. } = shard;
        let manifest = Manifest::of(shard);
        Clear { slices, values, caches, history, log, tasks, runtime, manifest }
    }

    /// Removes all keys from memory. [`Self::drop_cleared_patches`] removes them from flash.
    pub(super) fn remove_all(&self, seq: u64) {
        let first_segment = self.manifest.log_start();
        let mut patches = Vec::new();
        for slice in self.slices {
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
        self.tasks.request_collection();
        self.history.clears().add(PendingClear { seq, first_segment, patches });
        if !planted::bug(Bug::ClearKeepsCache) {
            self.caches.clear();
        }
        if !planted::bug(Bug::ClearTouchesNoWatch) {
            self.history.touch_all();
        }
        self.tasks.announce_room();
    }

    /// Drops the patches of decided removals from the manifest, and retires them once that is
    /// durable. `decided` is a transaction that is now committed.
    pub(in crate::shard) fn drop_cleared_patches(&self, decided: Option<u64>) {
        let undecided_from = self.log.undecided_from(decided);
        let mut dropped = Vec::new();
        while let Some(clear) = self.history.clears().take_decided(undecided_from) {
            for (slice, patches) in self.slices.iter().zip(clear.patches) {
                if !patches.is_empty() {
                    self.manifest.note(slice, &patches, Vec::new());
                    dropped.extend(patches);
                }
            }
        }
        if dropped.is_empty() {
            return;
        }
        let (log, seq) = (self.log.clone(), self.history.seq());
        self.runtime.spawn(Box::pin(async move {
            if log.stable_soon(seq).await.is_ok() {
                dropped.iter().for_each(|patch| patch.retire());
            }
        }));
    }
}
