//! Units that fail one after the other, each after a mount without the one before. The domain is
//! there, and each read returns the flushed data or an error; or the mount is refused.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_device::{Device, UnitsImage};
use softflash_volume::{Domain, VolumeError};
use std::time::Duration;

const UNITS: u64 = 60;

async fn write(domain: &Domain) {
    let volume = domain.volume("v").unwrap();
    for lba in 0..UNITS {
        volume.write(lba * UNIT as u64, &unit(1 + lba)).await.unwrap();
        if lba % 7 == 0 {
            volume.flush().await.unwrap();
        }
    }
    volume.flush().await.unwrap();
}

/// Compares all reads, also those of a volume without data; returns how many fail.
async fn compare(domain: &Domain, has_data: bool) -> u64 {
    let volume = domain.volume("v").unwrap();
    let mut lost = 0;
    for lba in 0..UNITS {
        let mut bytes = vec![0; UNIT];
        match volume.read(lba * UNIT as u64, &mut bytes).await {
            Ok(()) if has_data => assert_eq!(content(&bytes), 1 + lba, "{lba}"),
            Ok(()) => assert_eq!(content(&bytes), 0, "{lba}"),
            Err(error) => {
                assert!(matches!(error, VolumeError::DataLoss { .. }), "{lba}: {error}");
                lost += 1;
            }
        }
    }
    lost
}

/// Mounts while these units have failed; returns the number of lost reads, or nothing if the mount
/// is refused.
fn mount_without(testbed: &Testbed, units: &[u16], at_ns: u64, has_data: bool) -> Option<u64> {
    let mounted: Result<u64, VolumeError> = testbed.on_flash(async |queue, config, runtime| {
        testbed.kill(units, at_ns);
        let (domain, _) = Domain::mount(queue, config, runtime.clone()).await?;
        let lost = compare(&domain, has_data).await;
        domain.stop();
        Ok(lost)
    });
    mounted.ok()
}

/// A volume whose creation is proven, perhaps with data.
fn created(testbed: &Testbed, has_data: bool) -> UnitsImage {
    testbed.run(async |domain, runtime, _| {
        domain.create("v", UNITS * UNIT as u64).await.unwrap();
        if has_data {
            write(domain).await;
        }
        runtime.sleep_until(runtime.now() + Duration::from_secs(3)).await;
    });
    // Has a root, and no frames behind it.
    testbed.run(async |_, _, _| {});
    testbed.device.image(0..testbed.device.info().units).unwrap()
}

#[test]
fn units_that_fail_one_after_the_other_never_bring_older_states_back() {
    for (units, has_data) in [2, 3, 4].into_iter().flat_map(|units| [(units, false), (units, true)])
    {
        let testbed = Testbed::of_dies(units);
        let image = created(&testbed, has_data);
        for first in 0..units {
            for second in (0..units).filter(|&second| second != first) {
                testbed.device.restore(&image).unwrap();
                let lost = mount_without(&testbed, &[first], 0, has_data);
                assert!(lost.is_some_and(|lost| lost < UNITS), "{lost:?}");
                let after = mount_without(&testbed, &[first, second], 0, has_data);
                assert_eq!(after.is_some(), units > 2, "the mount had written all roots twice");
                assert!(after.is_none_or(|after| after >= lost.unwrap()), "{lost:?} {after:?}");
            }
        }
    }
}

#[test]
fn a_unit_that_fails_while_its_domain_is_mounted_never_makes_it_empty() {
    for has_data in [false, true] {
        let testbed = Testbed::of_dies(1);
        let image = created(&testbed, has_data);
        let refused = (0..60).filter(|step| {
            testbed.device.restore(&image).unwrap();
            mount_without(&testbed, &[0], 100_000 * step, has_data).is_none()
        });
        assert!(refused.count() > 0);
    }
}

#[test]
fn the_space_of_a_unit_that_dies_is_gone_and_writes_go_on_in_the_others() {
    let testbed = Testbed::of_dies(2);
    testbed.run(async |domain, _, _| {
        domain.create("v", UNITS * UNIT as u64).await.unwrap();
        let before = domain.space().usable_bytes;
        testbed.kill(&[1], 0);
        for _ in 0..4 {
            write(domain).await;
        }
        assert_eq!(compare(domain, true).await, 0);
        let after = domain.space().usable_bytes;
        assert!(after > 0 && after * 10 < before * 6, "{before} bytes before, {after} after");
    });
}

#[test]
fn a_domain_whose_only_unit_dies_is_worn_out_and_not_full() {
    let testbed = Testbed::of_dies(1);
    let refused = testbed.run(async |domain, _, _| {
        domain.create("v", UNITS * UNIT as u64).await.unwrap();
        let volume = domain.volume("v").unwrap();
        testbed.kill(&[0], 0);
        let mut refused = Vec::new();
        for lba in 0..UNITS {
            refused.extend(volume.write(lba * UNIT as u64, &unit(1)).await.err());
        }
        refused
    });
    assert!(refused.len() > 50, "{refused:?}");
    let is_full = |error: &&VolumeError| matches!(error, VolumeError::OutOfSpace { .. });
    assert_eq!(refused.iter().find(is_full), None);
}
