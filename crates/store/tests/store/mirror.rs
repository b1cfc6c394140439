//! Two copies of each block: dead units, and units restored from an old image.

use crate::mirror_support::{Mirror, close, rebuilt, write};
use softflash_base::random::Rng;
use softflash_device::DeviceError;
use softflash_testing::Model;
use softflash_testing::faulty::OperationKind;
use std::time::Duration;

#[test]
fn every_block_has_two_copies() {
    let (mirror, mut model, mut random) = (Mirror::new(2, 4), Model::default(), Rng::seeded(1));
    for _ in 0..3 {
        mirror.session(async |stores, _| {
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 200).await;
            assert_eq!(stores[0].stats().await.unwrap().degraded_blocks, 0);
            close(stores).await;
        });
        let report = mirror.check();
        assert!(report.ok, "{report:?}");
    }
    // With any one unit dead, all keys are found, without time for a rebuild.
    for unit in 0..4 {
        let image = mirror.device.image(0..4).unwrap();
        mirror.kill(unit);
        mirror.session(async |stores, _| {
            model.compare(&stores[0]).await;
        });
        mirror.faults.clear();
        mirror.device.restore(&image).unwrap();
    }
}

#[test]
fn a_unit_may_die_and_another_one_after_the_rebuild() {
    let (mirror, mut model, mut random) = (Mirror::new(1, 4), Model::default(), Rng::seeded(2));
    mirror.session(async |stores, runtime| {
        write(stores, &mut model, &mut random, 300).await;
        for unit in [2, 0] {
            mirror.kill(unit);
            // The first command to the unit detects the loss.
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 100).await;
            rebuilt(&stores[0], runtime).await;
            model.compare(&stores[0]).await;
        }
        let stats = stores[0].stats().await.unwrap();
        assert_eq!((stats.lost_units, stats.data_losses), (2, 0));
        close(stores).await;
    });
    // The next start finds the units dead.
    mirror.session(async |stores, runtime| {
        model.compare(&stores[0]).await;
        write(stores, &mut model, &mut random, 100).await;
        rebuilt(&stores[0], runtime).await;
        assert_eq!(stores[0].stats().await.unwrap().lost_units, 2);
    });
}

#[test]
fn the_last_unit_serves_and_its_blocks_are_degraded() {
    let (mirror, mut model, mut random) = (Mirror::new(1, 2), Model::default(), Rng::seeded(3));
    mirror.session(async |stores, _| {
        write(stores, &mut model, &mut random, 100).await;
        close(stores).await;
    });
    mirror.kill(1);
    for _ in 0..2 {
        mirror.session(async |stores, runtime| {
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 300).await;
            model.compare(&stores[0]).await;
            runtime.sleep_until(runtime.now() + Duration::from_secs(60)).await;
            let stats = stores[0].stats().await.unwrap();
            assert!(stats.degraded_blocks > 0 && stats.lost_units == 1, "{stats:?}");
            assert_eq!(stats.full, 0);
            close(stores).await;
        });
    }
    // The dead unit works again, with its contents from the time of the failure.
    mirror.faults.clear();
    mirror.session(async |stores, runtime| {
        model.compare(&stores[0]).await;
        rebuilt(&stores[0], runtime).await;
        close(stores).await;
    });
    mirror.kill(0);
    mirror.session(async |stores, _| model.compare(&stores[0]).await);
}

#[test]
fn a_unit_restored_from_an_old_image_is_detected_and_rewritten() {
    for (seed, writes) in [(4, 40), (5, 100), (6, 400)] {
        let (mirror, mut model, mut random) =
            (Mirror::new(1, 3), Model::default(), Rng::seeded(seed));
        mirror.session(async |stores, _| {
            write(stores, &mut model, &mut random, 100).await;
            close(stores).await;
        });
        let image = mirror.device.image(1..2).unwrap();
        for _ in 0..2 {
            mirror.session(async |stores, _| {
                write(stores, &mut model, &mut random, writes).await;
                assert_eq!(stores[0].stats().await.unwrap().old_units, 0);
            });
        }
        mirror.device.restore(&image).unwrap();
        let report = mirror.check();
        assert!(report.findings.iter().any(|finding| finding.place == "unit 1"), "{report:?}");
        mirror.session(async |stores, runtime| {
            assert_eq!(stores[0].stats().await.unwrap().old_units, 1);
            model.compare(&stores[0]).await;
            rebuilt(&stores[0], runtime).await;
            close(stores).await;
        });
        let report = mirror.check();
        assert!(report.ok, "{report:?}");
        mirror.kill(2);
        mirror.session(async |stores, _| {
            assert_eq!(stores[0].stats().await.unwrap().old_units, 0);
            model.compare(&stores[0]).await;
        });
    }
}

#[test]
fn acknowledged_writes_have_two_copies_when_any_program_or_erase_fails() {
    for kind in [OperationKind::Program, OperationKind::Erase] {
        let error = match kind {
            OperationKind::Erase => DeviceError::EraseFailed,
            _ => DeviceError::ProgramFailed,
        };
        let mut failed = 0;
        for nth in 1..60 {
            let (mirror, mut model, mut random) =
                (Mirror::new(1, 3), Model::default(), Rng::seeded(nth));
            mirror.session(async |stores, _| {
                mirror.faults.fail_nth(nth, kind, error.clone());
                write(stores, &mut model, &mut random, 60).await;
                // The process ends before a rebuild.
            });
            failed += mirror.faults.commands_failed();
            let image = mirror.device.image(0..3).unwrap();
            for unit in 0..3 {
                mirror.faults.clear();
                mirror.kill(unit);
                mirror.session(async |stores, _| model.compare(&stores[0]).await);
                mirror.faults.clear();
                mirror.device.restore(&image).unwrap();
            }
        }
        assert!(failed > 5, "{failed} of kind {kind:?}");
    }
}

#[test]
fn the_scrub_replaces_a_damaged_log() {
    let period = Duration::from_secs(20);
    for copies in [1, 2] {
        for scrubs in [false, true] {
            let (mut mirror, mut model, mut random) =
                (Mirror::new(1, 3), Model::default(), Rng::seeded(9));
            mirror.layout.copies = copies;
            mirror.options.scrub = scrubs.then_some(period);
            mirror.session(async |stores, runtime| {
                write(stores, &mut model, &mut random, 20).await;
                damage_the_log(&mirror);
                runtime.sleep_until(runtime.now() + 3 * period).await;
                model.compare(&stores[0]).await;
            });
            let report = mirror.check();
            assert_eq!(report.ok, scrubs, "{copies} copies: {report:?}");
            if scrubs {
                mirror.session(async |stores, _| model.compare(&stores[0]).await);
            }
        }
    }
}

/// Damages the first page of the log that is read, in all later reads.
fn damage_the_log(mirror: &Mirror) {
    let mut damaged = None;
    mirror.faults.alter_reads(move |target, bytes| {
        for (row, bytes) in bytes.chunks_mut(4096).enumerate() {
            let place = (target.unit, target.blocks[0], target.page + row as u32);
            // Skips the announcement, which has no payload.
            let has_payload = bytes[12..16] != [0; 4];
            if bytes.starts_with(b"SFLG") && has_payload && *damaged.get_or_insert(place) == place {
                bytes[100] ^= 1;
            }
        }
    });
}
