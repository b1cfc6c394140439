//! Admission of writes, by memory, free space, and the backlog of compaction.

use crate::error::{Result, StoreError};
use crate::kv::compaction::leveled::GATHERED_RUNS;
use crate::shard::Shard;
use crate::shard::counters::StallCause;
use crate::shard::resources::fullness::FreeSpace;
use crate::shard::resources::limits::Limits;
use futures_util::future::select;
use softflash_base::Time;
use softflash_base::planted::{self, Bug};
use softflash_blocks::space::BLOCKS_OF_LOG;
use softflash_runtime::yield_now;
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// Runs in level 0 above which writers are throttled.
const SLOW_RUNS: usize = 22;
/// Runs in level 0 at which writers stop.
const STOP_RUNS: usize = 34;
/// The assumed flush rate before the first measurement, in bytes per second: between that of a
/// modelled array and that of a drive.
const FIRST_DRAIN_BYTES: f64 = (64 << 20) as f64;
/// The minimum write rate, as a share of the flush rate. A sleeping writer is not woken when the
/// backlog shrinks, so a lower rate could delay a single value for minutes. The hard limits stop
/// writers by themselves.
const MIN_RATE: f64 = 0.05;
/// The maximum lead of writers over their rate: shorter sleeps cost more than they smooth.
const MAX_LEAD: Duration = Duration::from_millis(1);

/// How long a write waits on a full device while compaction runs. A compaction can be long where
/// many shards share a slow drive, and it frees space only at its end. Without a running compaction
/// no write waits.
const SPACE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a write waits for the collector before memtables are flushed too, so that compaction
/// can drop the versions that their writes supersede.
const PATIENCE: Duration = Duration::from_millis(200);
/// A write waits for space where values expire within this time.
const EXPIRY_WAIT: Duration = Duration::from_secs(1);
/// How long a deletion waits for space on a full device.
const DELETE_TIMEOUT: Duration = Duration::from_secs(10);
/// How often waiting writers check for room, in addition to notifications.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Throttles writers to the rate of the flash, and spreads the delay over all of them.
///
/// The backlog is the used share `f` of the room in memory, log and level 0 beyond the normal
/// level. Writers get `(1 - f) / f` times the flush rate: unlimited at 0, the flush rate at one
/// half, little near 1.
pub struct Throttle {
    /// The time at which all admitted writes would have arrived at their rate.
    paid_until: Cell<Time>,
    /// The flush rate, in bytes per second: as soon as it is measured, bytes of the memory that is
    /// freed, in which writers are charged; until then bytes that go to flash.
    drain_bytes: Cell<f64>,
    is_measured: Cell<bool>,
}

impl Default for Throttle {
    fn default() -> Throttle {
        Throttle {
            paid_until: Cell::default(),
            drain_bytes: Cell::new(FIRST_DRAIN_BYTES),
            is_measured: Cell::new(false),
        }
    }
}

impl Throttle {
    /// `bytes` were drained in `ns`.
    #[cfg(test)]
    pub fn note_flush(&self, bytes: u64, ns: u64) {
        self.is_measured.set(true);
        self.note(bytes as f64, 1.0, ns);
    }

    /// A flush of a memtable took `ns`. Small ones are mostly latency, so each counts by its size;
    /// several of them correct the rate as a full one does.
    pub fn note_part(&self, flushed: Flushed, ns: u64) {
        let Flushed { bytes, written, full } = flushed;
        if written == 0 {
            return;
        }
        let bytes = bytes as f64;
        if !self.is_measured.replace(true) {
            self.drain_bytes.set(self.drain_bytes.get() * bytes / written as f64);
        }
        self.note(bytes, bytes / (full as f64).max(bytes).max(1.0), ns);
    }

    fn note(&self, bytes: f64, weight: f64, ns: u64) {
        let (before, achieved) = (self.drain_bytes.get(), bytes * 1e9 / ns.max(1) as f64);
        self.drain_bytes.set(before + (achieved - before) * weight / 2.0);
    }

    /// The time at which `bytes` may be written at the backlog `share`.
    fn admits_at(&self, now: Time, bytes: usize, share: f64) -> Time {
        let rate = self.drain_bytes.get() * ((1.0 - share) / share).max(MIN_RATE);
        let cost_ns = bytes as f64 * 1e9 / rate.max(1.0);
        let at = self.paid_until.get().max(now) + cost_ns as u64;
        self.paid_until.set(at);
        at
    }
}

/// The flush of a memtable.
#[derive(Debug, Clone, Copy)]
pub struct Flushed {
    /// Bytes of memory that it frees.
    pub bytes: usize,
    /// Bytes of patches that it has written.
    pub written: u64,
    /// Bytes of memory of a full memtable.
    pub full: usize,
}

/// The room that a batch needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// Bytes in memtables.
    pub bytes: usize,
    /// Bytes of them that go to flash.
    pub stored: usize,
    /// Bytes of blocks for its separated values.
    pub separated: usize,
    /// False for a batch that only deletes. It is admitted longer, because it frees space.
    pub grows: bool,
    /// It removes all keys, which needs no space but in the log, and frees all other.
    pub clears: bool,
}

impl Demand {
    /// Of a batch without separated values.
    #[cfg(test)]
    pub fn of(bytes: usize, grows: bool) -> Demand {
        Demand { bytes, stored: bytes, separated: 0, grows, clears: false }
    }
}

impl Shard {
    /// Waits until new data may be written.
    ///
    /// # Errors
    /// [`StoreError::OutOfSpace`] where the flash is full, [`StoreError::WornOut`] where it is worn
    /// out.
    pub(super) async fn admit(&self, demand: Demand) -> Result<()> {
        let admitted = self.wait_until_admitted(demand).await;
        if demand.grows {
            self.fullness.note(&admitted, || self.free_space());
        }
        if let Err(StoreError::OutOfSpace | StoreError::WornOut { .. }) = admitted {
            self.counters.count_refused_write();
        }
        admitted
    }

    /// Values are written without a compaction, which looks at the wear otherwise.
    fn has_work_for_collector(&self) -> bool {
        let space = self.space();
        let levels = space.allows_rebuild() && self.blocks.is_look_at_wear_due();
        levels || space.is_short_for_values()
    }

    async fn wait_until_admitted(&self, demand: Demand) -> Result<()> {
        let Demand { bytes, separated, grows, .. } = demand;
        self.check_health()?;
        if separated > 0 && self.collector.is_idle() && self.has_work_for_collector() {
            self.tasks.request_collection();
        }
        let lacks_space = grows && self.lacks_space(separated);
        let admits_values = separated == 0 || self.admits_values(separated);
        let is_paced = grows && self.merge_pace.is_running();
        let waits = lacks_space || !admits_values || is_paced;
        if !waits && self.has_room(bytes) && self.backlog() <= 0.0 {
            return Ok(());
        }
        let began = self.runtime.now();
        let admitted = self.wait_for_all(demand).await;
        self.counters.count_stall(self.runtime.now().since_ns(began) / 1000);
        admitted
    }

    /// Waits, and counts the time as one for this cause.
    async fn stall<T>(&self, cause: StallCause, wait: impl Future<Output = T>) -> T {
        let began = self.runtime.now();
        let done = wait.await;
        self.counters.count_cause(cause, self.runtime.now().since_ns(began) / 1000);
        done
    }

    async fn wait_for_all(&self, demand: Demand) -> Result<()> {
        let Demand { separated, grows, .. } = demand;
        loop {
            if separated > 0 && !self.admits_values(separated) {
                self.wait_for_values(separated).await?;
            }
            if grows && self.lacks_space(separated) {
                self.stall(StallCause::Space, self.wait_for_space(separated)).await?;
            }
            self.wait_for_room(demand).await?;
            // Others may have taken the space meanwhile.
            if !grows || !self.lacks_space(separated) {
                return Ok(());
            }
        }
    }

    /// Waits while compaction may free space for so many bytes of separated values.
    async fn wait_for_space(&self, separated: usize) -> Result<()> {
        let began = self.runtime.now();
        let deadline = began + SPACE_TIMEOUT;
        let mut has_frozen = !self.values.is_used();
        if has_frozen {
            self.make_room()
        } else {
            self.start_freeing()
        }
        while self.lacks_space(separated) {
            self.check_health()?;
            self.collector.note_wanted(separated);
            if !has_frozen && self.runtime.now() >= began + PATIENCE {
                has_frozen = true;
                self.make_room();
            }
            if has_frozen && self.cannot_free_space() {
                // The collector may have paused for a compaction that has ended since.
                self.tasks.request_collection();
                yield_now().await;
                if self.cannot_free_space() && self.lacks_space(separated) {
                    return Err(self.blocks.lack_of_space().into());
                }
            }
            if self.runtime.now() >= deadline {
                return Err(self.blocks.lack_of_space().into());
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + POLL_INTERVAL);
            select(wait, pin!(self.tasks.room_announced())).await;
        }
        Ok(())
    }

    /// Whether neither flushes, compaction nor the collector are going to free space.
    fn cannot_free_space(&self) -> bool {
        // A flush that lacks space itself waits, too.
        let flushing = self.blocks.free_blocks() > BLOCKS_OF_LOG
            && self.slices.iter().any(|slice| !slice.frozen.borrow().is_empty());
        self.tasks.is_compaction_idle() && !flushing && !self.has_value_garbage(EXPIRY_WAIT)
    }

    /// Whether the value log takes `bytes` at once, and nobody waits for that.
    fn admits_values(&self, bytes: usize) -> bool {
        self.values_turn.available() > 0 && !self.values_wait(bytes)
    }

    fn values_wait(&self, bytes: usize) -> bool {
        self.values_are_written_late(bytes) || self.awaits_collector(bytes)
    }

    /// Whether so many values wait for their device writes that `bytes` have to wait.
    fn values_are_written_late(&self, bytes: usize) -> bool {
        let waiting = self.values.waiting_bytes();
        waiting > 0 && waiting + bytes > self.budget.values_waiting_bytes
    }

    /// Whether the collector has to gain space before `bytes` of values are taken. A larger value
    /// takes space ahead, which later ones wait for.
    fn awaits_collector(&self, bytes: usize) -> bool {
        self.space().of_values() < bytes.min(self.blocks.capacity_bytes()) as u64
    }

    /// Waits until the value log has room for `bytes`, in order of arrival: writers get the space
    /// that the collector gains, as it gains it.
    async fn wait_for_values(&self, bytes: usize) -> Result<()> {
        let turn = self.values_turn.acquire(1);
        let _turn = self.stall(StallCause::Cleaning, turn).await;
        let deadline = self.runtime.now() + SPACE_TIMEOUT;
        loop {
            self.check_health()?;
            let mut cause = StallCause::Values;
            if !self.values_are_written_late(bytes) {
                cause = StallCause::Cleaning;
                if !self.awaits_collector(bytes) || self.runtime.now() >= deadline {
                    return Ok(());
                }
                self.tasks.request_collection();
                if self.collector.is_idle() {
                    // It wakes up, or finds that it cannot gain any: then the hard limit counts.
                    yield_now().await;
                    if self.collector.is_idle() {
                        return Ok(());
                    }
                }
            }
            let wait = self.runtime.sleep_until(self.runtime.now() + POLL_INTERVAL);
            let progress = self.values.progress().notified();
            self.stall(cause, select(wait, pin!(progress))).await;
        }
    }

    async fn wait_for_room(&self, demand: Demand) -> Result<()> {
        let Demand { bytes, stored, grows, clears, .. } = demand;
        let (now, share) = (self.runtime.now(), self.backlog());
        let (mut at, mut cause) = (now, self.room_cause());
        if share > 0.0 && share < 1.0 {
            let charged = if self.throttle.is_measured.get() { bytes } else { stored };
            at = self.throttle.admits_at(now, charged, share);
        }
        if grows && self.merge_pace.is_running() {
            let paced = self.merge_pace.admits_at(now, stored, self.room_bytes());
            if paced > at {
                (at, cause) = (paced, StallCause::Merge);
            }
        }
        if at > now + MAX_LEAD {
            self.stall(cause, self.runtime.sleep_until(at)).await;
        }
        let deadline = self.runtime.now() + DELETE_TIMEOUT;
        let mut next_request = self.runtime.now();
        loop {
            self.check_health()?;
            let has_room = if clears { self.has_memory(bytes) } else { self.has_room(bytes) };
            if has_room && (clears || self.level0_runs() < STOP_RUNS) {
                return Ok(());
            }
            // Not in every iteration: a compaction without work also wakes the waiting writers.
            if self.runtime.now() >= next_request {
                self.make_room();
                next_request = self.runtime.now() + POLL_INTERVAL;
            }
            let short = self.blocks.free_blocks() < self.last_blocks();
            if short && (grows || self.runtime.now() >= deadline) {
                return Err(self.blocks.lack_of_space().into());
            }
            let cause = if short { StallCause::Space } else { self.room_cause() };
            let wait = self.runtime.sleep_until(self.runtime.now() + POLL_INTERVAL);
            self.stall(cause, select(wait, pin!(self.tasks.room_announced()))).await;
        }
    }

    /// Bytes that writers can take until the end of the running merge.
    fn room_bytes(&self) -> u64 {
        let kept = self.reserve_blocks() as usize + self.merge_pace.blocks_to_take();
        let blocks = (self.blocks.free_blocks() as usize).saturating_sub(kept);
        blocks as u64 * self.blocks.capacity_bytes() as u64
    }

    /// The backlog of memory, log and level 0: 0 where throttling starts, 1 where writers stop.
    fn backlog(&self) -> f64 {
        self.backlogs().into_iter().map(|(_, backlog)| backlog).fold(f64::MIN, f64::max)
    }

    /// Which of memory, log and level 0 holds writers back most.
    fn room_cause(&self) -> StallCause {
        let largest = self.backlogs().into_iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        largest.map_or(StallCause::Memory, |(cause, _)| cause)
    }

    fn backlogs(&self) -> [(StallCause, f64); 3] {
        let Limits { freeze_bytes, memtables_total_bytes, log_bytes, .. } = self.limits();
        let between = |value: u64, slow: u64, stop: u64| {
            (value as f64 - slow as f64) / stop.saturating_sub(slow).max(1) as f64
        };
        // One memtable fills while another is flushed: this is the normal level.
        let memory = self.unwritten_bytes() as u64;
        let memory = between(memory, freeze_bytes as u64, memtables_total_bytes as u64);
        let log = between(self.log.live_bytes(), log_bytes, log_bytes + log_bytes / 2);
        let runs = between(self.level0_runs() as u64, SLOW_RUNS as u64, STOP_RUNS as u64);
        [(StallCause::Memory, memory), (StallCause::Log, log), (StallCause::Runs, runs)]
    }

    /// Bytes of memtables and of pending log events, which are a second copy in memory.
    pub(in crate::shard) fn unwritten_bytes(&self) -> usize {
        self.slices.memtable_bytes() + self.log.backlog_bytes()
    }

    /// Whether memtables, log and flash have room for `bytes`.
    fn has_room(&self, bytes: usize) -> bool {
        self.has_memory(bytes) && self.blocks.free_blocks() >= self.last_blocks()
    }

    /// Whether memtables and log have room for `bytes`.
    fn has_memory(&self, bytes: usize) -> bool {
        let Limits { memtables_total_bytes: total, log_bytes, .. } = self.limits();
        // A value larger than the budget is admitted when the memtables are empty.
        let alone = self.slices.memtable_bytes() == 0 && !planted::bug(Bug::LargeValueNotExempt);
        let fits = alone || self.unwritten_bytes() + bytes <= total;
        fits && self.log.backlog_bytes() <= total
            && self.log.live_bytes() <= log_bytes + log_bytes / 2
    }

    /// Whether memtables and log have room for a value that the collector moves.
    pub(super) fn has_room_to_move(&self) -> bool {
        let Limits { memtables_total_bytes, log_bytes, .. } = self.limits();
        self.unwritten_bytes() <= memtables_total_bytes
            && self.log.live_bytes() <= log_bytes + log_bytes / 2
    }

    /// The error of a shard that has failed or closes.
    pub(in crate::shard) fn check_health(&self) -> Result<()> {
        if self.tasks.is_closing() {
            return Err(StoreError::Closed);
        }
        self.failure().map_or(Ok(()), Err)
    }

    /// The error because of which the shard refuses all writes.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.tasks.failure().or_else(|| self.log.check().err())
    }

    pub(in crate::shard) fn has_failed(&self) -> bool {
        self.failure().is_some()
    }

    /// Starts the tasks that free memory and flash space.
    fn make_room(&self) {
        self.freeze_largest();
        self.start_freeing();
    }

    /// Wakes compaction. It counts as working at once: a writer that looks before it runs must not
    /// find that nothing can free space.
    pub(in crate::shard) fn wake_compaction(&self) {
        self.tasks.set_compaction_idle(false);
        self.tasks.request_compaction();
    }

    /// As [`make_room`](Self::make_room), without a flush: the patch of a small memtable takes a
    /// whole block.
    fn start_freeing(&self) {
        self.tasks.request_flush();
        self.wake_compaction();
        if self.values.is_used() {
            self.collector.set_idle(false);
            self.tasks.request_collection();
        }
    }

    /// Whether new data is refused for lack of space.
    pub(in crate::shard) fn is_full(&self) -> bool {
        self.lacks_space(0)
    }

    /// As [`is_full`](Self::is_full), or because the last write was refused.
    pub(in crate::shard) fn refuses_new_data(&self) -> bool {
        self.is_full() || self.fullness.refuses(|| self.free_space())
    }

    fn free_space(&self) -> FreeSpace {
        let (free, kept) = (self.blocks.free_blocks(), self.reserve_blocks());
        FreeSpace { shard: self.id, free, kept, is_short: self.space_is_short() }
    }

    /// Whether there is no space for new data with so many bytes of separated values, which may be
    /// a multiple of the reserve.
    fn lacks_space(&self, separated: usize) -> bool {
        self.space().lacks(separated)
    }

    /// Whether free space is so short that compaction should free some.
    pub(in crate::shard) fn space_is_short(&self) -> bool {
        let reserve = self.reserve_blocks();
        self.blocks.free_blocks() <= reserve + reserve / 8
    }

    /// Free blocks above the reserve and a part of it, which is for the flushes during a merge.
    pub(in crate::shard) fn spare_blocks(&self) -> usize {
        let reserve = self.reserve_blocks();
        // A merge holds the blocks of level 0 of its slice and of a part, and writers get as many
        // blocks as it frees.
        let runs = self.slices.iter().map(|slice| slice.tree.borrow().level0_patches());
        let freed = runs.sum::<usize>() / self.slices.len().max(1);
        let kept = (reserve + reserve / 8 + self.budget.part_blocks) as usize + 2 * freed;
        (self.blocks.free_blocks() as usize).saturating_sub(kept)
    }

    /// Whether level 0 has more runs than gather while compaction keeps up.
    pub(super) fn compaction_lags(&self) -> bool {
        let level0_runs = self.budget.level0_runs;
        let kept = if self.spare_blocks() == 0 { level0_runs } else { GATHERED_RUNS };
        self.level0_runs() > kept + level0_runs
    }

    fn level0_runs(&self) -> usize {
        self.slices.iter().map(|slice| slice.tree.borrow().level0_runs()).max().unwrap_or(0)
    }

    /// Freezes the largest memtable for a flush.
    pub(in crate::shard) fn freeze_largest(&self) {
        let largest = self.slices.iter().max_by_key(|slice| slice.active_bytes());
        if let Some(slice) = largest
            && slice.frozen.borrow().is_empty()
            && slice.freeze(self.history.seq())
        {
            self.tasks.request_flush();
        }
    }
}

#[cfg(test)]
mod tests;
