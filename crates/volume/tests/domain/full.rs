use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_volume::VolumeError;

#[test]
fn a_full_domain_refuses_new_data_takes_overwrites_and_recovers_by_discards() {
    let testbed = Testbed::new(32, 256);
    let mut fits = 0;
    testbed.run(async |domain, _, _| {
        domain.create("v", 1 << 40).await.unwrap();
        let volume = domain.volume("v").unwrap();
        loop {
            match volume.write(fits * UNIT as u64, &unit(fits + 1)).await {
                Ok(()) => fits += 1,
                Err(VolumeError::OutOfSpace { used, usable }) => {
                    assert_eq!((used, usable), (fits * UNIT as u64, fits * UNIT as u64));
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let space = domain.space();
        assert_eq!(space.used_bytes, space.usable_bytes);
        assert!(space.usable_bytes * 10 > space.flash_bytes * 5, "{space:?}");
        for round in 0..3 {
            for lba in 0..fits {
                volume.write(lba * UNIT as u64, &unit(lba + round)).await.unwrap();
            }
        }
        volume.discard(0, 100 * UNIT as u64).await.unwrap();
        for lba in 0..100 {
            volume.write((fits + lba) * UNIT as u64, &unit(7)).await.unwrap();
        }
        assert!(volume.write(0, &unit(7)).await.is_err());
        volume.flush().await.unwrap();
    });
    testbed.run(async |domain, _, _| {
        domain.delete("v").await.unwrap();
        assert_eq!(domain.space().used_bytes, 0);
        domain.create("w", 1 << 40).await.unwrap();
        let volume = domain.volume("w").unwrap();
        for lba in 0..fits {
            volume.write(lba * UNIT as u64, &unit(lba)).await.unwrap();
        }
    });
}

/// One mapping unit every 4 MiB of a thin volume: each has a leaf of the map of its own, with a
/// copy, which takes four times its space.
#[test]
fn a_sparse_volume_is_full_when_its_map_leaves_no_space_and_is_mounted_again() {
    const APART: u64 = 1024 * UNIT as u64;
    let testbed = Testbed::new(32, 256);
    let mut fits = 0;
    testbed.run(async |domain, _, _| {
        domain.create("v", 1 << 40).await.unwrap();
        let volume = domain.volume("v").unwrap();
        loop {
            match volume.write(fits * APART, &unit(fits + 1)).await {
                Ok(()) => fits += 1,
                Err(VolumeError::OutOfSpace { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(domain.space().is_full);
        for round in 0..3 {
            for at in 0..fits {
                volume.write(at * APART, &unit(at + round)).await.unwrap();
            }
            domain.checkpoint().await.unwrap();
        }
    });
    let most = testbed.run(async |domain, _, _| domain.space().flash_bytes / UNIT as u64);
    assert!((most / 20..most / 5).contains(&fits), "{fits} of {most} mapping units");
    testbed.run(async |domain, _, _| {
        let volume = domain.volume("v").unwrap();
        for at in 0..fits {
            let mut read = vec![0; UNIT];
            volume.read(at * APART, &mut read).await.unwrap();
            assert_eq!(content(&read), at + 2);
        }
        volume.discard(0, fits / 2 * APART).await.unwrap();
        domain.checkpoint().await.unwrap();
        for at in fits..fits + fits / 3 {
            volume.write(at * APART, &unit(at)).await.unwrap();
        }
    });
}
