//! The units of a parity group where the program of its parity fails.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Redundancy};
use softflash_device::{Device, DeviceError, ModelConfig, ModelDevice, Operation};
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint};
use softflash_runtime::VirtualExecutor;
use softflash_testing::faulty::{Faults, FaultyDevice};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The units of a group of two patches on three units, where so many programs of its parity fail on
/// the unit that has no patch.
fn units_of_group(failures: usize) -> BTreeSet<u16> {
    let mut config = ModelConfig::model();
    config.array.geometry.channels = 3;
    config.array.geometry.chips_per_channel = 1;
    config.array.geometry.blocks_per_plane = 24;
    config.array.geometry.pages_per_block = 16;
    let (faults, executor) = (Faults::default(), VirtualExecutor::new(1_000_000));
    let model: Arc<dyn Device> = Arc::new(ModelDevice::in_memory(config).unwrap());
    let device = FaultyDevice::new(model, faults.clone());
    executor.block_on(async {
        let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
        let mounted = Flash::mount(queue, FtlConfig::default(), executor.handle()).await;
        let (flash, inventory) = mounted.unwrap();
        let (uuid, redundancy) = (device.info().uuid, Redundancy::Parity { members: 2 });
        let (blocks, ..) = BlockLayer::new(flash, ShardId(0), uuid, &inventory, redundancy);
        let mut stripe = blocks.new_stripe().unwrap();
        let mut taken = BTreeSet::new();
        for byte in [1, 2] {
            let (id, pieces) = (blocks.new_id(), blocks.pieces_of(&vec![byte; 60_000]));
            let anti_affinity = stripe.add(id, &pieces);
            let kind = BlockKind::Patch { slice: 0 };
            blocks.put_avoiding(id, kind, pieces, Hint::FLUSH, &anti_affinity).await.unwrap();
            taken.extend(blocks.superblocks(id).into_iter().map(|place| place.unit.0));
        }
        let (patches, mut left) = (taken.clone(), failures);
        faults.fail_if(move |command| {
            let is_data = command.target.page > 1 || command.target.rows > 1;
            let is_program = matches!(command.operation, Operation::Program { .. });
            let fails = is_program && is_data && !patches.contains(&command.target.unit.0);
            let fails = fails && left > 0;
            left -= usize::from(fails);
            fails.then_some(DeviceError::ProgramFailed)
        });
        let group = stripe.close(Hint::FLUSH).await.unwrap();
        let parity = blocks.superblocks(BlockId(group.parity));
        taken.into_iter().chain(parity.into_iter().map(|place| place.unit.0)).collect()
    })
}

#[test]
fn parity_whose_program_fails_once_is_still_on_a_unit_of_its_own() {
    assert_eq!(units_of_group(0).len(), 3);
    assert_eq!(units_of_group(1).len(), 3, "its unit has other superblocks");
}

#[test]
fn parity_is_beside_a_patch_where_all_programs_on_its_unit_fail() {
    assert_eq!(units_of_group(1000).len(), 2);
}
