//! Parity over patches: dead units, and units restored from an old image.

use crate::mirror_support::{
    Mirror, close, each_unit_may_die, rebuilt, settled, write_more as write,
};
use softflash_base::random::Rng;
use softflash_device::DeviceError;
use softflash_store::stats::StoreStats;
use softflash_testing::Model;
use softflash_testing::faulty::OperationKind;
use softflash_testing::model::{key, value};
use std::time::Duration;

#[test]
fn all_data_survives_the_loss_of_any_unit() {
    for (units, members) in [(3, 2), (5, 4), (6, 3)] {
        let (parity, mut model, mut random) =
            (Mirror::with_parity(1, units, members), Model::default(), Rng::seeded(1));
        for _ in 0..3 {
            parity.session(async |stores, runtime| {
                model.compare(&stores[0]).await;
                write(stores, &mut model, &mut random, 600).await;
                settled(&stores[0], runtime).await;
                let stats = stores[0].stats().await.unwrap();
                assert_eq!((stats.degraded_blocks, stats.data_losses), (0, 0));
                assert!(stats.parity_blocks > 0 && stats.parity_blocks <= stats.patches);
                // Only two copies of the log besides, which may have a second segment under way.
                let used = stats.superblocks_total - stats.superblocks_free;
                let log = 2 * (stats.log_live_bytes / (31 * 4096) + 3);
                assert!(used <= stats.patches + stats.parity_blocks + log, "{stats:?}");
                close(stores).await;
            });
            let report = parity.check();
            assert!(report.ok, "{report:?}");
        }
        each_unit_may_die(&parity, &model);
    }
}

#[test]
fn a_unit_may_die_and_another_one_after_the_rebuild() {
    for members in [2, 4] {
        let (parity, mut model, mut random) =
            (Mirror::with_parity(1, 6, members), Model::default(), Rng::seeded(2));
        parity.session(async |stores, runtime| {
            write(stores, &mut model, &mut random, 800).await;
            for unit in [2, 0] {
                parity.kill(unit);
                // The first command to the unit detects the loss.
                model.compare(&stores[0]).await;
                write(stores, &mut model, &mut random, 300).await;
                rebuilt(&stores[0], runtime).await;
                model.compare(&stores[0]).await;
            }
            let stats = stores[0].stats().await.unwrap();
            assert_eq!((stats.lost_units, stats.data_losses), (2, 0));
            close(stores).await;
        });
        // The next start finds the units dead.
        parity.session(async |stores, runtime| {
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 100).await;
            rebuilt(&stores[0], runtime).await;
            assert_eq!(stores[0].stats().await.unwrap().lost_units, 2);
        });
    }
}

#[test]
fn units_may_die_one_by_one_until_one_is_left() {
    let (parity, mut model, mut random) =
        (Mirror::with_parity(1, 3, 2), Model::default(), Rng::seeded(3));
    parity.session(async |stores, runtime| {
        write(stores, &mut model, &mut random, 400).await;
        parity.kill(1);
        model.compare(&stores[0]).await;
        write(stores, &mut model, &mut random, 100).await;
        // Without a third unit each patch has a group of its own, and so a copy.
        rebuilt(&stores[0], runtime).await;
        let stats = stores[0].stats().await.unwrap();
        assert_eq!((stats.parity_blocks, stats.pinned_blocks), (stats.patches, 0), "{stats:?}");
        close(stores).await;
    });
    parity.faults.clear();
    parity.faults.fail_if(|command| {
        let is_flush = matches!(command.operation, softflash_device::Operation::Flush);
        (command.target.unit.0 > 0 && !is_flush).then_some(DeviceError::DeadDie)
    });
    for _ in 0..2 {
        parity.session(async |stores, runtime| {
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 200).await;
            runtime.sleep_until(runtime.now() + Duration::from_secs(60)).await;
            model.compare(&stores[0]).await;
            let stats = stores[0].stats().await.unwrap();
            assert!(stats.degraded_blocks > 0 && stats.lost_units == 2, "{stats:?}");
            assert_eq!(stats.full, 0);
            close(stores).await;
        });
    }
    // The dead units work again, with their contents from the time of the failure.
    parity.faults.clear();
    parity.session(async |stores, runtime| {
        model.compare(&stores[0]).await;
        rebuilt(&stores[0], runtime).await;
        close(stores).await;
    });
    each_unit_may_die(&parity, &model);
}

#[test]
fn a_unit_restored_from_an_old_image_is_detected_and_rewritten() {
    for (seed, writes) in [(4, 40), (5, 300), (6, 900)] {
        let (parity, mut model, mut random) =
            (Mirror::with_parity(1, 5, 3), Model::default(), Rng::seeded(seed));
        parity.session(async |stores, _| {
            write(stores, &mut model, &mut random, 400).await;
            close(stores).await;
        });
        let image = parity.device.image(1..2).unwrap();
        for _ in 0..2 {
            parity.session(async |stores, _| write(stores, &mut model, &mut random, writes).await);
        }
        parity.device.restore(&image).unwrap();
        parity.session(async |stores, runtime| {
            model.compare(&stores[0]).await;
            rebuilt(&stores[0], runtime).await;
            close(stores).await;
        });
        let report = parity.check();
        assert!(report.ok, "{report:?}");
        each_unit_may_die(&parity, &model);
    }
}

#[test]
fn acknowledged_writes_survive_a_unit_when_any_program_or_erase_fails() {
    for kind in [OperationKind::Program, OperationKind::Erase] {
        let (error, step) = match kind {
            OperationKind::Erase => (DeviceError::EraseFailed, 6),
            _ => (DeviceError::ProgramFailed, 61),
        };
        let mut failed = 0;
        for nth in (1..).step_by(step).take(20) {
            let (parity, mut model, mut random) =
                (Mirror::with_parity(1, 5, 3), Model::default(), Rng::seeded(nth));
            parity.session(async |stores, _| {
                parity.faults.fail_nth(nth, kind, error.clone());
                write(stores, &mut model, &mut random, 500).await;
                // The process ends before a rebuild.
            });
            failed += parity.faults.commands_failed();
            parity.faults.clear();
            each_unit_may_die(&parity, &model);
        }
        assert!(failed > 3, "{failed} of kind {kind:?}");
    }
}

#[test]
fn damage_of_any_page_is_reported_and_repaired_without_a_loss() {
    let (parity, mut model, mut random) =
        (Mirror::with_parity(1, 5, 3), Model::default(), Rng::seeded(7));
    parity.session(async |stores, runtime| {
        write(stores, &mut model, &mut random, 500).await;
        settled(&stores[0], runtime).await;
        close(stores).await;
    });
    let image = parity.device.image(0..5).unwrap();
    let (mut found, mut of_parity) = (0, 0);
    for unit in 0..5 {
        for page in [0, 1, 3, 17, 30] {
            // Damages this page of all flash blocks of the unit.
            parity.faults.alter_reads(move |target, bytes| {
                for (row, bytes) in (target.page..).zip(bytes.chunks_mut(4096)) {
                    if target.unit.0 == unit && row == page {
                        // A start reads less of a header than a check.
                        let byte = bytes.get_mut(random_byte(target.blocks[0]));
                        byte.into_iter().for_each(|byte| *byte ^= 0x10);
                    }
                }
            });
            let report = parity.check();
            found += usize::from(!report.ok);
            let repaired = parity.repair();
            of_parity += repaired.parities.len();
            assert!(repaired.failures.is_empty() && !repaired.has_loss(), "{repaired:?}");
            parity.session(async |stores, _| model.compare(&stores[0]).await);
            parity.faults.clear();
            parity.session(async |stores, _| {
                model.compare(&stores[0]).await;
                close(stores).await;
            });
            parity.device.restore(&image).unwrap();
        }
    }
    assert!(found > 10 && of_parity > 5, "{found} found, {of_parity} of parity");
}

/// A byte offset in a page.
fn random_byte(block: u32) -> usize {
    block as usize * 997 % 4096
}

/// The statistics of a store of 1500 keys after many random overwrites.
#[expect(clippy::unwrap_used, reason = "helpers of tests end at the first error")]
fn cost_of(copies: u8, members: u8) -> StoreStats {
    let (mut mirror, mut model, mut random) = (Mirror::new(1, 6), Model::default(), Rng::seeded(8));
    (mirror.layout.copies, mirror.layout.parity) = (copies, members);
    mirror.session(async |stores, runtime| {
        for _ in 0..6000 {
            model.put(&stores[0], key(random.below(1500)), value(&mut random, 7000)).await;
        }
        settled(&stores[0], runtime).await;
        let stats = stores[0].stats().await.unwrap();
        close(stores).await;
        stats
    })
}

#[test]
fn parity_costs_about_one_block_for_each_group_and_less_than_copies() {
    let mirrored = cost_of(2, 0).flash_bytes_written;
    println!("two copies: {} MiB written", mirrored >> 20);
    println!("one copy: {} MiB written", cost_of(1, 0).flash_bytes_written >> 20);
    for members in [2, 3, 5] {
        let stats = cost_of(1, members);
        let StoreStats { patches, parity_blocks, flash_bytes_written, .. } = stats;
        let megabytes = flash_bytes_written >> 20;
        println!(
            "parity over {members}: {parity_blocks} parity blocks for {patches} patches, {megabytes} MiB written"
        );
        // Level 0 and recent compactions have smaller groups.
        assert!(parity_blocks * u64::from(members) * 2 <= patches * 3 + 12, "{stats:?}");
        assert!(flash_bytes_written < mirrored, "{stats:?}");
    }
}
