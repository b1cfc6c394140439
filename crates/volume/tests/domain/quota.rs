use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::join_all;
use softflash_base::random::Rng;
use softflash_volume::{Domain, Setting, VolumeError};

const QUOTA: u64 = 100;

fn quota(units: u64) -> Setting {
    Setting::Quota(Some(units * UNIT as u64))
}

fn held(domain: &Domain, name: &str) -> u64 {
    let listed = domain.list();
    listed.iter().find(|volume| volume.name == name).unwrap().used_bytes / UNIT as u64
}

async fn write(domain: &Domain, name: &str, lba: u64, units: u64) -> Result<(), VolumeError> {
    let data: Vec<u8> = (lba..lba + units).flat_map(unit).collect();
    domain.volume(name).unwrap().write(lba * UNIT as u64, &data).await
}

fn is_refused(result: &Result<(), VolumeError>, used: u64) -> bool {
    let bytes = |units: u64| units * UNIT as u64;
    *result == Err(VolumeError::QuotaExceeded { quota: bytes(QUOTA), used: bytes(used) })
}

#[test]
fn a_write_beyond_the_quota_is_refused_and_nothing_else_suffers() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create_with("v", 1 << 30, &[quota(QUOTA)]).await.unwrap();
        domain.create("w", 1 << 30).await.unwrap();
        write(domain, "v", 0, QUOTA).await.unwrap();
        let refused = write(domain, "v", QUOTA, 1).await;
        assert!(is_refused(&refused, QUOTA), "{refused:?}");
        write(domain, "v", 0, QUOTA).await.unwrap();
        write(domain, "w", 0, 2 * QUOTA).await.unwrap();
        let volume = domain.volume("v").unwrap();
        volume.read(0, &mut [0; UNIT]).await.unwrap();
        assert_eq!(domain.volume_counters()[0].1.quota_refusals, 1);

        // Discards make room, and so does a raised or removed quota.
        volume.discard(0, 10 * UNIT as u64).await.unwrap();
        write(domain, "v", QUOTA, 10).await.unwrap();
        assert!(write(domain, "v", 0, 1).await.is_err());
        domain.set("v", &[quota(QUOTA + 1)]).await.unwrap();
        write(domain, "v", 0, 1).await.unwrap();
        assert!(write(domain, "v", 1, 1).await.is_err());
        domain.set("v", &[Setting::Quota(None)]).await.unwrap();
        write(domain, "v", 1, 9).await.unwrap();
        assert_eq!((held(domain, "v"), held(domain, "w")), (QUOTA + 10, 2 * QUOTA));
        volume.flush().await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        assert_eq!(held(domain, "v"), QUOTA + 10);
        // Below what the volume holds: what it holds stays, and can be overwritten.
        domain.set("v", &[quota(QUOTA)]).await.unwrap();
        write(domain, "v", 0, 9).await.unwrap();
        assert!(is_refused(&write(domain, "v", 300, 1).await, QUOTA + 10));
    });
}

#[test]
fn snapshots_count_for_the_quota_of_their_volume_and_clones_do_not() {
    Testbed::new(32, 256).run(async |domain, _, _| {
        domain.create_with("v", 1 << 30, &[quota(QUOTA)]).await.unwrap();
        write(domain, "v", 0, 60).await.unwrap();
        domain.snapshot("v", "s").await.unwrap();
        write(domain, "v", 0, 40).await.unwrap();
        assert_eq!(held(domain, "v"), 100);
        // Those that the snapshot keeps already take no more space.
        write(domain, "v", 0, 40).await.unwrap();
        assert!(is_refused(&write(domain, "v", 40, 1).await, 100), "it keeps this one, too");
        domain.clone_snapshot("v", "s", "c").await.unwrap();
        write(domain, "c", 0, 60).await.unwrap();
        domain.delete("c").await.unwrap();
        domain.delete_snapshot("v", "s").await.unwrap();
        assert_eq!(held(domain, "v"), 60);
        write(domain, "v", 60, 40).await.unwrap();
    });
}

#[test]
fn the_quota_is_never_exceeded_by_writes_under_way_and_all_of_it_can_be_used() {
    for seed in 0..8 {
        println!("seed {seed}");
        Testbed::new(32, 256).run(async |domain, _, _| {
            domain.create_with("v", 1 << 30, &[quota(QUOTA)]).await.unwrap();
            let writers = (0..16).map(async |writer| {
                let mut rng = Rng::seeded(seed).fork(format!("writer {writer}"));
                for _ in 0..60 {
                    let (lba, units) = (rng.below(2 * QUOTA), 1 + rng.below(8));
                    let written = write(domain, "v", lba, units).await;
                    assert!(held(domain, "v") <= QUOTA);
                    match written {
                        // Frames of others may have freed or taken some since.
                        Ok(()) | Err(VolumeError::QuotaExceeded { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            join_all(writers).await;
            // One more at a time uses up the rest.
            for lba in 0..2 * QUOTA {
                let _ = write(domain, "v", lba, 1).await;
            }
            assert_eq!(held(domain, "v"), QUOTA);
        });
    }
}
