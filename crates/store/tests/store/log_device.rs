//! A log on a device of its own, as in simulations of systems with a separate log device.

use bytes::Bytes;
use softflash_device::{Device, ModelConfig, ModelDevice, OpenError};
use softflash_runtime::VirtualExecutor;
use softflash_store::opening::open_all_with_log;
use softflash_store::{Store, StoreError, open_all};
use softflash_testing::{Model, VirtualTestbed, model};
use std::sync::Arc;

const SHARDS: u16 = 2;
const WALL_MS: u64 = 1_000_000;

/// A device with a unit for each shard and the superblock size of a testbed, adjusted by `change`.
pub fn log_device(change: impl FnOnce(&mut ModelConfig)) -> Result<Arc<dyn Device>, OpenError> {
    let mut config = ModelConfig::model();
    config.array.geometry.channels = SHARDS;
    config.array.geometry.blocks_per_plane = 24;
    config.array.geometry.pages_per_block = 64;
    change(&mut config);
    Ok(Arc::new(ModelDevice::in_memory(config)?))
}

fn session<R>(
    testbed: &VirtualTestbed,
    log: Option<&Arc<dyn Device>>,
    work: impl AsyncFnOnce(&[Store]) -> R,
) -> Result<R, StoreError> {
    let executor = VirtualExecutor::new(WALL_MS);
    let runtime = executor.handle();
    let device: Arc<dyn Device> = Arc::clone(&testbed.device) as Arc<dyn Device>;
    executor.block_on(async {
        let (layout, options) = (&testbed.layout, &testbed.options);
        let stores = match log {
            Some(log) => {
                open_all_with_log(device, Arc::clone(log), layout, options, &runtime).await?
            }
            None => open_all(device, layout, options, &runtime).await?,
        };
        let result = work(&stores).await;
        for store in &stores {
            store.close().await?;
        }
        Ok(result)
    })
}

#[test]
fn writes_that_are_only_on_the_log_device_are_recovered_from_it() {
    let testbed = VirtualTestbed::new(SHARDS, 64);
    let log = log_device(|_| {}).unwrap();
    let mut model = Model::default();
    for round in 0..3_u64 {
        model = session(&testbed, Some(&log), async |stores| {
            model.compare(&stores[0]).await;
            for number in 0..40 {
                let value = Bytes::from(vec![round as u8; 30_000 + number as usize]);
                model.put(&stores[0], model::key(number), value).await;
            }
            // Small and last: it is only in the log.
            model.put(&stores[0], Bytes::from_static(b"last"), round.to_string().into()).await;
            model
        })
        .unwrap();
    }
    session(&testbed, Some(&log), async |stores| model.compare(&stores[0]).await).unwrap();
    // Without the log device the open reports the loss.
    let alone = session(&testbed, None, async |stores| {
        let found = stores[0].begin().get(&Bytes::from_static(b"last")).await.unwrap();
        found.map(|entry| entry.value.to_bytes())
    });
    assert!(
        matches!(&alone, Err(StoreError::DataLoss(what)) if what.contains("no log")),
        "{alone:?}"
    );
}

#[test]
fn a_log_device_needs_equal_superblocks_and_a_unit_for_each_shard() {
    let testbed = VirtualTestbed::new(SHARDS, 64);
    let refused = |log: &Arc<dyn Device>| {
        session(&testbed, Some(log), async |_| ()).expect_err("refused").to_string()
    };
    let smaller = log_device(|config| config.array.geometry.pages_per_block = 32).unwrap();
    assert!(refused(&smaller).contains("as large as those of the data"), "{}", refused(&smaller));
    let narrow = log_device(|config| config.array.geometry.channels = 1).unwrap();
    assert!(refused(&narrow).contains("the log's device"), "{}", refused(&narrow));
}
