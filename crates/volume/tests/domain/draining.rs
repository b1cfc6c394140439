//! Units leave a domain under load, and another one gets them.

use crate::contents::{Contents, LBAS, set};
use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::join;
use softflash_base::UnitSet;
use softflash_flash::erase_units;
use softflash_volume::{DomainConfig, VolumeError};

/// The same device with a domain on these units.
fn other(testbed: &Testbed, domain: u16, epoch: u32, unit_slots: &[Option<u16>]) -> Testbed {
    let config = DomainConfig { domain, ..DomainConfig::default() };
    let mut other = Testbed { device: testbed.device.clone(), config, ..Testbed::new(1, 256) };
    set(&mut other, epoch, unit_slots);
    other
}

/// Erases spare units, at the epoch of a table.
fn erase(testbed: &Testbed, epoch: u32) {
    testbed.on_flash(async |queue, _, runtime| erase_units(queue, epoch, runtime).await.unwrap());
}

fn drain(testbed: &Testbed, units: &str) -> Result<(), VolumeError> {
    let units: UnitSet = units.parse().unwrap();
    testbed.run(async |domain, _, _| domain.drain(&units).await)
}

#[test]
fn units_leave_under_load_and_what_they_held_is_in_the_others() {
    let mut testbed = Testbed::new(64, 256);
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 6000).unwrap();
    testbed.run(async |domain, _, _| {
        let units = UnitSet::from_iter([1, 2]);
        let before = domain.space().usable_bytes;
        // Clients write meanwhile, and more than the units take.
        let (drained, ()) = join(domain.drain(&units), contents.write(domain, 4000)).await;
        drained.unwrap();
        assert_eq!(domain.draining_bytes(), 0);
        let space = domain.space();
        assert!(space.usable_bytes < before * 6 / 10, "{space:?} of {before}");
        let live = domain.units().into_iter().map(|unit| unit.space.open + unit.space.live);
        let live: Vec<u32> = live.collect();
        assert!(live[1] + live[2] == 0 && live[0] > 0 && live[3] > 0, "{live:?}");
        contents.compare(domain).await;
        contents.write(domain, 4000).await;
        domain.flush().await.unwrap();
    });
    set(&mut testbed, 1, &[Some(0), None, None, Some(3)]);
    contents.overwrite(&testbed, 3000).unwrap();

    // Another domain gets one of them, and finds nothing there.
    let spare = other(&testbed, 9, 1, &[Some(1), Some(2)]);
    erase(&spare, 1);
    let joined = other(&testbed, 9, 2, &[Some(1), Some(2)]);
    let mut of_other = Contents::new();
    of_other.overwrite(&joined, 3000).unwrap();
    set(&mut testbed, 2, &[Some(0), None, None, Some(3)]);
    contents.overwrite(&testbed, 1000).unwrap();
    // One comes back, at another slot.
    drain(&joined, "1").unwrap();
    erase(&other(&testbed, 9, 2, &[Some(1)]), 2);
    set(&mut testbed, 3, &[Some(0), None, Some(1), Some(3)]);
    contents.overwrite(&testbed, 6000).unwrap();
    contents.overwrite(&testbed, 0).unwrap();
    of_other.overwrite(&other(&testbed, 9, 3, &[None, Some(2)]), 1000).unwrap();
}

#[test]
fn a_unit_stays_where_its_data_do_not_fit_the_others() {
    let testbed = Testbed::new(64, 256);
    testbed.run(async |domain, _, _| {
        domain.create("v", LBAS * 64 * UNIT as u64).await.unwrap();
        let volume = domain.volume("v").unwrap();
        let most = domain.space().usable_bytes * 9 / 10 / UNIT as u64;
        for lba in 0..most {
            volume.write(lba * UNIT as u64, &unit(lba)).await.unwrap();
        }
        let space = domain.space();
        for units in ["0", "1,3", "0-3"] {
            let refused = domain.drain(&units.parse().unwrap()).await;
            let Err(VolumeError::UnitsNeeded { needed, usable }) = refused else {
                panic!("{units}: {refused:?}")
            };
            assert!(needed > usable && needed >= space.used_bytes, "{units}: {needed} {usable}");
            assert_eq!((domain.space(), domain.draining_bytes()), (space, 0));
        }
        let unknown = domain.drain(&UnitSet::from_iter([7])).await.unwrap_err();
        assert!(unknown.to_string().contains("unit 7"), "{unknown}");
        // All of them take data as before.
        for lba in 0..most {
            volume.write(lba * UNIT as u64, &unit(lba + 1)).await.unwrap();
        }
        volume.discard(0, most * 9 / 10 * UNIT as u64).await.unwrap();
        domain.drain(&UnitSet::from_iter([0])).await.unwrap();
    });
}

#[test]
fn an_empty_domain_gives_up_all_units_but_one() {
    let mut testbed = Testbed::new(64, 256);
    drain(&testbed, "0-2").unwrap();
    assert!(matches!(drain(&testbed, "0-3"), Err(VolumeError::UnitsNeeded { .. })));
    set(&mut testbed, 1, &[None, None, None, Some(3)]);
    Contents::new().overwrite(&testbed, 500).unwrap();
}
