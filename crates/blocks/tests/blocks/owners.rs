//! A block layer on units with superblocks of another owner leaves those alone.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::ShardId;
use softflash_blocks::space::BLOCKS_OF_LOG;
use softflash_blocks::{BlockKind, BlockLayer, Redundancy};
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint, Inventory, Owner, OwnerTag, Ownership};
use softflash_runtime::VirtualExecutor;
use std::sync::Arc;

const PATCH: BlockKind = BlockKind::Patch { slice: 0 };
const OTHER: Owner = Owner { layer: 1, domain: 5 };

/// Mounts the device for an owner and does `work`.
fn mounted<T>(
    device: &Arc<ModelDevice>,
    owner: Owner,
    work: impl AsyncFnOnce(Flash, Inventory) -> T,
) -> T {
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    executor.block_on(async {
        let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
        let (config, owner) = (FtlConfig::default(), Ownership::of(owner));
        let (flash, inventory) = Flash::mount_of(queue, config, owner, runtime).await.unwrap();
        let result = work(flash.clone(), inventory).await;
        flash.stop();
        result
    })
}

#[test]
fn superblocks_of_another_owner_survive_a_block_layer_that_fills_the_device() {
    let device = Arc::new(ModelDevice::in_memory(ModelConfig::small()).unwrap());
    let uuid = device.info().uuid;
    let theirs = mounted(&device, OTHER, async |flash, _| {
        let superblock = flash.allocate(0, OwnerTag([7; 64]), Hint::FLUSH).unwrap();
        let mut page = flash.buffer(flash.page_bytes());
        page.fill(0x5a);
        let (_, appended) = flash.append(&superblock, page, true, Hint::FLUSH).unwrap();
        appended.await.0.unwrap();
        superblock
    });
    mounted(&device, Owner::BLOCKS, async |flash, inventory| {
        let redundancy = Redundancy::None;
        let (blocks, found) = BlockLayer::new(flash, ShardId(0), uuid, &inventory, redundancy);
        assert_eq!(found, []);
        for _ in 0..3 {
            let mut ids = Vec::new();
            while blocks.free_blocks() > BLOCKS_OF_LOG {
                let id = blocks.new_id();
                let pieces = blocks.pieces_of(&[1; 100]);
                blocks.put(id, PATCH, pieces, Hint::FLUSH).await.unwrap();
                ids.push(id);
            }
            ids.into_iter().for_each(|id| blocks.delete(id));
        }
    });
    mounted(&device, OTHER, async |flash, inventory| {
        let found: Vec<_> =
            inventory.superblocks.iter().map(|found| (found.superblock, found.tag)).collect();
        assert_eq!(found, [(theirs, OwnerTag([7; 64]))]);
        let read = flash.read(&theirs, 0, 1, Hint::FOREGROUND).await.unwrap();
        assert!(read.bytes.iter().all(|byte| *byte == 0x5a));
    });
}
