//! The shard's background tasks: flush, compaction, scrub, and with redundancy rebuild. Client
//! traffic has priority: the tasks yield often, and the scheduler of every die ranks their requests
//! lower.

use super::parity::ParityKeeper;
use super::rebuild::Rebuild;
use super::refresh::Refresh;
use super::scrub::Scrub;
use crate::error::{Result, StoreError};
use crate::kv::compaction::leveled::payoff;
use crate::kv::slice::Slice;
use crate::shard::Shard;
use crate::shard::values::Collection;
use futures_util::future::select;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

/// The pause of compaction after an error, in nanoseconds.
const PAUSE_AFTER_ERROR_NS: u64 = 1_000_000_000;
/// The pause of a flush without free space, in nanoseconds.
const PAUSE_WITHOUT_SPACE_NS: u64 = 100_000_000;

impl Shard {
    /// Starts the background tasks.
    pub(crate) fn start_background(self: &Rc<Self>) {
        let (flusher, compactor) = (Rc::clone(self), Rc::clone(self));
        self.start(async move { flusher.flush_forever().await });
        self.start(async move { compactor.compact_forever().await });
        let collector = Rc::clone(self);
        self.start(async move { Collection::of(&collector).collect_forever().await });
        if let Some(period) = self.options.scrub {
            let scrubber = Rc::clone(self);
            self.start(async move { Scrub::of(&scrubber).scrub_forever(period).await });
        }
        if self.layout.redundancy().is_some() {
            let rebuilder = Rc::clone(self);
            self.start(async move { Rebuild::of(&rebuilder).rebuild_forever().await });
        }
    }

    fn start(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let shard = Rc::clone(self);
        shard.tasks.note_start();
        self.runtime.spawn(Box::pin(async move {
            task.await;
            shard.tasks.note_end();
        }));
    }

    async fn flush_forever(&self) {
        while !self.tasks.is_closing() {
            self.freeze_for_log();
            let waiting = self
                .slices
                .iter()
                .filter(|slice| !slice.frozen.borrow().is_empty())
                .min_by_key(|slice| slice.first_segment_needed());
            let worked = match waiting {
                Some(slice) => self.flush_oldest(slice).await,
                None if self.has_idle_log() => self.trim_log().await,
                None => {
                    let rotated = pin!(self.log.rotated());
                    select(pin!(self.tasks.flush_requested()), rotated).await;
                    continue;
                }
            };
            if let Err(error) = worked {
                if self.tasks.is_closing() && matches!(error, StoreError::Closed) {
                    return;
                }
                if !self.tasks.is_closing() && matches!(error, StoreError::OutOfSpace) {
                    // Compaction, deletions and expiry free space. Until then new writes wait or
                    // are refused.
                    self.tasks.request_compaction();
                    let resume_at = self.runtime.now() + PAUSE_WITHOUT_SPACE_NS;
                    self.runtime.sleep_until(resume_at).await;
                    continue;
                }
                // Memtables stay readable and are in the log; the shard refuses further writes.
                tracing::error!(shard = self.id.0, %error, "a memtable could not be flushed");
                self.tasks.fail(error);
                return;
            }
        }
    }

    /// Shortens a long log: freezes the memtable whose events are the oldest in the log.
    fn freeze_for_log(&self) {
        if self.log.live_bytes() > self.limits().log_bytes {
            let oldest = self.slices.iter().min_by_key(|slice| slice.first_segment_needed());
            if let Some(slice) = oldest
                && slice.frozen.borrow().is_empty()
            {
                slice.freeze(self.history.seq());
            }
        }
    }

    /// Whether the log is long and its oldest segments have no needed events.
    fn has_idle_log(&self) -> bool {
        self.log.live_bytes() > self.limits().log_bytes
            && self.log.oldest_segment() < self.first_segment_needed()
    }

    /// Patches that may become unreadable take precedence over compaction for space.
    async fn refresh_or_compact(&self, slice: &Slice) -> Result<bool> {
        if self.layout.redundancy().is_some() {
            // A rebuild can be long: it alternates with compaction, so that writers do not wait.
            let refreshed = match self.space().allows_rebuild() {
                true if ParityKeeper::of(self).reconstruct_once().await? => Ok(true),
                true => Refresh::of(self).refresh_once(slice).await,
                false => Ok(false),
            };
            // A patch that cannot be read does not keep the others from their merges.
            let compacted = self.compact_once(slice).await?;
            return Ok(ParityKeeper::of(self).rewrite_groups().await? || compacted || refreshed?);
        }
        match Refresh::of(self).refresh_once(slice).await {
            Ok(true) => Ok(true),
            refreshed => Ok(self.compact_once(slice).await? || refreshed?),
        }
    }

    /// The slices, those first whose merge pays most: where space is short, it may spare the others
    /// theirs.
    fn slices_by_payoff(&self) -> Vec<&Slice> {
        let mut slices: Vec<_> =
            self.slices.iter().map(|slice| (payoff(&slice.tree()), slice)).collect();
        slices.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        slices.into_iter().map(|(_, slice)| slice).collect()
    }

    async fn compact_forever(&self) {
        while !self.tasks.is_closing() {
            let mut worked = false;
            if self.space().allows_rebuild() {
                self.blocks.note_lagging();
                if self.values.is_used() && self.blocks.any_needs_refresh() {
                    // It may be a block of values.
                    self.tasks.request_collection();
                }
            }
            for slice in self.slices_by_payoff() {
                match self.refresh_or_compact(slice).await {
                    Ok(compacted) => worked |= compacted,
                    Err(StoreError::Closed) => return,
                    Err(error) => {
                        tracing::warn!(shard = self.id.0, slice = slice.id.0, %error, "compaction failed");
                        let resume_at = self.runtime.now() + PAUSE_AFTER_ERROR_NS;
                        self.runtime.sleep_until(resume_at).await;
                    }
                }
                if self.tasks.is_closing() {
                    return;
                }
            }
            if !worked {
                self.tasks.set_compaction_idle(true);
                self.tasks.announce_room();
                let pinned = pin!(self.blocks.pinned_bell().notified());
                select(pin!(self.tasks.compaction_requested()), pinned).await;
                self.tasks.set_compaction_idle(false);
            }
        }
    }
}
