//! A testbed: a store on a simulated flash array in virtual time, opened repeatedly.

use softflash_base::Time;
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::{Store, StoreLayout, StoreOptions, open_all};
use std::sync::Arc;

/// Default wall clock at the start of a session.
const WALL_MS: u64 = 1_000_000;

/// Configuration of a testbed.
pub struct VirtualTestbed {
    /// The array, which keeps its data between sessions.
    pub device: Arc<ModelDevice>,
    /// Layout of the store.
    pub layout: StoreLayout,
    /// Options of the next session.
    pub options: StoreOptions,
}

impl VirtualTestbed {
    /// 4 channels of `superblocks` superblocks of 1 MiB each, in as many slices as shards.
    pub fn new(shards: u16, superblocks: u32) -> VirtualTestbed {
        let mut config = ModelConfig::model();
        config.array.geometry.blocks_per_plane = superblocks;
        config.array.geometry.pages_per_block = 64;
        let device = Arc::new(ModelDevice::in_memory(config).unwrap());
        let units = device.info().units;
        VirtualTestbed {
            device,
            layout: StoreLayout::new(shards, shards, units),
            options: StoreOptions { memory_bytes: 4 << 20, ..StoreOptions::default() },
        }
    }

    /// Opens the store, runs `work`, and drops everything; returns the end time.
    pub fn session<R>(&self, work: impl AsyncFnOnce(&[Store], &RuntimeHandle) -> R) -> (R, Time) {
        self.session_at(WALL_MS, async |stores, runtime, _| work(stores, runtime).await)
    }

    /// As [`session`](VirtualTestbed::session), with a wall clock that starts at `wall_ms` and can
    /// be set.
    pub fn session_at<R>(
        &self,
        wall_ms: u64,
        work: impl AsyncFnOnce(&[Store], &RuntimeHandle, &VirtualExecutor) -> R,
    ) -> (R, Time) {
        let executor = VirtualExecutor::new(wall_ms);
        let runtime = executor.handle();
        let device: Arc<dyn Device> = Arc::clone(&self.device) as Arc<dyn Device>;
        let result = executor.block_on(async {
            let stores = open_all(device, &self.layout, &self.options, &runtime).await.unwrap();
            work(&stores, &runtime, &executor).await
        });
        (result, runtime.now())
    }
}
