//! Whether and how fast writes are taken: memory, space, and the backlog of compaction.

use super::{Shard, count};
use crate::error::{Result, StoreError};
use futures_util::future::select;
use softflash_base::Time;
use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

/// Runs in level 0 above which writers are slowed.
const SLOW_RUNS: usize = 8;
/// Runs in level 0 at which writers stop.
const STOP_RUNS: usize = 20;
/// The rate of a writer that is slowed a little, in bytes per second; it falls evenly to nothing.
const SLOW_RATE_BYTES: u64 = 256 << 20;

/// How long a write waits on a full device while compaction goes on.
const SPACE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a deletion waits for room on a full device.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often writers that wait look whether there is room, beside being told.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Spreads the delays of slowed writers evenly.
#[derive(Default)]
pub struct Throttle {
    /// When the next slowed write may go on.
    next_at: Cell<Time>,
}

impl Shard {
    /// Waits until `bytes` of new data may be written.
    ///
    /// # Errors
    /// [`StoreError::OutOfSpace`] where the flash is full; `grows` is false for batches that only delete, which
    /// are taken longer since they make room.
    pub(super) async fn admit(&self, bytes: usize, grows: bool) -> Result<()> {
        self.check_health()?;
        if grows && self.is_full() {
            self.wait_for_space().await?;
        }
        if self.has_room(bytes) && self.level0_runs() <= SLOW_RUNS {
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
            let hopeless = self.compaction_idle.get() && !flushing;
            if hopeless || self.runtime.now() >= give_up {
                return Err(StoreError::OutOfSpace);
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN);
            select(wait, pin!(self.room.notified())).await;
        }
        Ok(())
    }

    async fn wait_for_room(&self, bytes: usize, grows: bool) -> Result<()> {
        let runs = self.level0_runs();
        if runs > SLOW_RUNS {
            let free = STOP_RUNS.saturating_sub(runs).max(1) as u64;
            let rate = SLOW_RATE_BYTES * free / (STOP_RUNS - SLOW_RUNS) as u64;
            let cost_ns = bytes as u64 * 1_000_000_000 / rate.max(1);
            let now = self.runtime.now();
            let at = self.throttle.next_at.get().max(now) + cost_ns;
            self.throttle.next_at.set(at);
            self.runtime.sleep_until(at).await;
        }
        let give_up = self.runtime.now() + PATIENCE;
        loop {
            self.check_health()?;
            if self.has_room(bytes) && self.level0_runs() < STOP_RUNS {
                return Ok(());
            }
            self.make_room();
            let short = self.blocks.free_blocks() < self.budget.last_blocks;
            if short && (grows || self.runtime.now() >= give_up) {
                return Err(StoreError::OutOfSpace);
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN);
            select(wait, pin!(self.room.notified())).await;
        }
    }

    /// Whether memtables, log and flash can take `bytes` now.
    fn has_room(&self, bytes: usize) -> bool {
        let used = self.memtable_bytes();
        // A value larger than the budget is taken when nothing else is in memory.
        let fits = used == 0 || used + bytes <= self.budget.memtables_total_bytes;
        fits && self.log.backlog_bytes() <= self.budget.memtables_total_bytes
            && self.log.live_bytes() <= self.budget.log_bytes + self.budget.log_bytes / 2
            && self.blocks.free_blocks() >= self.budget.last_blocks
    }

    /// The error of a shard that takes no more writes, if it is one.
    fn check_health(&self) -> Result<()> {
        if self.closing.get() {
            return Err(StoreError::Closed);
        }
        if let Some(failure) = self.failure.borrow().as_ref() {
            return Err(failure.clone());
        }
        self.log.check()
    }

    /// Sets to work what gives memory and flash back.
    fn make_room(&self) {
        self.freeze_largest();
        self.work.notify_one();
        self.compaction_idle.set(false);
        self.compact_work.notify_one();
    }

    /// Whether new data is refused for lack of space.
    pub(super) fn is_full(&self) -> bool {
        self.blocks.free_blocks() < self.budget.reserve_blocks
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
            && slice.freeze(self.seq.get())
        {
            self.work.notify_one();
        }
    }
}
