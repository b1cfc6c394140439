use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::random::Rng;
use softflash_volume::VolumeError;

#[test]
fn what_was_written_is_read_and_all_else_is_zeros() {
    Testbed::new(32, 256).run(async |domain, _, report| {
        assert_eq!(report.superblocks, 0);
        domain.create("v", 4 << 20).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let data: Vec<u8> = (1..=100).flat_map(unit).collect();
        volume.write(8 * UNIT as u64, &data).await.unwrap();
        volume.discard(50 * UNIT as u64, 3 * UNIT as u64).await.unwrap();
        let mut read = vec![0xee; 120 * UNIT];
        volume.read(0, &mut read).await.unwrap();
        let found: Vec<u64> = read.chunks(UNIT).map(content).collect();
        let expected = (0..120).map(|lba| match lba {
            8..50 | 53..108 => lba - 7,
            _ => 0,
        });
        assert_eq!(found, expected.collect::<Vec<u64>>());
        let allocated = volume.allocated(0, 60 * UNIT as u64).unwrap();
        assert_eq!(allocated.iter().filter(|&&data| data).count(), 60 - 8 - 3);
    });
}

#[test]
fn requests_that_do_not_fit_are_refused_and_change_nothing() {
    Testbed::new(32, 256).run(async |domain, _, _| {
        domain.create("v", 10 * UNIT as u64).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let refused = volume.write(9 * UNIT as u64, &[0; 2 * UNIT]).await;
        assert!(matches!(refused, Err(VolumeError::BeyondEnd { .. })), "{refused:?}");
        let refused = volume.read(1, &mut [0; UNIT]).await;
        assert!(matches!(refused, Err(VolumeError::Unaligned { .. })), "{refused:?}");
        let refused = domain.create("v", 1 << 20).await;
        assert!(matches!(refused, Err(VolumeError::Exists { .. })), "{refused:?}");
        for name in ["", "-v", "a b", "a/b", "a@b"] {
            assert!(matches!(domain.create(name, 4096).await, Err(VolumeError::BadName { .. })));
        }
        for bytes in [0, 100, 1 << 60] {
            let refused = domain.create("w", bytes).await;
            assert!(matches!(refused, Err(VolumeError::BadSize { .. })), "{refused:?}");
        }
        assert!(matches!(domain.volume("w").err(), Some(VolumeError::NoVolume { .. })));
        assert_eq!(domain.list().len(), 1);
    });
}

#[test]
fn everything_flushed_is_there_after_a_power_cut() {
    let testbed = Testbed::new(32, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", 4 << 20).await.unwrap();
        let volume = domain.volume("v").unwrap();
        for lba in 0..500 {
            volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
        }
        volume.flush().await.unwrap();
    });
    for _ in 0..3 {
        testbed.run(async |domain, _, report| {
            assert!(report.root > 0 || report.frames > 0, "{report:?}");
            let volume = domain.volume("v").unwrap();
            let mut read = vec![0; 500 * UNIT];
            volume.read(0, &mut read).await.unwrap();
            assert!((1..).zip(read.chunks(UNIT)).all(|(at, bytes)| content(bytes) == at));
        });
    }
}

#[test]
fn a_volume_is_overwritten_many_times_and_collection_keeps_up() {
    let testbed = Testbed::new(32, 256);
    let lbas = 3000;
    let mut newest = vec![0; lbas as usize];
    testbed.run(async |domain, _, _| {
        domain.create("v", lbas * UNIT as u64).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let mut rng = Rng::seeded(3);
        for step in 1..40_000 {
            let lba = rng.below(lbas);
            volume.write(lba * UNIT as u64, &unit(step)).await.unwrap();
            newest[lba as usize] = step;
        }
        volume.flush().await.unwrap();
        let counters = domain.counters();
        assert!(counters.released > 300 && counters.checkpoints > 0, "{counters:?}");
    });
    testbed.run(async |domain, _, _| {
        let volume = domain.volume("v").unwrap();
        let mut read = vec![0; newest.len() * UNIT];
        volume.read(0, &mut read).await.unwrap();
        let found: Vec<u64> = read.chunks(UNIT).map(content).collect();
        assert_eq!(found, newest);
    });
}
