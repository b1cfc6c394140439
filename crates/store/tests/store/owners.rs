//! A store on units that hold superblocks of another owner keeps them, and `check` names them.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use bytes::Bytes;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Hint, Inventory, Owner, OwnerTag, Ownership, Superblock};
use softflash_runtime::RealExecutor;
use softflash_store::Entry;
use softflash_testing::Testbed;
use softflash_testing::model::key;

/// Mounts all units of the testbed for another owner.
fn as_other<R>(testbed: &Testbed, work: impl AsyncFnOnce(&Flash, Inventory) -> R) -> R {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let device = testbed.device();
        let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
        let owner = Owner { layer: 1, domain: 5 };
        let (config, owner) = (FtlConfig::default(), Ownership::of(owner));
        let (flash, inventory) = Flash::mount_of(queue, config, owner, runtime).await.unwrap();
        let result = work(&flash, inventory).await;
        flash.stop();
        result
    })
}

async fn write(flash: &Flash, unit: u16) -> Superblock {
    let superblock = flash.allocate(unit, OwnerTag([9; 64]), Hint::FLUSH).unwrap();
    let mut page = flash.buffer(flash.page_bytes());
    page.fill(0x5a);
    let (_, appended) = flash.append(&superblock, page, true, Hint::FLUSH).unwrap();
    appended.await.0.unwrap();
    superblock
}

#[test]
fn superblocks_of_another_owner_survive_a_store_that_overwrites_its_device() {
    let testbed = Testbed::new(1, 1, 4, 24, 1 << 20);
    let theirs =
        as_other(&testbed, async |flash, _| [write(flash, 0).await, write(flash, 3).await]);
    for _ in 0..2 {
        testbed.run(async |stores, _| {
            for number in 0..20_000 {
                let mut transaction = stores[0].begin();
                let value = Bytes::from(vec![number as u8; 8000]);
                transaction.put(key(number % 2000), Entry::new(value)).unwrap();
                stores[0].commit(transaction).await.unwrap();
            }
        });
    }
    let report = testbed.check();
    assert!(report.ok, "{report:?}");
    for superblock in theirs {
        let place = superblock.to_string();
        let found = report.findings.iter().find(|finding| finding.place == place).unwrap();
        assert!(found.problem.contains("layer 1, domain 5"), "{found:?}");
    }
    as_other(&testbed, async |flash, inventory| {
        let found: Vec<_> = inventory.superblocks.iter().map(|found| found.superblock).collect();
        assert_eq!(found, theirs);
        for superblock in theirs {
            let read = flash.read(&superblock, 0, 1, Hint::FOREGROUND).await.unwrap();
            assert!(read.bytes.iter().all(|byte| *byte == 0x5a));
        }
    });
}
