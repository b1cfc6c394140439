//! Two copies of everything: units that die, and that come back as they were.

mod mirror_support;

use mirror_support::{Mirror, close, rebuilt, write};
use softflash_base::random::Rng;
use softflash_testing::Model;
use std::time::Duration;

#[test]
fn what_was_written_is_there_twice() {
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
    // Whichever unit is dead, everything is there, with no chance to write it anew.
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
fn a_unit_may_die_and_after_the_rebuild_another() {
    let (mirror, mut model, mut random) = (Mirror::new(1, 4), Model::default(), Rng::seeded(2));
    mirror.session(async |stores, runtime| {
        write(stores, &mut model, &mut random, 300).await;
        for unit in [2, 0] {
            mirror.kill(unit);
            // It is noticed by whoever comes to the unit first.
            model.compare(&stores[0]).await;
            write(stores, &mut model, &mut random, 100).await;
            rebuilt(&stores[0], runtime).await;
            model.compare(&stores[0]).await;
        }
        let stats = stores[0].stats().await.unwrap();
        assert_eq!((stats.lost_units, stats.data_losses), (2, 0));
        close(stores).await;
    });
    // The next start finds them dead.
    mirror.session(async |stores, runtime| {
        model.compare(&stores[0]).await;
        write(stores, &mut model, &mut random, 100).await;
        rebuilt(&stores[0], runtime).await;
        assert_eq!(stores[0].stats().await.unwrap().lost_units, 2);
    });
}

#[test]
fn the_last_unit_serves_on_and_what_it_has_is_called_degraded() {
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
    // It works again: as an empty one would, with what it had when it went.
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
fn a_unit_that_comes_back_as_it_was_is_known_for_old_and_written_anew() {
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
