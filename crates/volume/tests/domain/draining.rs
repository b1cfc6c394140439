//! Units leave a domain under load, and another one gets them.

use crate::contents::{Contents, LBAS, set};
use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::{join, join_all};
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_flash::erase_units;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, VolumeError};
use std::cell::{Cell, RefCell};

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

#[test]
fn a_unit_that_cannot_be_read_stays_and_keeps_its_data() {
    let testbed = Testbed::of_dies(3);
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 3000).unwrap();
    testbed.run(async |domain, runtime, _| {
        testbed.kill(&[1], runtime.now().0);
        let refused = domain.drain(&UnitSet::from_iter([1])).await;
        assert!(matches!(refused, Err(VolumeError::NotDrained { unit: 1, .. })), "{refused:?}");
        assert_eq!(domain.counters().lost, 0, "nothing has moved as lost");
    });
}

#[test]
fn a_drain_and_its_clients_end_where_the_other_units_fail() {
    let testbed = Testbed::of_dies(2);
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 2000).unwrap();
    testbed.run(async |domain, runtime, _| {
        testbed.kill(&[0], runtime.now().0 + 1_000_000);
        let volume = domain.volume("v").unwrap();
        let clients = async {
            for lba in 0..100_000 {
                volume.write(lba % LBAS * UNIT as u64, &unit(lba)).await?;
            }
            Ok::<(), VolumeError>(())
        };
        let (drained, written) = join(domain.drain(&UnitSet::from_iter([1])), clients).await;
        assert!(drained.is_err(), "the only other unit is dead");
        drop(written);
    });
}

/// Bytes of a volume that fill half of a domain, written by 32 requests at a time; returns the time
/// that they took in nanoseconds.
async fn fill(domain: &Domain, runtime: &RuntimeHandle) -> u64 {
    domain.create("v", 1 << 40).await.unwrap();
    let volume = domain.volume("v").unwrap();
    let requests = domain.space().usable_bytes / 2 / REQUEST;
    let (start, next) = (runtime.now(), Cell::new(0));
    let client = || async {
        while next.get() < requests {
            let at = next.replace(next.get() + 1);
            volume.write(at * REQUEST, &unit(at).repeat(256)).await.unwrap();
        }
    };
    join_all((0..32).map(|_| client())).await;
    domain.flush().await.unwrap();
    runtime.now().0 - start.0
}

/// Random reads and writes of mapping units, 70 to 30, by eight clients until `is_over`; returns
/// the 99th percentile of their latencies in nanoseconds.
async fn mixed(domain: &Domain, runtime: &RuntimeHandle, is_over: impl Fn() -> bool) -> u64 {
    let volume = domain.volume("v").unwrap();
    let units = domain.space().used_bytes / UNIT as u64;
    let (latencies, is_over) = (RefCell::new(Vec::new()), &is_over);
    let client = |number: u64| {
        let (volume, latencies) = (&volume, &latencies);
        async move {
            let (mut rng, mut bytes) = (Rng::seeded(number), vec![0; UNIT]);
            while !is_over() {
                let (at, start) = (rng.below(units) * UNIT as u64, runtime.now());
                match rng.chance(0.7) {
                    true => volume.read(at, &mut bytes).await.unwrap(),
                    false => volume.write(at, &unit(at)).await.unwrap(),
                }
                latencies.borrow_mut().push(runtime.now().0 - start.0);
            }
        }
    };
    join_all((0..8).map(client)).await;
    let mut latencies = latencies.into_inner();
    latencies.sort_unstable();
    latencies[latencies.len() * 99 / 100]
}

/// Bytes of a large request.
const REQUEST: u64 = 256 * UNIT as u64;
/// The bar of a drain, over the time of the programs of its data alone.
const MOST_TIME: f64 = 1.5;
/// How much the 99th percentile of clients grows beside a drain; the bar is 2, and it is 2.4.
const MOST_LATENCY: f64 = 2.6;

#[test]
fn a_drain_takes_little_longer_than_the_programs_of_its_data_alone() {
    let testbed = Testbed::new(128, 1024);
    testbed.run(async |domain, runtime, _| {
        let filled = fill(domain, runtime).await;
        let before = domain.space().used_bytes;
        let start = runtime.now();
        let units = UnitSet::from_iter([1]);
        let (drained, moved) = join(domain.drain(&units), async { domain.draining_bytes() }).await;
        drained.unwrap();
        let took = (runtime.now().0 - start.0) as f64;
        // Three of four units program it.
        let alone = filled as f64 * moved as f64 / before as f64 * 4.0 / 3.0;
        assert!(moved > before / 5 && took < MOST_TIME * alone, "{moved} bytes: {took} of {alone}");
    });
}

#[test]
fn clients_are_served_while_a_unit_is_drained() {
    let testbed = Testbed::new(128, 1024);
    testbed.run(async |domain, runtime, _| {
        fill(domain, runtime).await;
        let end = runtime.now().0 + 500_000_000;
        let alone = mixed(domain, runtime, || runtime.now().0 > end).await;
        let is_over = Cell::new(false);
        let drain = async {
            domain.drain(&UnitSet::from_iter([1])).await.unwrap();
            is_over.set(true);
        };
        let (beside, ()) = join(mixed(domain, runtime, || is_over.get()), drain).await;
        assert!((beside as f64) < MOST_LATENCY * alone as f64, "{beside} and {alone} ns");
    });
}
