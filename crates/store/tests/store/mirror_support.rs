//! Stores with two copies or parity on a modelled array, and their faults.

#![allow(dead_code, reason = "each test uses a part")]
#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::random::Rng;
use softflash_device::{Device, DeviceError, ModelConfig, ModelDevice, Operation};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::check::{CheckReport, Progress, check};
use softflash_store::repair::{self, OnLogLoss, RepairReport};
use softflash_store::{Store, StoreLayout, StoreOptions, open_all};
use softflash_testing::Model;
use softflash_testing::faulty::{Faults, FaultyDevice};
use softflash_testing::model::{key, value};
use std::sync::Arc;
use std::time::Duration;

/// The longest time of a rebuild.
pub const REBUILD: Duration = Duration::from_secs(300);

/// A store with two copies on an array with injected faults.
pub struct Mirror {
    pub device: Arc<ModelDevice>,
    pub faults: Faults,
    pub layout: StoreLayout,
    pub options: StoreOptions,
}

impl Mirror {
    /// `units` units of 60 superblocks of 32 pages, each of one die.
    pub fn new(shards: u16, units: u8) -> Mirror {
        let mut config = ModelConfig::model();
        let geometry = &mut config.array.geometry;
        (geometry.channels, geometry.chips_per_channel, geometry.planes_per_die) =
            (units.into(), 1, 1);
        (geometry.blocks_per_plane, geometry.pages_per_block) = (60, 32);
        let device = Arc::new(ModelDevice::in_memory(config).unwrap());
        let units = device.info().units;
        Mirror {
            device,
            faults: Faults::default(),
            layout: StoreLayout { copies: 2, ..StoreLayout::new(shards, shards, units) },
            options: StoreOptions { memory_bytes: 1 << 20, ..StoreOptions::default() },
        }
    }

    /// As [`new`](Mirror::new), with parity over up to `members` patches instead of copies.
    pub fn with_parity(shards: u16, units: u8, members: u8) -> Mirror {
        let mut mirror = Mirror::new(shards, units);
        (mirror.layout.copies, mirror.layout.parity) = (1, members);
        mirror
    }

    fn device(&self) -> Arc<dyn Device> {
        let device = Arc::clone(&self.device) as Arc<dyn Device>;
        Arc::new(FaultyDevice::new(device, self.faults.clone()))
    }

    /// Opens the store, runs `work` and drops the store, as if the process were killed.
    pub fn session<R>(&self, work: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R) -> R {
        let executor = VirtualExecutor::new(1_000_000);
        let runtime = executor.handle();
        executor.block_on(async {
            let stores =
                open_all(self.device(), &self.layout, &self.options, &runtime).await.unwrap();
            work(&stores, &runtime).await
        })
    }

    /// Fails all later commands to the unit.
    pub fn kill(&self, unit: u16) {
        self.faults.fail_if(move |command| {
            // A flush concerns the whole device.
            let is_flush = matches!(command.operation, Operation::Flush);
            (command.target.unit.0 == unit && !is_flush).then_some(DeviceError::DeadDie)
        });
    }

    /// Repairs offline.
    pub fn repair(&self) -> RepairReport {
        let executor = VirtualExecutor::new(1_000_000);
        let (device, runtime) = (self.device(), executor.handle());
        let plan = repair::plan(&device, &self.layout, &runtime, OnLogLoss::Refuse);
        let plan = executor.block_on(plan);
        drop(executor);
        let executor = VirtualExecutor::new(1_000_000);
        let (device, runtime) = (self.device(), executor.handle());
        executor.block_on(repair::carry_out(&plan, &device, &self.layout, &runtime))
    }

    /// The report of an offline check.
    pub fn check(&self) -> CheckReport {
        let executor = VirtualExecutor::new(1_000_000);
        let progress = Progress::default();
        executor.block_on(check(self.device(), &self.layout, &executor.handle(), &progress))
    }
}

/// Writes and deletes keys, a few hundred KiB in total.
pub async fn write(stores: &[Store], model: &mut Model, random: &mut Rng, count: usize) {
    for number in 0..count {
        let store = &stores[number % stores.len()];
        model.put(store, key(random.below(50)), value(random, 7000)).await;
        if number % 5 == 0 {
            model.delete(store, key(random.below(50))).await;
        }
    }
}

/// Waits until every block has both copies or a whole group.
pub async fn rebuilt(store: &Store, runtime: &RuntimeHandle) {
    let give_up = runtime.now() + REBUILD;
    loop {
        let degraded = store.stats().await.unwrap().degraded_blocks;
        if degraded == 0 {
            return;
        }
        assert!(runtime.now() < give_up, "{degraded} blocks lack a copy");
        runtime.sleep_until(runtime.now() + Duration::from_millis(100)).await;
    }
}

/// Writes and deletes keys, a dozen patches in total.
pub async fn write_more(stores: &[Store], model: &mut Model, random: &mut Rng, count: usize) {
    for number in 0..count {
        let store = &stores[number % stores.len()];
        model.put(store, key(random.below(400)), value(random, 7000)).await;
        if number % 5 == 0 {
            model.delete(store, key(random.below(400))).await;
        }
    }
}

/// Waits until no compaction is under way and no block is pinned.
pub async fn settled(store: &Store, runtime: &RuntimeHandle) {
    let give_up = runtime.now() + REBUILD;
    loop {
        runtime.sleep_until(runtime.now() + Duration::from_secs(1)).await;
        let stats = store.stats().await.unwrap();
        if stats.pinned_blocks == 0 {
            return;
        }
        assert!(runtime.now() < give_up, "{stats:?}");
    }
}

/// With any one unit dead, all keys are found, without time for a rebuild.
pub fn each_unit_may_die(parity: &Mirror, model: &Model) {
    let all = parity.device.info().all_units();
    for unit in &all {
        let image = parity.device.image(all.clone()).unwrap();
        parity.kill(unit);
        parity.session(async |stores, _| model.compare(&stores[0]).await);
        parity.faults.clear();
        parity.device.restore(&image).unwrap();
    }
}

pub async fn close(stores: &[Store]) {
    for store in stores {
        store.close().await.unwrap();
    }
}
