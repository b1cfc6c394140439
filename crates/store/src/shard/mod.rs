//! A shard: the partition of the store that one core owns, with a log, slices, and units. It shares
//! no state with other threads.

pub mod clock;
mod counters;
mod draining;
mod joining;
pub mod log;
mod maintenance;
mod read;
pub(crate) mod recovery;
pub(crate) mod resources;
mod slices;
#[cfg(test)]
mod tests;
mod transactions;
pub(crate) mod values;
mod write;

pub(crate) use maintenance::parity::ParityKeeper;
pub(crate) use maintenance::repair_edits::RepairEdits;
pub(crate) use read::lookup::{Read, Reader, content_of, fragments_of};
pub(crate) use read::random_key::RandomKeys;
pub use read::scan::ScanPage;
pub(crate) use read::scan::Scanner;
pub(crate) use transactions::coordinator::{Coordinator, Decided};
pub(crate) use transactions::participant::Participant;
pub(crate) use transactions::read_mark::ReadMark;
pub use transactions::watch::WatchToken;
pub(crate) use write::commit::Committer;
pub(crate) use write::writes::Writes;

use crate::capacity::{Capacity, FlashSize};
use crate::error::Result;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::kv::tree::Run;
use crate::layout::StoreLayout;
use crate::options::StoreOptions;
use crate::spare::SpareMemory;
use crate::stats::{KeyCount, Stalls, StoreStats};
use crate::value::MAX_VALUE_BYTES;
use bytes::Bytes;
use clock::ExpiryClock;
use counters::Counters;
use log::Log;
use maintenance::pending_outputs::PendingOutputs;
use maintenance::tasks::Tasks;
use read::expirations::Expirations;
use recovery::Recovered;
use resources::budget::Budget;
use resources::cache_room::CacheRoom;
use resources::caches::Caches;
use resources::fullness::Fullness;
use resources::large_reads::LargeReads;
use resources::limits::{LastLimits, Limits};
use resources::space::Space;
use slices::Slices;
use softflash_base::{ShardId, SliceId, cast};
use softflash_blocks::BlockLayer;
use softflash_ftl::{ProgramBytes, UnitTelemetry};
use softflash_runtime::{ByteSemaphore, RuntimeHandle};
use std::rc::Rc;
use std::time::Duration;
use transactions::gate::Gate;
use transactions::history::History;
use transactions::table::Transactions;
use values::{Collector, ValueLog};
use write::admission::Throttle;
use write::merge_pace::MergePace;

/// One shard.
pub struct Shard {
    id: ShardId,
    layout: StoreLayout,
    options: StoreOptions,
    budget: Budget,
    last_limits: LastLimits,
    runtime: RuntimeHandle,
    blocks: BlockLayer,
    log: Log,
    values: ValueLog,
    collector: Collector,
    slices: Slices,
    gate: Gate,
    /// The turn of this thread's work on many keys that needs gates.
    long_turn: ByteSemaphore,
    /// The places of this thread's long work that is under way.
    long_work: ByteSemaphore,
    clock: Rc<ExpiryClock>,
    transactions: Transactions,
    pending_outputs: PendingOutputs,
    throttle: Throttle,
    /// The turn of the writer of separated values that waits for space first.
    values_turn: ByteSemaphore,
    merge_pace: MergePace,
    history: History,
    caches: Caches,
    large_reads: LargeReads,
    tasks: Tasks,
    counters: Counters,
    fullness: Fullness,
    expirations: Expirations,
    /// Units that were restored from an old image.
    stale_units: u64,
}

/// Pieces of long work that a thread has under way: several, so that their reads of flash overlap.
const LONG_WORK: u64 = 4;

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
        let values = ValueLog::new(id, blocks.clone(), runtime.clone(), &options, values);
        let log = Log::new(
            id,
            blocks.clone(),
            runtime.clone(),
            Rc::clone(&clock),
            values.clone(),
            options.durability,
            resume,
        );
        options.frame_bytes.into_iter().for_each(|bytes| log.limit_frames(bytes));
        Shard {
            id,
            gate: Gate::default(),
            long_turn: ByteSemaphore::new(1),
            long_work: ByteSemaphore::new(LONG_WORK),
            pending_outputs: PendingOutputs::default(),
            transactions: Transactions::new(next_transaction, commits, layout.shards),
            history: History::new(seq, options.watch_sweep),
            caches: Caches::new(budget.scan_readahead_bytes),
            large_reads: LargeReads::new(runtime.clone(), options.spare.clone(), layout.shards),
            slices: Slices::new(id, layout.clone(), slices),
            layout,
            collector: Collector::new(options.value_victim, id),
            options,
            budget,
            last_limits: LastLimits::default(),
            runtime,
            blocks,
            log,
            values,
            clock,
            throttle: Throttle::default(),
            values_turn: ByteSemaphore::new(1),
            merge_pace: MergePace::default(),
            tasks: Tasks::default(),
            counters: Counters::default(),
            fullness: Fullness::default(),
            expirations: Expirations::default(),
            stale_units: stale_units.len() as u64,
        }
    }

    /// The shard's log.
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// The turn of this thread's work on many keys that needs gates, of this shard or of others.
    pub(crate) fn long_turn(&self) -> &ByteSemaphore {
        &self.long_turn
    }

    /// The places of this thread's long work that is under way, on this shard or on others.
    pub(crate) fn long_work(&self) -> &ByteSemaphore {
        &self.long_work
    }

    /// The shard's gate.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The shard's value log.
    pub(crate) fn value_log(&self) -> &ValueLog {
        &self.values
    }

    /// The last sequence number given.
    pub(crate) fn last_seq(&self) -> u64 {
        self.history.seq()
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
        self.space().reserve()
    }

    /// Free blocks below which deletions are refused too.
    pub(crate) fn last_blocks(&self) -> u32 {
        self.space().last_reserve()
    }

    /// The number of tokens of watched keys, including orphaned ones.
    pub fn watch_tokens(&self) -> usize {
        self.history.watch_tokens()
    }

    pub(crate) fn layout(&self) -> &StoreLayout {
        &self.layout
    }

    /// The memory that its owner has for requests and replies.
    pub(crate) fn spare(&self) -> &SpareMemory {
        &self.options.spare
    }

    /// The most bytes of a new value.
    pub(crate) fn max_value_bytes(&self) -> usize {
        self.options.max_value_bytes.min(MAX_VALUE_BYTES)
    }

    pub(crate) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// The shard's slices.
    pub(crate) fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// The limits of memtables and log at this free space.
    fn limits(&self) -> Limits {
        self.last_limits.at(&self.budget, self.blocks.free_blocks())
    }

    /// Free blocks and their reserves.
    fn space(&self) -> Space<'_> {
        let Shard { blocks, budget, slices, log, values, collector, .. } = self;
        Space { blocks, budget, limits: self.limits(), slices, log, values, collector }
    }

    /// The caches and their room.
    fn cache_room(&self) -> CacheRoom<'_> {
        let Shard { caches, slices, log, values, budget, .. } = self;
        let (spare, shards) = (&self.options.spare, self.layout.shards);
        CacheRoom { caches, slices, log, values, budget, spare, shards }
    }

    /// Shrinks the read cache to its room, after something else has grown.
    pub(crate) fn fit_cache(&self) {
        self.cache_room().fit();
    }

    /// Whether something can be taken back from value blocks now or within this time.
    fn has_value_garbage(&self, within: Duration) -> bool {
        let by_ms = self.now_ms() + within.as_millis() as u64;
        self.collector.has_garbage(&self.values.ledger().borrow(), by_ms)
    }

    /// Registers a token that is marked when the key is written.
    pub(crate) async fn watch(&self, key: Bytes, token: WatchToken) {
        self.gate.pass().await;
        // The expiry of a watched key counts as a change only once a command reads or writes the
        // key; `EXEC` reads it.
        self.history.watch(key, token);
    }

    /// The number of keys; see [`key_count`].
    pub(crate) async fn key_count(&self) -> KeyCount {
        self.gate.pass().await;
        self.key_estimate()
    }

    /// As [`key_count`](Self::key_count), for the holder of the gate.
    pub(crate) fn key_estimate(&self) -> KeyCount {
        read::key_count::key_estimate(&self.slices)
    }

    /// Counters and sizes.
    pub(crate) fn stats(&self) -> StoreStats {
        self.fit_cache();
        let units = self.units();
        let trees: Vec<_> = self.slices.iter().map(Slice::tree).collect();
        let patches = || trees.iter().flat_map(|tree| tree.patches());
        let count = self.key_estimate();
        let mut programmed = ProgramBytes::default();
        units.iter().for_each(|unit| programmed.add(&unit.programmed));
        StoreStats {
            keys: count.keys,
            expiring_keys: count.expiring,
            device_reads: units.iter().map(|unit| unit.reads).sum(),
            device_programs: units.iter().map(|unit| unit.programs).sum(),
            device_erases: units.iter().map(|unit| unit.erases).sum(),
            flash_bytes_written: programmed.total(),
            program_bytes_host: programmed.host,
            program_bytes_log: programmed.log,
            program_bytes_flush: programmed.flush,
            program_bytes_compaction: programmed.compaction,
            program_bytes_collection: programmed.collection,
            program_bytes_parity: programmed.parity,
            program_bytes_refresh: programmed.refresh,
            program_bytes_levelling: programmed.levelling,
            program_bytes_rebuild: programmed.rebuild,
            program_bytes_map: programmed.map,
            program_bytes_header: programmed.header,
            flash_bytes_read: units.iter().map(|unit| unit.bytes_read).sum(),
            log_bytes_written: self.log.bytes_written(),
            memtable_bytes: self.slices.memtable_bytes() as u64,
            cache_bytes: self.caches.read_bytes(),
            cache_budget_bytes: self.cache_room().room_bytes(),
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
            usable_bytes: self.capacity().usable_bytes,
            degraded_blocks: self.blocks.degraded_blocks(),
            parity_blocks: self.blocks.parity_blocks(),
            pinned_blocks: self.blocks.pinned_blocks(),
            lost_units: self.blocks.lost_units(),
            old_units: self.stale_units,
            draining_bytes: self.bytes_on(&self.blocks.draining_units()),
            full: u64::from(self.refuses_new_data()),
            keys_expired: self.expirations.count(),
            clock_lead_ms: self.clock.lead_ms(),
            ..self.counters.stats()
        }
    }

    /// The time for which admission delayed writers, by cause.
    pub(crate) fn stalls(&self) -> Stalls {
        self.counters.stalls()
    }

    /// The space of the shard if it were empty.
    fn capacity(&self) -> Capacity {
        let units = self.units();
        let good = units.iter().map(|unit| unit.space.total() - unit.space.bad).sum::<u32>();
        let superblocks_of_unit = good / cast::saturating_u32(units.len()).max(1);
        let payload_bytes = cast::wide(self.blocks.capacity_bytes());
        let flash = FlashSize { superblocks_of_unit, payload_bytes };
        Capacity::of_shard(&self.layout_now(), &self.options, flash, self.id)
    }

    /// The layout with the units that this shard has now.
    fn layout_now(&self) -> StoreLayout {
        let mut layout = self.layout.clone();
        if let Some(units) = layout.units.get_mut(self.id.index()) {
            *units = self.blocks.flash().units();
        }
        layout
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
        flash.units().iter().map(|unit| flash.telemetry(unit)).collect()
    }

    /// Makes all writes durable and stops the shard, which refuses later commands.
    pub(crate) async fn close(&self) -> Result<()> {
        if !self.tasks.begin_closing() {
            return Ok(());
        }
        self.log.abandon_undecided();
        self.tasks.wake_all();
        self.blocks.degraded_bell().notify_one();
        self.tasks.all_ended().await;
        self.shorten_log().await;
        let closed = self.log.close().await;
        self.values.close();
        self.blocks.flash().stop();
        self.blocks.log_flash().stop();
        closed
    }
}
