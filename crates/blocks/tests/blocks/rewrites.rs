//! A rewrite of a block of a parity group that a power cut interrupts loses nothing.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use futures_util::future::{Either, select};
use softflash_base::ShardId;
use softflash_blocks::{AntiAffinity, BlockId, BlockKind, BlockLayer, ParityGroup, Redundancy};
use softflash_device::{Device, ModelConfig, ModelDevice};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint, Superblock};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use std::pin::pin;
use std::sync::Arc;

const PATCH: BlockKind = BlockKind::Patch { slice: 0 };
const BYTES: usize = 200_000;

async fn mounted(device: &Arc<ModelDevice>, runtime: &RuntimeHandle) -> BlockLayer {
    let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
    let (flash, inventory) =
        Flash::mount(queue, FtlConfig::default(), runtime.clone()).await.unwrap();
    let uuid = device.info().uuid;
    let redundancy = Redundancy::Parity { members: 2 };
    BlockLayer::new(flash, ShardId(0), uuid, &inventory, redundancy).0
}

/// Writes a group of two patches.
async fn written(blocks: &BlockLayer) -> ParityGroup {
    let mut stripe = blocks.new_stripe().unwrap();
    for byte in [1, 2] {
        let (id, pieces) = (blocks.new_id(), blocks.pieces_of(&vec![byte; BYTES]));
        let anti_affinity = stripe.add(id, &pieces);
        blocks.put_avoiding(id, PATCH, pieces, Hint::FLUSH, &anti_affinity).await.unwrap();
    }
    let group = stripe.close(Hint::FLUSH).await.unwrap();
    blocks.flash().flush(Hint::COMPACTION).await.unwrap();
    blocks.form_group(group.clone());
    group
}

fn parity_of(group: &ParityGroup) -> BlockId {
    BlockId(group.parity)
}

/// The superblocks of the parity before the rewrite and after the next mount, with a cut
/// `after_ns` of the rewrite.
fn cut_in_rewrite(after_ns: u64) -> (Vec<Superblock>, Vec<Superblock>) {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = 16;
    config.array.geometry.pages_per_block = 16;
    let device = Arc::new(ModelDevice::in_memory(config).unwrap());
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    let (group, before) = executor.block_on(async {
        let blocks = mounted(&device, &runtime).await;
        let group = written(&blocks).await;
        let before = blocks.superblocks(parity_of(&group));
        let pieces = blocks.pieces_of(&vec![1 ^ 2; BYTES]);
        let anywhere = AntiAffinity::default();
        let rewrite = blocks.rewrite(
            parity_of(&group),
            BlockKind::Parity,
            pieces,
            Hint::COMPACTION,
            &anywhere,
        );
        let cut = runtime.sleep_until(runtime.now() + after_ns);
        if let Either::Left((outcome, _)) = select(pin!(rewrite), pin!(cut)).await {
            outcome.unwrap();
        }
        (group, before)
    });
    device.power_cut(executor.now(), after_ns).unwrap();
    drop((executor, runtime));

    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    let after = executor.block_on(async {
        let blocks = mounted(&device, &runtime).await;
        blocks.adopt_groups([group.clone()]);
        blocks.settle_rewrites().await;
        assert!(blocks.parity_agrees(&group, Hint::COMPACTION).await, "cut after {after_ns} ns");
        blocks.superblocks(parity_of(&group))
    });
    (before, after)
}

#[test]
fn a_cut_in_a_rewrite_leaves_the_old_block_or_the_whole_new_one() {
    let (mut old, mut new) = (0, 0);
    for step in 0..60 {
        let (before, after) = cut_in_rewrite(step * 250_000);
        match before == after {
            true => old += 1,
            false => new += 1,
        }
    }
    assert!(old > 1 && new > 1, "{old} cuts left the old block, {new} the new one");
}
