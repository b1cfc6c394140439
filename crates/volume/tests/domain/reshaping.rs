//! Names, returns to a snapshot and promoted clones, over power cuts.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_volume::{Domain, Setting, Volume, VolumeError};
use std::collections::BTreeMap;

const BYTES: u64 = UNIT as u64;

async fn contents(volume: &Volume) -> Vec<u64> {
    let mut read = vec![0; usize::try_from(volume.size_bytes().unwrap()).unwrap()];
    volume.read(0, &mut read).await.unwrap();
    read.chunks(UNIT).map(content).collect()
}

async fn of_volume(domain: &Domain, name: &str) -> Vec<u64> {
    contents(&domain.volume(name).unwrap()).await
}

async fn of_snapshot(domain: &Domain, name: &str, snapshot: &str) -> Vec<u64> {
    contents(&domain.open_snapshot(name, snapshot).unwrap()).await
}

async fn write(domain: &Domain, name: &str, lba: u64, value: u64) {
    domain.volume(name).unwrap().write(lba * BYTES, &unit(value)).await.unwrap();
}

async fn discard(domain: &Domain, name: &str, lba: u64) {
    domain.volume(name).unwrap().discard(lba * BYTES, BYTES).await.unwrap();
}

fn text(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn a_renamed_volume_keeps_all_that_it_has() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create_with("v", 4 * BYTES, &[Setting::Weight(300)]).await.unwrap();
        let volume = domain.volume("v").unwrap();
        write(domain, "v", 0, 1).await;
        domain.snapshot("v", "s").await.unwrap();
        domain.clone_snapshot("v", "s", "c").await.unwrap();
        assert!(matches!(domain.rename("v", "c").await, Err(VolumeError::Exists { .. })));
        assert!(matches!(domain.rename("v", "v").await, Err(VolumeError::Exists { .. })));
        assert!(matches!(domain.rename("v", "-").await, Err(VolumeError::BadName { .. })));
        assert!(matches!(domain.rename("w", "x").await, Err(VolumeError::NoVolume { .. })));
        domain.rename("v", "w").await.unwrap();
        // Who has it open notices nothing.
        volume.write(BYTES, &unit(2)).await.unwrap();
        volume.flush().await.unwrap();
    });
    for _ in 0..2 {
        testbed.run(async |domain, _, _| {
            assert!(domain.volume("v").is_err());
            assert_eq!(of_volume(domain, "w").await, [1, 2, 0, 0]);
            assert_eq!(of_snapshot(domain, "w", "s").await, [1, 0, 0, 0]);
            assert_eq!(domain.list()[0].parent, Some(("w".to_owned(), "s".to_owned())));
            assert_eq!(domain.list()[1].settings.weight, 300);
            domain.checkpoint().await.unwrap();
        });
    }
}

#[test]
fn a_volume_goes_back_to_its_newest_snapshot_with_its_size() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 5 * BYTES).await.unwrap();
        for lba in 0..3 {
            write(domain, "v", lba, 1 + lba).await;
        }
        domain.snapshot("v", "old").await.unwrap();
        write(domain, "v", 4, 5).await;
        domain.snapshot("v", "new").await.unwrap();
        let used = domain.space().used_bytes;
        // Overwritten, discarded, written anew, cut off, and left as it was.
        write(domain, "v", 0, 10).await;
        discard(domain, "v", 1).await;
        write(domain, "v", 3, 40).await;
        domain.shrink("v", 4 * BYTES).await.unwrap();
        assert_eq!(of_volume(domain, "v").await, [10, 0, 3, 40]);
        let refused = domain.roll_back("v", "old").await;
        let newest = VolumeError::NotNewest { name: "v@old".into(), newest: "new".into() };
        assert_eq!(refused, Err(newest));
        assert!(domain.roll_back("v", "none").await.is_err());
        domain.roll_back("v", "new").await.unwrap();
        assert_eq!(domain.space().used_bytes, used, "what was written since takes no space");
        assert_eq!(domain.list()[0].used_bytes, used);
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(of_volume(domain, "v").await, [1, 2, 3, 0, 5]);
        assert_eq!(of_snapshot(domain, "v", "new").await, [1, 2, 3, 0, 5]);
        assert_eq!(of_snapshot(domain, "v", "old").await, [1, 2, 3, 0, 0]);
        // It can be done again and again, and the volume is one as any other.
        write(domain, "v", 0, 11).await;
        domain.roll_back("v", "new").await.unwrap();
        write(domain, "v", 2, 33).await;
        domain.delete_snapshot("v", "new").await.unwrap();
        domain.roll_back("v", "old").await.unwrap();
        domain.delete_snapshot("v", "old").await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(of_volume(domain, "v").await, [1, 2, 3, 0, 0]);
        domain.delete("v").await.unwrap();
        assert_eq!(domain.space().used_bytes, 0);
    });
}

#[test]
fn a_promoted_clone_outlives_its_parent() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 6 * BYTES).await.unwrap();
        for lba in 0..5 {
            write(domain, "v", lba, 1 + lba).await;
        }
        domain.snapshot("v", "a").await.unwrap();
        write(domain, "v", 0, 10).await;
        domain.snapshot("v", "b").await.unwrap();
        write(domain, "v", 1, 20).await;
        domain.snapshot("v", "c").await.unwrap();
        discard(domain, "v", 2).await;
        domain.clone_snapshot("v", "b", "clone").await.unwrap();
        write(domain, "clone", 0, 100).await;
        domain.snapshot("clone", "own").await.unwrap();
        write(domain, "clone", 3, 400).await;
        discard(domain, "clone", 4).await;
        let not = VolumeError::NotClone { name: "v".to_owned() };
        assert_eq!(domain.promote("v").await, Err(not));
        let moved = |name: &str| ("v".to_owned(), name.to_owned());
        assert_eq!(domain.to_promote("clone"), [moved("a"), moved("b")]);
        assert_eq!(domain.to_promote("v"), []);
        domain.promote("clone").await.unwrap();
    });
    let check = async |domain: &Domain| {
        let listed = domain.list();
        assert_eq!((&listed[0].name[..], &listed[1].name[..]), ("clone", "v"));
        assert_eq!((&listed[0].snapshots, &listed[0].parent), (&text(&["a", "b", "own"]), &None));
        let parent = Some(("clone".to_owned(), "b".to_owned()));
        assert_eq!((&listed[1].snapshots, &listed[1].parent), (&text(&["c"]), &parent));
        assert_eq!(of_snapshot(domain, "clone", "a").await, [1, 2, 3, 4, 5, 0]);
        assert_eq!(of_snapshot(domain, "clone", "b").await, [10, 2, 3, 4, 5, 0]);
        assert_eq!(of_snapshot(domain, "clone", "own").await, [100, 2, 3, 4, 5, 0]);
        assert_eq!(of_volume(domain, "clone").await, [100, 2, 3, 400, 0, 0]);
        assert_eq!(of_snapshot(domain, "v", "c").await, [10, 20, 3, 4, 5, 0]);
        assert_eq!(of_volume(domain, "v").await, [10, 20, 0, 4, 5, 0]);
    };
    testbed.run(async |domain, _, _| check(domain).await);
    testbed.run(async |domain, _, _| {
        check(domain).await;
        domain.checkpoint().await.unwrap();
    });
    assert_eq!(testbed.examine().unwrap().images.iter().map(|it| it.lost.len()).sum::<usize>(), 0);
    testbed.run(async |domain, _, _| {
        check(domain).await;
        let refused = domain.delete_snapshot("clone", "b").await;
        assert!(matches!(refused, Err(VolumeError::HasClones { .. })), "{refused:?}");
        domain.delete_snapshot("v", "c").await.unwrap();
        domain.delete("v").await.unwrap();
        domain.delete_snapshot("clone", "b").await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(of_snapshot(domain, "clone", "a").await, [1, 2, 3, 4, 5, 0]);
        assert_eq!(of_volume(domain, "clone").await, [100, 2, 3, 400, 0, 0]);
    });
}

#[test]
fn a_promotion_is_refused_where_two_snapshots_would_have_one_name() {
    Testbed::new(32, 256).run(async |domain, _, _| {
        domain.create("v", 4 * BYTES).await.unwrap();
        domain.snapshot("v", "s").await.unwrap();
        domain.clone_snapshot("v", "s", "c").await.unwrap();
        domain.snapshot("c", "s").await.unwrap();
        let taken = VolumeError::Exists { name: "c@s".to_owned() };
        assert_eq!(domain.promote("c").await, Err(taken));
        domain.delete_snapshot("c", "s").await.unwrap();
        domain.promote("c").await.unwrap();
    });
}

/// The newest snapshots can be kept, too: the older one goes on under the name of the volume.
#[test]
fn an_older_snapshot_takes_over_by_a_clone_that_is_promoted_and_renamed() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 2 * BYTES).await.unwrap();
        write(domain, "v", 0, 1).await;
        domain.snapshot("v", "old").await.unwrap();
        write(domain, "v", 0, 2).await;
        domain.snapshot("v", "new").await.unwrap();
        domain.clone_snapshot("v", "old", "t").await.unwrap();
        domain.promote("t").await.unwrap();
        domain.rename("v", "v.new").await.unwrap();
        domain.rename("t", "v").await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(of_volume(domain, "v").await, [1, 0]);
        assert_eq!(of_snapshot(domain, "v", "old").await, [1, 0]);
        assert_eq!(of_snapshot(domain, "v.new", "new").await, [2, 0]);
    });
}

/// Collection moves the data of promoted volumes, whose checksums have other seeds, and no read
/// fails.
#[test]
fn data_that_changed_hands_are_collected_and_read() {
    let seed = 20_261_129;
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let testbed = Testbed::new(24, 256);
    let units = 300;
    let mut expected: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    testbed.run(async |domain, _, _| {
        domain.create("v", units * BYTES).await.unwrap();
        for lba in 0..units {
            write(domain, "v", lba, lba + 1).await;
        }
        domain.snapshot("v", "s").await.unwrap();
        domain.clone_snapshot("v", "s", "c").await.unwrap();
        domain.promote("c").await.unwrap();
        expected.insert("v", of_volume(domain, "v").await);
        expected.insert("c", of_volume(domain, "c").await);
    });
    let mut collected = 0;
    for round in 0..6 {
        testbed.run(async |domain, _, _| {
            for number in 0..8000 {
                let name = ["v", "c"][rng.below(2) as usize];
                // A part stays as it was at the beginning.
                let lba = rng.below(units / 2);
                let value = 1_000_000 * (round + 1) + number;
                write(domain, name, lba, value).await;
                expected.get_mut(name).unwrap()[lba as usize] = value;
            }
            domain.flush().await.unwrap();
            collected += domain.counters().collected;
        });
        testbed.run(async |domain, _, _| {
            for (name, contents) in &expected {
                assert_eq!(of_volume(domain, name).await, *contents, "{name}");
            }
            let first: Vec<u64> = (1..=units).collect();
            assert_eq!(of_snapshot(domain, "c", "s").await, first);
            assert_eq!(domain.counters().lost, 0);
        });
    }
    assert!(collected > 100, "{collected} mapping units were collected");
    // The parent takes everything back.
    testbed.run(async |domain, _, _| {
        domain.promote("v").await.unwrap();
        domain.delete("c").await.unwrap();
        assert_eq!(of_volume(domain, "v").await, expected["v"]);
        domain.roll_back("v", "s").await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(of_volume(domain, "v").await, (1..=units).collect::<Vec<u64>>());
        assert_eq!(domain.space().used_bytes, units * BYTES);
    });
}
