//! Giving up all volumes of a domain.

use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::{Either, select};
use softflash_device::UnitsImage;
use softflash_volume::{Domain, VolumeError};
use std::pin::pin;
use std::time::Duration;

fn filled(testbed: &Testbed) {
    testbed.run(async |domain, _, _| {
        domain.create("v", 1 << 30).await.unwrap();
        let volume = domain.volume("v").unwrap();
        for lba in 0..300 {
            volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
        }
        domain.snapshot("v", "s").await.unwrap();
        domain.checkpoint().await.unwrap();
        for lba in 0..20 {
            volume.write(lba * UNIT as u64, &unit(lba + 7)).await.unwrap();
        }
        domain.flush().await.unwrap();
    });
}

fn give_up(testbed: &Testbed) -> Result<u32, VolumeError> {
    testbed.on_flash(async |queue, config, runtime| Domain::give_up(queue, config, runtime).await)
}

/// The domain is empty, takes data again, and keeps them.
fn is_empty_and_works(testbed: &Testbed) {
    for round in 0..3 {
        testbed.run(async |domain, _, _| {
            if round == 0 {
                assert_eq!((domain.list().len(), domain.space().used_bytes), (0, 0));
                domain.create("v", 1 << 30).await.unwrap();
            }
            let volume = domain.volume("v").unwrap();
            for lba in 0..300 {
                let mut read = vec![0; UNIT];
                volume.read(lba * UNIT as u64, &mut read).await.unwrap();
                let before = if round > 0 && lba < 50 { unit(lba + 100) } else { unit(0) };
                assert!(read == before, "round {round}, unit {lba}");
            }
            for lba in 0..50 {
                volume.write(lba * UNIT as u64, &unit(lba + 100)).await.unwrap();
            }
            domain.flush().await.unwrap();
        });
    }
}

#[test]
fn a_domain_that_was_given_up_is_empty_and_works() {
    let testbed = Testbed::new(16, 256);
    filled(&testbed);
    assert!(give_up(&testbed).unwrap() > 3);
    is_empty_and_works(&testbed);
}

#[test]
fn an_empty_domain_can_be_given_up() {
    let testbed = Testbed::new(16, 256);
    give_up(&testbed).unwrap();
    give_up(&testbed).unwrap();
    is_empty_and_works(&testbed);
}

/// Every head of a frame, and so every root, is damaged.
fn without_heads(image: UnitsImage) -> UnitsImage {
    image.changed(|page| {
        if page.starts_with(b"SFVFRAME") {
            page[80] ^= 1;
        }
    })
}

#[test]
fn a_domain_that_cannot_be_read_at_all_can_be_given_up() {
    let testbed = Testbed::new(16, 256);
    filled(&testbed);
    let image = testbed.device.image(0..4).unwrap();
    testbed.device.restore(&without_heads(image)).unwrap();
    assert!(give_up(&testbed).unwrap() > 3);
    is_empty_and_works(&testbed);
}

/// Whether the domain has what was written before, of which nothing may be missing then.
fn has_old_data(testbed: &Testbed) -> bool {
    testbed.run(async |domain, _, _| {
        let Ok(volume) = domain.volume("v") else { return false };
        for lba in 0..300 {
            let mut read = vec![0; UNIT];
            volume.read(lba * UNIT as u64, &mut read).await.unwrap();
            let written = if lba < 20 { lba + 7 } else { lba + 1 };
            assert!(read == unit(written), "unit {lba}");
        }
        true
    })
}

#[test]
fn an_interrupted_give_up_has_not_begun_or_is_complete() {
    let testbed = Testbed::new(16, 256);
    filled(&testbed);
    let image = testbed.device.image(0..4).unwrap();
    let (mut kept, mut empty) = (0, 0);
    for microseconds in (0..).step_by(300) {
        testbed.device.restore(&image).unwrap();
        let is_over = testbed.on_flash(async |queue, config, runtime| {
            let work = pin!(Domain::give_up(queue, config, runtime.clone()));
            let cut = runtime.sleep_until(runtime.now() + Duration::from_micros(microseconds));
            matches!(select(work, cut).await, Either::Left(_))
        });
        match has_old_data(&testbed) {
            true => kept += 1,
            false => {
                empty += 1;
                is_empty_and_works(&testbed);
            }
        }
        if is_over {
            break;
        }
    }
    println!("cut {} times: {kept} times everything is kept", kept + empty);
    assert!(kept > 3 && empty > 1, "{kept} times everything is kept, {empty} times nothing");
}

#[test]
fn the_only_volume_of_a_domain_can_be_deleted() {
    let testbed = Testbed::new(16, 256);
    filled(&testbed);
    testbed.run(async |domain, _, _| {
        domain.delete_snapshot("v", "s").await.unwrap();
        domain.delete("v").await.unwrap();
        domain.checkpoint().await.unwrap();
    });
    is_empty_and_works(&testbed);
}
