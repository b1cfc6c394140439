use crate::testbed::{Testbed, UNIT, content, unit};
use futures_util::future::join_all;
use softflash_device::{Device, FileDevice, FileFormat, OpenOptions, format_file};
use softflash_runtime::VirtualExecutor;
use softflash_volume::{Domain, DomainConfig, VolumeError};

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

/// What is under way counts: otherwise many writes at once would take the space that collection
/// needs, and overwrites would be refused.
#[test]
fn many_writes_at_once_fill_a_domain_no_further_than_it_can_hold() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 1 << 40).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let fits = domain.space().usable_bytes / UNIT as u64;
        // Up to a little below the limit, and then much more at once.
        let before = fits - 20;
        for lba in 0..before {
            volume.write(lba * UNIT as u64, &unit(lba)).await.unwrap();
        }
        let volume = &volume;
        let write = async |lba: u64| volume.write(lba * UNIT as u64, &unit(lba)).await;
        let results = join_all((before..before + 2000).map(write)).await;
        let space = domain.space();
        assert!(space.used_bytes <= space.usable_bytes, "{space:?}");
        let written = results.iter().filter(|result| result.is_ok()).count() as u64;
        assert_eq!(space.used_bytes, (before + written) * UNIT as u64);
        assert_eq!(space.used_bytes, space.usable_bytes, "and as far as it can");
        let overwrites = join_all((0..before).map(write)).await;
        assert!(
            overwrites.iter().all(Result::is_ok),
            "{:?}",
            overwrites.iter().find(|r| r.is_err())
        );
        // Several writes of one place take space once.
        volume.discard(0, 4 * UNIT as u64).await.unwrap();
        let same = join_all((0..200).map(|write: u64| {
            let data = unit(write);
            async move { volume.write(write % 4 * UNIT as u64, &data).await }
        }));
        assert!(same.await.iter().all(Result::is_ok));
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

/// No flush has proven any frame, so that the mount may find all of them uncertain.
#[test]
fn a_domain_that_one_write_without_a_flush_filled_is_mounted_again() {
    const MIB: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flash");
    let mut format = FileFormat::new(130 << 20, 9);
    (format.units, format.superblock_bytes) = (1, MIB as u64);
    format_file(&path, &format).unwrap();
    let data: Vec<u8> = (0..87 * MIB / UNIT).flat_map(|lba| unit(lba as u64)).collect();
    for session in 0..3 {
        let device = FileDevice::open(&path, OpenOptions::default()).unwrap();
        let executor = VirtualExecutor::new(1_000_000);
        executor.block_on(async {
            let queue = device.open_queue_pair(&device.info().all_units()).unwrap();
            let config = DomainConfig::default();
            let mounted = Domain::mount(queue, config, executor.handle()).await;
            let (domain, _) = mounted.unwrap_or_else(|error| panic!("session {session}: {error}"));
            if session == 0 {
                domain.create("v", 100 << 20).await.unwrap();
                domain.volume("v").unwrap().write(0, &data).await.unwrap();
            } else {
                let mut read = vec![0; data.len()];
                domain.volume("v").unwrap().read(0, &mut read).await.unwrap();
                assert!(read == data, "session {session}");
            }
            domain.stop();
        });
    }
}
