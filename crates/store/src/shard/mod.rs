//! A shard: the partition of the store that one core owns, with a log, slices, and units. It shares
//! no state with other threads.

pub mod admission;
pub mod background;
pub mod budget;
mod cache_room;
mod clear;
pub mod clock;
pub mod commit;
pub mod compact;
pub(crate) mod decisions;
pub(crate) mod examination;
pub mod flush;
pub mod gate;
pub mod log;
mod merge_pace;
pub mod open;
mod parity;
pub mod pending_outputs;
pub mod read;
mod rebuild;
pub mod recovery;
mod repair_edits;
mod replay;
pub mod scan;
mod scrub;
pub mod snapshots;
#[cfg(test)]
mod tests;
pub mod transactions;
pub(crate) mod values;
pub mod watch;
mod writes;

pub(crate) use commit::ReadMark;
pub(crate) use read::Read;
pub use scan::ScanPage;
pub use watch::WatchToken;
pub(crate) use writes::Writes;

use crate::error::{Result, StoreError};
use crate::kv::cache::ReadCache;
use crate::kv::patch::Patch;
use crate::kv::scan_readahead::ScanReadahead;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::layout::StoreLayout;
use crate::options::{Durability, StoreOptions};
use crate::stats::StoreStats;
use admission::Throttle;
use budget::Budget;
use clear::PendingClears;
use clock::ExpiryClock;
use gate::Gate;
use log::Log;
use merge_pace::MergePace;
use pending_outputs::PendingOutputs;
use recovery::Recovered;
use snapshots::Snapshots;
use softflash_base::{ShardId, SliceId};
use softflash_blocks::BlockLayer;
use softflash_ftl::UnitTelemetry;
use softflash_runtime::{Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use transactions::Transactions;
use values::{Collector, ValueLog};
use watch::Watches;

/// One shard.
pub struct Shard {
    id: ShardId,
    layout: StoreLayout,
    options: StoreOptions,
    budget: Budget,
    runtime: RuntimeHandle,
    blocks: BlockLayer,
    log: Log,
    values: ValueLog,
    collector: Collector,
    slices: Vec<Slice>,
    pub(crate) gate: Gate,
    clock: Rc<ExpiryClock>,
    transactions: Transactions,
    pending_outputs: PendingOutputs,
    throttle: Throttle,
    /// Throttles writers of separated values to the rate of the collector.
    throttle_values: Throttle,
    merge_pace: MergePace,
    history: History,
    caches: Caches,
    tasks: Tasks,
    counters: Counters,
    /// Units that were restored from an old image.
    stale_units: u64,
}

/// The sequence of the shard's writes, and the objects that depend on it.
struct History {
    /// The sequence number of the last batch.
    seq: Cell<u64>,
    snapshots: Snapshots,
    watches: RefCell<Watches>,
    clears: PendingClears,
}

/// Data kept in memory for later reads.
struct Caches {
    read: RefCell<ReadCache>,
    scans: Rc<ScanReadahead>,
    /// Bytes taken from the spare memory because the shard uses more than its part.
    overdraft_bytes: Cell<u64>,
}

/// The shard's background tasks, and their signals.
#[derive(Default)]
struct Tasks {
    /// A memtable may need a flush.
    flush: Notify,
    /// A slice may need a compaction.
    compact: Notify,
    /// A value block may need the collector.
    collect: Notify,
    /// Wakes the scrub when the shard closes.
    scrub: Notify,
    /// Compaction has no work.
    compaction_idle: Cell<bool>,
    /// Memory or flash space was freed.
    room: Notify,
    /// The number of running tasks.
    running: Cell<usize>,
    closing: Cell<bool>,
    /// The error that stopped background work.
    failure: RefCell<Option<StoreError>>,
}

/// The counters of [`StoreStats`] that no component of the shard keeps.
#[derive(Default)]
struct Counters {
    host_bytes: Cell<u64>,
    flush_bytes: Cell<u64>,
    compaction_bytes: Cell<u64>,
    memory_hits: Cell<u64>,
    flash_lookups: Cell<u64>,
    false_positives: Cell<u64>,
    flushes: Cell<u64>,
    compactions: Cell<u64>,
    stall_us: Cell<u64>,
    refused_writes: Cell<u64>,
    data_losses: Cell<u64>,
    patrols: Cell<u64>,
    patrolled_bytes: Cell<u64>,
    refreshed_bytes: Cell<u64>,
}

/// The smallest reserve of blocks: two each for the log, a flush and the collector, and two more
/// for blocks that fail.
const LEAST_RESERVE: usize = 8;

/// Adds to a counter.
fn count(counter: &Cell<u64>, by: u64) {
    counter.set(counter.get() + by);
}

impl Shard {
    /// A shard with the recovered state.
    fn new(
        id: ShardId,
        (layout, options, budget): (StoreLayout, StoreOptions, Budget),
        (runtime, clock): (RuntimeHandle, Rc<ExpiryClock>),
        blocks: BlockLayer,
        recovered: Recovered,
    ) -> Shard {
        let Recovered { slices, resume, next_transaction, commits, stale_units, values, .. } =
            recovered;
        let seq = resume.seq;
        let values = ValueLog::new(id, blocks.clone(), runtime.clone(), options.durability, values);
        let log = Log::new(
            id,
            blocks.clone(),
            runtime.clone(),
            Rc::clone(&clock),
            values.clone(),
            options.durability,
            resume,
        );
        Shard {
            id,
            gate: Gate::default(),
            pending_outputs: PendingOutputs::default(),
            transactions: Transactions::new(next_transaction, commits, layout.shards),
            history: History {
                seq: Cell::new(seq),
                snapshots: Snapshots::default(),
                watches: RefCell::new(Watches::new(options.watch_sweep)),
                clears: PendingClears::default(),
            },
            caches: Caches {
                read: RefCell::default(),
                scans: Rc::new(ScanReadahead::new(budget.scan_readahead_bytes)),
                overdraft_bytes: Cell::new(0),
            },
            layout,
            options,
            budget,
            runtime,
            blocks,
            log,
            values,
            collector: Collector::default(),
            slices,
            clock,
            throttle: Throttle::default(),
            throttle_values: Throttle::default(),
            merge_pace: MergePace::default(),
            tasks: Tasks::default(),
            counters: Counters::default(),
            stale_units: stale_units.len() as u64,
        }
    }

    /// The shard's log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The shard's value log.
    pub(crate) fn value_log(&self) -> &ValueLog {
        &self.values
    }

    /// The last sequence number given.
    pub(crate) fn last_seq(&self) -> u64 {
        self.history.seq.get()
    }

    /// The shard's id.
    pub fn id(&self) -> ShardId {
        self.id
    }

    /// The shard's blocks.
    pub fn blocks(&self) -> &BlockLayer {
        &self.blocks
    }

    /// Free blocks below which new data is refused.
    pub fn reserve_blocks(&self) -> u32 {
        if !self.values.is_used() {
            return self.budget.reserve_blocks;
        }
        // A small tree, as that of large values, needs little room for its compaction.
        let tree: usize =
            self.slices.iter().map(|slice| slice.tree.borrow().patches().count()).sum();
        let unwritten = self.memtable_bytes() + self.log.backlog_bytes();
        let flush = unwritten.div_ceil(self.blocks.capacity_bytes());
        let waiting = self.values.waiting_bytes().div_ceil(self.blocks.capacity_bytes());
        let needed = LEAST_RESERVE + tree + 2 * flush;
        let of_tree = self.budget.reserve_blocks as usize;
        u32::try_from(needed.min(of_tree) + waiting).unwrap_or(u32::MAX)
    }

    /// Free blocks below which deletions are refused too.
    pub(crate) fn last_blocks(&self) -> u32 {
        self.budget.last_blocks.min(self.reserve_blocks() / 2)
    }

    /// The number of tokens of watched keys, including orphaned ones.
    pub fn watch_tokens(&self) -> usize {
        self.history.watches.borrow().count()
    }

    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The next sequence number.
    fn next_seq(&self) -> u64 {
        let seq = self.history.seq.get() + 1;
        self.history.seq.set(seq);
        seq
    }

    /// The slice with this id, which must belong to this shard.
    fn slice(&self, id: SliceId) -> Result<&Slice> {
        let first = self.slices.first().map_or(0, |slice| slice.id.0);
        let place = usize::from(id.0.wrapping_sub(first));
        self.slices.get(place).ok_or_else(|| {
            StoreError::Unusable(format!("slice {id} does not belong to shard {}", self.id))
        })
    }

    /// The slice of a key of this shard.
    fn slice_of(&self, key: &[u8]) -> Result<&Slice> {
        match self.slices.as_slice() {
            [only] => Ok(only),
            _ => self.slice(self.layout.slice_of(key)),
        }
    }

    /// Waits until all writes up to `seq` are durable; returns at once where the store's durability
    /// is an interval.
    pub(crate) async fn durable(&self, seq: u64) -> Result<()> {
        match self.options.durability {
            Durability::Flash => self.log.stable(seq).await,
            Durability::Interval(_) => self.log.check(),
        }
    }

    /// Counters and sizes.
    pub(crate) fn stats(&self) -> StoreStats {
        self.fit_cache();
        let units = self.units();
        let counters = &self.counters;
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let patches = || trees.iter().flat_map(|tree| tree.patches());
        StoreStats {
            keys: self.key_estimate(),
            device_reads: units.iter().map(|unit| unit.reads).sum(),
            device_programs: units.iter().map(|unit| unit.programs).sum(),
            device_erases: units.iter().map(|unit| unit.erases).sum(),
            host_bytes_written: counters.host_bytes.get(),
            flash_bytes_written: units.iter().map(|unit| unit.bytes_programmed).sum(),
            flash_bytes_read: units.iter().map(|unit| unit.bytes_read).sum(),
            log_bytes_written: self.log.bytes_written(),
            flush_bytes_written: counters.flush_bytes.get(),
            compaction_bytes_written: counters.compaction_bytes.get(),
            memory_hits: counters.memory_hits.get(),
            flash_lookups: counters.flash_lookups.get(),
            filter_false_positives: counters.false_positives.get(),
            memtable_bytes: self.memtable_bytes() as u64,
            cache_bytes: self.caches.read.borrow().bytes(),
            cache_budget_bytes: self.cache_room(),
            index_bytes: patches().map(|(.., patch)| patch.memory_bytes() as u64).sum::<u64>()
                + self.values.ledger().borrow().memory_bytes(),
            patches: patches().count() as u64,
            value_bytes_written: self.values.written_bytes(),
            value_bytes_collected: self.values.moved_bytes(),
            value_bytes_live: self.values.ledger().borrow().live_bytes(),
            value_blocks: self.values.ledger().borrow().len() as u64,
            log_live_bytes: self.log.live_bytes(),
            superblocks_free: units.iter().map(|unit| u64::from(unit.space.free())).sum(),
            superblocks_total: units.iter().map(|unit| u64::from(unit.space.total())).sum(),
            flushes: counters.flushes.get(),
            compactions: counters.compactions.get(),
            stall_us: counters.stall_us.get(),
            refused_writes: counters.refused_writes.get(),
            data_losses: counters.data_losses.get(),
            patrols: counters.patrols.get(),
            patrolled_bytes: counters.patrolled_bytes.get(),
            refreshed_bytes: counters.refreshed_bytes.get(),
            degraded_blocks: self.blocks.degraded_blocks(),
            parity_blocks: self.blocks.parity_blocks(),
            pinned_blocks: self.blocks.pinned_blocks(),
            lost_units: self.blocks.lost_units(),
            old_units: self.stale_units,
            full: u64::from(self.is_full()),
        }
    }

    /// The unit of each patch of a slice, by run from the newest, in key order.
    pub fn patch_units(&self, slice: SliceId) -> Vec<Vec<u16>> {
        let Some(slice) = self.slices.iter().find(|known| known.id == slice) else {
            return Vec::new();
        };
        let unit = |patch: &Rc<Patch>| {
            self.blocks.superblocks(patch.id()).first().map(|block| block.unit.0)
        };
        let units = |run: &Rc<Run>| run.patches.iter().filter_map(unit).collect();
        slice.tree().runs().map(units).collect()
    }

    /// The shard's units.
    pub(crate) fn units(&self) -> Vec<UnitTelemetry> {
        let flash = self.blocks.flash();
        flash.units().map(|unit| flash.telemetry(unit)).collect()
    }

    fn active_bytes(&self) -> usize {
        self.slices.iter().map(Slice::active_bytes).sum()
    }

    fn memtable_bytes(&self) -> usize {
        self.slices.iter().map(Slice::memtable_bytes).sum()
    }

    /// Makes all writes durable and stops the shard, which refuses later commands.
    pub(crate) async fn close(&self) -> Result<()> {
        if self.tasks.closing.replace(true) {
            return Ok(());
        }
        self.log.abandon_undecided();
        self.tasks.flush.notify_one();
        self.tasks.compact.notify_one();
        self.tasks.scrub.notify_one();
        self.tasks.collect.notify_one();
        self.blocks.degraded_bell().notify_one();
        while self.tasks.running.get() > 0 {
            self.tasks.room.notified().await;
        }
        self.shorten_log().await;
        let closed = self.log.close().await;
        self.values.close();
        self.blocks.flash().stop();
        self.blocks.log_flash().stop();
        closed
    }
}
