//! Whether and how fast writes are taken: memory, space, and the backlog of compaction.

use super::budget::Budget;
use super::{Shard, count};
use crate::error::{Result, StoreError};
use futures_util::future::select;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

/// Runs in level 0 above which writers are slowed.
const SLOW_RUNS: usize = 8;
/// Runs in level 0 at which writers stop.
const STOP_RUNS: usize = 20;
/// What flushes are taken to achieve before one has been measured, in bytes per second: between a modelled array and a
/// drive.
const FIRST_DRAIN_BYTES: f64 = (64 << 20) as f64;
/// Writers get at least this share of the rate of the flushes. Who sleeps does not hear that the backlog has gone, and
/// at the very end a single value would sleep for minutes; what must not be exceeded stops writers by itself.
const LEAST_RATE: f64 = 0.05;
/// Writers may be ahead of their rate by this much: shorter sleeps cost more than they even out.
const AHEAD: Duration = Duration::from_millis(1);

/// How long a write waits on a full device while compaction goes on. One can take long where many share a slow drive, and gives
/// room back only at its end; where none is under way, nobody waits.
const SPACE_PATIENCE: Duration = Duration::from_secs(30);
/// How long a deletion waits for room on a full device.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often writers that wait look whether there is room, beside being told.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Slows writers to what the flash takes, and spreads the delay over all of them.
///
/// The backlog is a share `f` of what may gather in memory, in the log and in level 0, beyond what is usual. Writers get
/// `(1 - f) / f` times the rate of the flushes: no limit at the beginning, their rate at one half, little at the end.
pub struct Throttle {
    /// When writes so far would have come at their rate.
    paid_until: Cell<Time>,
    /// What flushes achieve, in bytes per second.
    drain_bytes: Cell<f64>,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle { paid_until: Cell::default(), drain_bytes: Cell::new(FIRST_DRAIN_BYTES) }
    }
}

impl Throttle {
    /// A flush of `bytes` took `ns`. Only large ones tell a rate: small ones are mostly waiting.
    pub fn note_flush(&self, bytes: u64, ns: u64) {
        let achieved = bytes as f64 * 1e9 / ns.max(1) as f64;
        self.drain_bytes.set((self.drain_bytes.get() + achieved) / 2.0);
    }

    /// When `bytes` may be written at the backlog `share`.
    fn admits_at(&self, now: Time, bytes: usize, share: f64) -> Time {
        let rate = self.drain_bytes.get() * ((1.0 - share) / share).max(LEAST_RATE);
        let cost_ns = bytes as f64 * 1e9 / rate.max(1.0);
        let at = self.paid_until.get().max(now) + cost_ns as u64;
        self.paid_until.set(at);
        at
    }
}

impl Shard {
    /// Waits until `bytes` of new data may be written.
    ///
    /// # Errors
    /// [`StoreError::OutOfSpace`] where the flash is full, [`StoreError::WornOut`] where it is worn out; `grows` is false
    /// for batches that only delete, which are taken longer since they make room.
    pub(super) async fn admit(&self, bytes: usize, grows: bool) -> Result<()> {
        let admitted = self.wait_until_admitted(bytes, grows).await;
        if let Err(StoreError::OutOfSpace | StoreError::WornOut { .. }) = admitted {
            count(&self.counters.refused_writes, 1);
        }
        admitted
    }

    async fn wait_until_admitted(&self, bytes: usize, grows: bool) -> Result<()> {
        self.check_health()?;
        if grows && self.is_full() {
            self.wait_for_space().await?;
        }
        if self.has_room(bytes) && self.backlog() <= 0.0 {
            return Ok(());
        }
        let began = self.runtime.now();
        let admitted = self.wait_for_room(bytes, grows).await;
        count(&self.counters.stall_us, self.runtime.now().since_ns(began) / 1000);
        admitted
    }

    /// Waits while compaction may still give space back.
    async fn wait_for_space(&self) -> Result<()> {
        let give_up = self.runtime.now() + SPACE_PATIENCE;
        self.make_room();
        while self.is_full() {
            self.check_health()?;
            let flushing = self.slices.iter().any(|slice| !slice.frozen.borrow().is_empty());
            let hopeless = self.tasks.compaction_idle.get() && !flushing;
            if hopeless || self.runtime.now() >= give_up {
                return Err(self.blocks.lack_of_space().into());
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN);
            select(wait, pin!(self.tasks.room.notified())).await;
        }
        Ok(())
    }

    async fn wait_for_room(&self, bytes: usize, grows: bool) -> Result<()> {
        let share = self.backlog();
        if share > 0.0 && share < 1.0 {
            let now = self.runtime.now();
            let at = self.throttle.admits_at(now, bytes, share);
            if at > now + AHEAD {
                self.runtime.sleep_until(at).await;
            }
        }
        let give_up = self.runtime.now() + PATIENCE;
        let mut ask_again = self.runtime.now();
        loop {
            self.check_health()?;
            if self.has_room(bytes) && self.level0_runs() < STOP_RUNS {
                return Ok(());
            }
            // Not at every turn: a compaction that finds nothing to do wakes those who wait, too.
            if self.runtime.now() >= ask_again {
                self.make_room();
                ask_again = self.runtime.now() + LOOK_AGAIN;
            }
            let short = self.blocks.free_blocks() < self.budget.last_blocks;
            if short && (grows || self.runtime.now() >= give_up) {
                return Err(self.blocks.lack_of_space().into());
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN);
            select(wait, pin!(self.tasks.room.notified())).await;
        }
    }

    /// How far memory, log and level 0 are from where writers are slowed (0) to where they stop (1).
    fn backlog(&self) -> f64 {
        let Budget { freeze_bytes, memtables_total_bytes, log_bytes, .. } = self.budget;
        let between = |value: u64, slow: u64, stop: u64| {
            (value as f64 - slow as f64) / stop.saturating_sub(slow).max(1) as f64
        };
        // One memtable fills while another is flushed: that is as it should be.
        let memory = self.unwritten_bytes() as u64;
        let memory = between(memory, freeze_bytes as u64, memtables_total_bytes as u64);
        let log = between(self.log.live_bytes(), log_bytes, log_bytes + log_bytes / 2);
        let runs = between(self.level0_runs() as u64, SLOW_RUNS as u64, STOP_RUNS as u64);
        memory.max(log).max(runs)
    }

    /// Bytes of memtables, and of what the log has still to write: that is in memory a second time.
    fn unwritten_bytes(&self) -> usize {
        self.memtable_bytes() + self.log.backlog_bytes()
    }

    /// Whether memtables, log and flash can take `bytes` now.
    fn has_room(&self, bytes: usize) -> bool {
        let total = self.budget.memtables_total_bytes;
        // A value larger than the budget is taken when nothing else is in memtables.
        let alone = self.memtable_bytes() == 0 && !planted::bug(Bug::LargeValueNotExempt);
        let fits = alone || self.unwritten_bytes() + bytes <= total;
        fits && self.log.backlog_bytes() <= total
            && self.log.live_bytes() <= self.budget.log_bytes + self.budget.log_bytes / 2
            && self.blocks.free_blocks() >= self.budget.last_blocks
    }

    /// The error of a shard that takes no more writes, if it is one.
    pub(super) fn check_health(&self) -> Result<()> {
        if self.tasks.closing.get() {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = self.tasks.failure.borrow().as_ref() {
            return Err(failure.clone());
        }
        self.log.check()
    }

    pub(super) fn has_failed(&self) -> bool {
        self.tasks.failure.borrow().is_some() || self.log.check().is_err()
    }

    /// Sets to work what gives memory and flash back.
    fn make_room(&self) {
        self.freeze_largest();
        self.tasks.flush.notify_one();
        self.tasks.compaction_idle.set(false);
        self.tasks.compact.notify_one();
    }

    /// Whether new data is refused for lack of space.
    pub(super) fn is_full(&self) -> bool {
        self.blocks.free_blocks() < self.budget.reserve_blocks
    }

    /// Whether there is room to write lost copies again: also in a shard that refuses new data, as long as more is free than what
    /// compaction needs to make room.
    pub(super) fn can_rebuild(&self) -> bool {
        self.blocks.free_blocks() >= self.budget.last_blocks
    }

    /// Whether space is short enough to compact for it.
    pub(super) fn space_is_short(&self) -> bool {
        self.blocks.free_blocks() < self.budget.reserve_blocks + self.budget.reserve_blocks / 2
    }

    fn level0_runs(&self) -> usize {
        self.slices.iter().map(|slice| slice.tree.borrow().level0_runs()).max().unwrap_or(0)
    }

    /// Queues the largest memtable for a flush.
    pub(super) fn freeze_largest(&self) {
        let largest = self.slices.iter().max_by_key(|slice| slice.active_bytes());
        if let Some(slice) = largest
            && slice.frozen.borrow().is_empty()
            && slice.freeze(self.history.seq.get())
        {
            self.tasks.flush.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
