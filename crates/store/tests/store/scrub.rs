//! Flash with retention errors: the scrub rewrites weak data before it is lost.

#![expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]

use softflash_base::random::Rng;
use softflash_device::{ModelConfig, ModelDevice};
use softflash_store::stats::StoreStats;
use softflash_testing::model::{key, value};
use softflash_testing::{Model, VirtualTestbed};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Flash whose pages need two retries after about 50 days and are lost after about 90.
fn forgetful(scrub: Option<Duration>) -> VirtualTestbed {
    let mut config = ModelConfig::model();
    config.array.geometry.blocks_per_plane = 40;
    config.array.geometry.pages_per_block = 64;
    let law = &mut config.faults.bit_errors;
    (law.rber_fresh, law.retention_days) = (1e-4, 1.0);
    (law.retry_steps, law.retry_gain) = (3, 0.7);
    let mut testbed = VirtualTestbed {
        device: Arc::new(ModelDevice::in_memory(config).unwrap()),
        ..VirtualTestbed::new(2, 40)
    };
    testbed.options.scrub = scrub;
    // Most of the data are on flash only.
    testbed.options.memory_bytes = 1 << 20;
    testbed
}

/// Writes, waits 200 days, and looks all keys up, in the same session and after another start.
fn keep_for_200_days(scrub: Option<Duration>) -> (bool, StoreStats) {
    let testbed = forgetful(scrub);
    let (mut model, mut random) = (Model::default(), Rng::seeded(7));
    let ((kept, stats), _) = testbed.session(async |stores, runtime| {
        for number in 0..500 {
            let value = value(&mut random, 9000);
            model.put(&stores[number as usize % 2], key(number), value).await;
        }
        runtime.sleep_until(runtime.now() + 200 * DAY).await;
        let mut kept = true;
        for (key, value) in &model.entries {
            let found = stores[0].begin().get(key).await;
            kept &= found.is_ok_and(|e| e.is_some_and(|e| e.value.to_bytes() == *value));
        }
        (kept, stores[0].stats().await.unwrap())
    });
    if kept {
        testbed.session(async |stores, _| model.compare(&stores[0]).await);
    }
    (kept, stats)
}

#[test]
fn weak_data_is_rewritten_before_it_is_lost() {
    let (kept, stats) = keep_for_200_days(Some(7 * DAY));
    assert!(kept, "{stats:?}");
    assert!(stats.patrols > 50, "{stats:?}");
    assert!(stats.refreshed_bytes > 4_000_000, "{stats:?}");
    assert!(stats.patrolled_bytes > 20 * 2_000_000, "{stats:?}");
    assert_eq!(stats.data_losses, 0, "{stats:?}");
}

#[test]
fn without_a_scrub_retention_errors_lose_data_and_are_reported() {
    let (kept, stats) = keep_for_200_days(None);
    assert!(!kept && stats.data_losses > 0 && stats.patrols == 0, "{stats:?}");
}

#[test]
fn an_idle_shard_does_not_wear_its_flash() {
    let mut testbed = VirtualTestbed::new(2, 40);
    testbed.options.scrub = Some(Duration::from_secs(60));
    let (mut model, mut random) = (Model::default(), Rng::seeded(8));
    testbed.session(async |stores, runtime| {
        for number in 0..500 {
            model.put(&stores[number as usize % 2], key(number), value(&mut random, 9000)).await;
        }
        // Compactions and erases after the writes.
        runtime.sleep_until(runtime.now() + Duration::from_secs(600)).await;
        let before = stores[0].stats().await.unwrap();
        runtime.sleep_until(runtime.now() + DAY).await;
        let after = stores[0].stats().await.unwrap();
        // Both shards: a pass a minute, and the reads of the log.
        assert!(after.patrols > before.patrols + 2 * 23 * 60, "{after:?}");
        assert_eq!(after.device_programs, before.device_programs, "{after:?}");
        assert_eq!(after.device_erases, before.device_erases, "{after:?}");
        model.compare(&stores[0]).await;
    });
}
