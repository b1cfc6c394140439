//! A block layer on a modelled array, in virtual time.

use softflash_base::ShardId;
use softflash_blocks::{BlockLayer, Redundancy};
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_flash::Flash;
use softflash_ftl::FtlConfig;
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use std::sync::Arc;

/// An array of four units, each of `superblocks` superblocks of `kib` KiB.
pub fn array(superblocks: u32, kib: u32) -> Arc<dyn Device> {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = superblocks;
    // Four blocks, one of each plane, make a superblock of pages of 4 KiB.
    config.array.geometry.pages_per_block = kib / 16;
    Arc::new(ModelDevice::in_memory(config).unwrap())
}

/// Runs with the blocks of an array of superblocks of 256 KiB.
pub fn on_blocks<R>(
    redundancy: Redundancy,
    test: impl AsyncFnOnce(&BlockLayer, &RuntimeHandle) -> R,
) -> R {
    let device = array(16, 256);
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    executor.block_on(async {
        let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
        let mounted = Flash::mount(queue, FtlConfig::default(), runtime.clone()).await;
        let (flash, inventory) = mounted.unwrap();
        let uuid = device.info().uuid;
        let (blocks, _) = BlockLayer::new(flash, ShardId(0), uuid, &inventory, redundancy);
        test(&blocks, &runtime).await
    })
}
