//! One run of clients on a store.

use super::clients::{Client, Phase, SliceClients};
use super::setup::{key_prefix, open, store_layout, store_options};
use super::spread::Spread;
use crate::cell::{Cell, Control, Limits};
use crate::engine::progress::Progress;
use crate::engine::quota::Quota;
use crate::engine::tally::Tally;
use crate::error::LabError;
use crate::layout::LayoutKind;
use crate::outcome::{Outcome, Programs};
use futures_util::future::{try_join, try_join_all};
use softflash_base::random::Rng;
use softflash_base::{SliceId, Time};
use softflash_device::{Device, UnitGeometry};
use softflash_runtime::RuntimeHandle;
use softflash_store::stats::StoreStats;
use softflash_store::{Store, StoreError, StoreLayout};
use softflash_workload::{KvWorkload, Precondition};
use std::iter::repeat;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of values that are preloaded in one transaction.
const PRELOAD_BYTES: u64 = 2 << 20;
/// A store without traffic for this long has completed its compactions.
const QUIET_NS: u64 = 300_000_000;
/// The longest wait for the end of compaction; after it, compaction is assumed never to finish.
const PATIENCE_NS: u64 = 3_600_000_000_000;

/// A run.
pub struct Run<'a> {
    workload: &'a KvWorkload,
    control: &'a Control<'a>,
    limits: Limits,
    precondition: Precondition,
    layout: &'a LayoutKind,
    rng: Rng,
}

/// Observes the device around the measured part.
pub trait Watch {
    /// The measured part begins.
    fn begins(&mut self, now: Time);
    /// The measured part ends.
    ///
    /// # Errors
    /// [`LabError::Simulation`] if the simulated device is in an invalid state.
    fn ended(&mut self, now: Time, outcome: &mut Outcome) -> Result<(), LabError>;
}

impl<'a> Run<'a> {
    /// The run of a cell.
    pub fn new(cell: &'a Cell, workload: &'a KvWorkload, control: &'a Control<'a>) -> Run<'a> {
        Run {
            workload,
            control,
            limits: cell.limits(),
            precondition: cell.parameters.precondition,
            layout: &cell.layout.kind,
            rng: Rng::seeded(cell.seed).fork("kv"),
        }
    }

    /// Opens a store on a new device, fills it, and runs clients on it.
    pub async fn go(
        &self,
        device: Arc<dyn Device>,
        log_apart: bool,
        runtime: RuntimeHandle,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, LabError> {
        let geometry = device.info().geometry;
        let layout = store_layout(self.workload, device.info().units);
        let options = store_options(self.workload, self.layout, layout.shards);
        let stores = open(device, &layout, &options, log_apart, &runtime).await?;
        let testbed = KvTestbed { stores, layout, runtime, geometry };
        let outcome = self.on_store(&testbed, watch).await;
        for store in &testbed.stores {
            store.close().await.map_err(failed)?;
        }
        outcome
    }

    async fn on_store(
        &self,
        testbed: &KvTestbed,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, LabError> {
        let progress = Progress::new(self.control);
        let slices = self.slices(testbed)?;
        if self.precondition != Precondition::None {
            let told = |all| progress.filled(all);
            try_join_all(
                testbed.stores.iter().map(|store| self.preload(testbed, store, &slices, &told)),
            )
            .await?;
            self.settle(testbed).await?;
        }
        let clients = self.clients(&slices)?;
        let spread = Spread::of(&slices);
        let mut outcome = match (self.limits.requests, self.limits.duration_ns) {
            (None, Some(duration_ns)) => {
                self.window(testbed, &clients, duration_ns, &progress, watch).await?
            }
            _ => self.counted(testbed, &clients, &progress, watch).await?,
        };
        outcome.figures.insert("shards".to_owned(), testbed.layout.shards.into());
        outcome.figures.extend(spread.figures());
        Ok(outcome)
    }

    /// Measures a number of requests, from the first submission to the last completion.
    async fn counted(
        &self,
        testbed: &KvTestbed,
        clients: &[Client],
        progress: &Progress<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, LabError> {
        if self.limits.warm_up_ns > 0 {
            let end = testbed.runtime.now() + self.limits.warm_up_ns;
            self.phase(testbed, None, clients, repeat(Quota::until(end)), &|| {}).await?;
        }
        (self.control.on_measuring)();
        let begin = testbed.runtime.now();
        let before = testbed.stats().await?;
        watch.begins(begin);
        let tally = Tally::new(begin);
        let count = clients.len() as u64;
        let quotas = (0..count).map(|client| Quota::share(&self.limits, begin, client, count));
        let told = || progress.measured(&self.limits, begin, testbed.runtime.now());
        self.phase(testbed, Some(&tally), clients, quotas, &told).await?;
        let mut outcome = tally.outcome(self.limits.samples);
        watch.ended(testbed.runtime.now(), &mut outcome)?;
        add_up(&mut outcome, &before, &testbed.stats().await?, testbed.geometry.page_bytes.into());
        Ok(outcome)
    }

    /// Measures a window of this length. The clients start before it and stop after it, so neither
    /// their start nor their end counts.
    async fn window(
        &self,
        testbed: &KvTestbed,
        clients: &[Client],
        duration_ns: u64,
        progress: &Progress<'_>,
        watch: &mut dyn Watch,
    ) -> Result<Outcome, LabError> {
        let begin = testbed.runtime.now() + self.limits.warm_up_ns;
        let end = begin + duration_ns;
        let tally = Tally::within(begin, end);
        let told = || progress.measured(&self.limits, begin, testbed.runtime.now());
        let work = self.phase(testbed, Some(&tally), clients, repeat(Quota::until(end)), &told);
        let watching = async {
            testbed.runtime.sleep_until(begin).await;
            (self.control.on_measuring)();
            watch.begins(begin);
            let before = testbed.stats().await?;
            testbed.runtime.sleep_until(end).await;
            let mut seen = Outcome { simulated_ns: duration_ns, ..Outcome::default() };
            watch.ended(end, &mut seen)?;
            add_up(&mut seen, &before, &testbed.stats().await?, testbed.geometry.page_bytes.into());
            Ok(seen)
        };
        let ((), seen) = try_join(work, watching).await?;
        Ok(tally.outcome(self.limits.samples).with_observed(seen))
    }

    fn slices(&self, testbed: &KvTestbed) -> Result<Vec<Rc<SliceClients>>, LabError> {
        let slice = |slice: u16| {
            let shard = testbed.layout.shard_of_slice(SliceId(slice));
            let keys = self
                .workload
                .key_maker(&key_prefix(&testbed.layout, slice))
                .map_err(|error| LabError::Parameter(error.to_string()))?;
            let store = testbed.stores.get(shard.index()).cloned();
            let store = store.ok_or_else(|| failed(StoreError::Closed))?;
            Ok(Rc::new(SliceClients { store, slice: SliceId(slice), keys, version: 0.into() }))
        };
        (0..testbed.layout.slices).map(slice).collect()
    }

    /// Fills the slices of a shard, each in the order of its keys. They are filled concurrently;
    /// the slice of each next patch is random.
    async fn preload(
        &self,
        testbed: &KvTestbed,
        store: &Store,
        slices: &[Rc<SliceClients>],
        told: &dyn Fn(usize),
    ) -> Result<(), LabError> {
        let ours = |slice: &&Rc<SliceClients>| {
            testbed.layout.shard_of_slice(slice.slice) == store.local_id()
        };
        let mut rng = self.rng.fork("preload").fork(store.local_id().0.to_le_bytes());
        let mut begun: Vec<_> = slices.iter().filter(ours).map(|slice| (slice, 0)).collect();
        while !begun.is_empty() {
            let place = rng.below(begun.len() as u64) as usize;
            let Some((slice, next)) = begun.get_mut(place) else { break };
            *next = self.preload_patch(testbed, slice, *next, told).await?;
            if *next == self.workload.keys() {
                begun.swap_remove(place);
            }
        }
        Ok(())
    }

    /// Writes a patch of keys of a slice, from `first` on, and waits until it is on flash; returns
    /// the next key.
    async fn preload_patch(
        &self,
        testbed: &KvTestbed,
        slice: &SliceClients,
        first: u64,
        told: &dyn Fn(usize),
    ) -> Result<u64, LabError> {
        let KvWorkload { value_bytes, key_bytes, slices, .. } = *self.workload;
        let all = self.workload.keys();
        let mut next = first;
        let (mut batch, mut batch_bytes, mut patch_bytes) = (Vec::new(), 0, 0);
        for key in first..all {
            let value = u64::from(value_bytes.of(key));
            let bytes = value + u64::from(key_bytes);
            if patch_bytes > 0 && patch_bytes + bytes > testbed.patch_bytes() {
                break;
            }
            (batch_bytes, patch_bytes) = (batch_bytes + bytes, patch_bytes + bytes);
            batch.push((key, value));
            told((all * u64::from(slices)).max(1) as usize);
            next = key + 1;
            if batch_bytes >= PRELOAD_BYTES {
                slice.write_some(&batch).await?;
                batch.clear();
                batch_bytes = 0;
            }
        }
        if self.control.stopped() {
            return Err(LabError::Stopped);
        }
        if !batch.is_empty() {
            slice.write_some(&batch).await?;
        }
        slice.store.flush().await.map_err(failed)?;
        Ok(next)
    }

    /// Waits until all flushes and compactions have completed.
    async fn settle(&self, testbed: &KvTestbed) -> Result<(), LabError> {
        let traffic = |stats: &StoreStats| (stats.flash_bytes_read, stats.flash_bytes_written);
        let give_up = testbed.runtime.now() + PATIENCE_NS;
        let mut last = traffic(&testbed.stats().await?);
        loop {
            testbed.runtime.sleep_until(testbed.runtime.now() + QUIET_NS).await;
            let now = traffic(&testbed.stats().await?);
            if now == last {
                return Ok(());
            }
            if testbed.runtime.now() >= give_up {
                return Err(LabError::Simulation("compaction does not finish".to_owned()));
            }
            if self.control.stopped() {
                return Err(LabError::Stopped);
            }
            last = now;
        }
    }

    fn clients(&self, slices: &[Rc<SliceClients>]) -> Result<Vec<Client>, LabError> {
        let mut clients = Vec::new();
        for (number, slice) in (0..).zip(slices) {
            for client in 0..self.workload.clients {
                let source = self.workload.source(number, client, &self.rng);
                let source = source.map_err(|error| LabError::Parameter(error.to_string()))?;
                clients.push(Client::new(Rc::clone(slice), source));
            }
        }
        Ok(clients)
    }

    /// Runs all clients until their quotas are used up.
    async fn phase(
        &self,
        testbed: &KvTestbed,
        tally: Option<&Tally>,
        clients: &[Client],
        quotas: impl Iterator<Item = Quota>,
        told: &dyn Fn(),
    ) -> Result<(), LabError> {
        let KvWorkload { batch, barrier, think_ns, .. } = *self.workload;
        let (runtime, control) = (&testbed.runtime, self.control);
        let phase = Phase { runtime, tally, control, think_ns, told };
        clients.iter().zip(quotas).for_each(|(client, quota)| client.allow(quota));
        if barrier {
            try_join_all(clients.iter().map(|client| client.in_batches(&phase, batch))).await?;
        } else {
            try_join_all(clients.iter().map(|client| client.without_barrier(&phase, batch)))
                .await?;
        }
        Ok(())
    }
}

/// A store in virtual time.
struct KvTestbed {
    stores: Vec<Store>,
    layout: StoreLayout,
    runtime: RuntimeHandle,
    geometry: UnitGeometry,
}

impl KvTestbed {
    /// Bytes of keys and values that always fit into a patch: a superblock minus 3 in 128 for
    /// headers, filters and the overhead of records.
    fn patch_bytes(&self) -> u64 {
        self.geometry.superblock_bytes() / 128 * 125
    }

    async fn stats(&self) -> Result<StoreStats, LabError> {
        match self.stores.first() {
            Some(store) => store.stats().await.map_err(failed),
            None => Ok(StoreStats::default()),
        }
    }
}

/// Adds the store's flash traffic.
fn add_up(outcome: &mut Outcome, before: &StoreStats, after: &StoreStats, page_bytes: u64) {
    let risen = |of: fn(&StoreStats) -> u64| of(after) - of(before);
    let pages = |bytes: u64| bytes / page_bytes;
    let flushed = risen(|stats| stats.flush_bytes_written);
    let compacted = risen(|stats| stats.compaction_bytes_written);
    let written = risen(|stats| stats.flash_bytes_written);
    let metadata = pages(written.saturating_sub(flushed + compacted));
    outcome.programs = Programs {
        host: pages(flushed),
        compaction: pages(compacted),
        metadata,
        // The programs inside a drive.
        ..outcome.programs
    };
    outcome.erases = risen(|stats| stats.device_erases);
    let seconds = (outcome.simulated_ns as f64 / 1e9).max(f64::MIN_POSITIVE);
    let read = risen(|stats| stats.flash_bytes_read);
    let lookups = risen(|stats| stats.flash_lookups) + risen(|stats| stats.memory_hits);
    let hits = risen(|stats| stats.memory_hits) as f64 / lookups.max(1) as f64;
    let figures = [
        ("flash_read_mb_s", read as f64 / seconds / 1e6),
        ("flash_write_mb_s", written as f64 / seconds / 1e6),
        ("flash_mb_s", (read + written) as f64 / seconds / 1e6),
        ("flash_read_share", read as f64 / ((read + written) as f64).max(1.0)),
        ("memory_hit_share", hits),
        ("compactions", risen(|stats| stats.compactions) as f64),
        ("stall_seconds", risen(|stats| stats.stall_us) as f64 / 1e6),
    ];
    outcome.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
}

/// Converts an error of the store to one of the laboratory.
pub fn failed(error: StoreError) -> LabError {
    LabError::Simulation(error.to_string())
}
