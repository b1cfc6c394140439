//! Tests of a drive as a device of units: the requirements of all backends, and those of drives
//! alone.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use softflash_base::random::Rng;
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::{
    Command, Device, DeviceError, Hint, LifetimeClass, OpenError, Operation, Submit, Tag, Target,
    Wake,
};
use softflash_drive::spec::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, PageMapped};
use softflash_drive::{Drive, DriveDevice, DriveError, Extents};
use softflash_policy::PlacementPolicy;
use softflash_testing::driver::{Driver, buffer_of, pattern, rows_of, target};
use std::collections::BTreeMap;

const UNITS: u16 = 3;

/// The small array behind a link, firmware, kernel and write buffer, so that every step takes time.
fn spec() -> DeviceSpec {
    let mut array = softflash_nand::presets::small();
    array.geometry.blocks_per_plane = 32;
    let mut device = DeviceSpec::bare("small", &array);
    device.link = LinkSpec {
        read_bytes_per_second: 800_000_000,
        write_bytes_per_second: 700_000_000,
        half_duplex: false,
    };
    device.controller = ControllerSpec {
        request_ns: 2_000,
        read_page_ns: 3_000,
        write_page_ns: 4_000,
        write_buffer_bytes: 16 * 4096,
        queue_depth: 8,
        ..ControllerSpec::default()
    };
    device.host = HostSpec { submit_ns: 1_000, complete_ns: 2_000, completions_per_interrupt: 1 };
    device
}

fn cut() -> Extents {
    Extents { units: UNITS, extent_bytes: 16 * 4096, queue_depth: 6, trim: false }
}

/// A used drive, so that writes cause collection.
fn used_drive() -> Drive {
    let mut drive = Drive::new(&spec(), &PageMapped::default(), 28.0).unwrap();
    drive.make_steady(1);
    drive
}

fn device_cut(cut: &Extents) -> DriveDevice {
    DriveDevice::new(used_drive(), cut, 7).unwrap()
}

fn device() -> DriveDevice {
    device_cut(&cut())
}

fn driver(device: &DriveDevice) -> Driver {
    Driver::new(device.open_queue_pair(&UnitSet::from(0..UNITS)).unwrap())
}

/// The pages that a drive has moved per page written, where a tenth of the extents has nine of ten
/// writes, and both kinds name their lifetimes, or neither.
fn moved_per_write(placement: PlacementPolicy, is_hinted: bool) -> f64 {
    let layout = PageMapped { placement, ..PageMapped::default() };
    let mut drive = Drive::new(&spec(), &layout, 28.0).unwrap();
    drive.make_steady(1);
    let device = DriveDevice::new(drive, &cut(), 7).unwrap();
    let mut driver = driver(&device);
    let blocks = u64::from(driver.geometry().blocks_per_plane);
    let hot = blocks / 10;
    let mut rng = Rng::seeded(3);
    let mut write = |driver: &mut Driver| {
        let is_hot = rng.below(10) > 0;
        let block = if is_hot { rng.below(hot) } else { hot + rng.below(blocks - hot) };
        let lifetime = if is_hot { LifetimeClass::SHORT } else { LifetimeClass::LONG };
        driver.hint = Hint::FOREGROUND;
        if is_hinted {
            driver.hint = driver.hint.lasting(lifetime);
        }
        let unit = rng.below(UNITS.into()) as u16;
        let whole = rows_of(&driver.geometry(), (unit, 0, block as u32), 0, 16);
        driver.erase(whole).unwrap();
        driver.program(whole, &vec![7; driver.target_bytes(&whole)]).unwrap();
    };
    (0..20 * blocks).for_each(|_| write(&mut driver));
    let counters = |device: &DriveDevice| {
        let counters = device.with_drive(|drive| drive.counters());
        (counters.programmed_for_collection, counters.programmed_for_host)
    };
    let before = counters(&device);
    (0..20 * blocks).for_each(|_| write(&mut driver));
    let after = counters(&device);
    (after.0 - before.0) as f64 / (after.1 - before.1) as f64
}

#[test]
fn a_drive_with_classes_places_data_by_their_lifetimes() {
    let by_hint = PlacementPolicy::by_hint(2);
    let (with, without) = (moved_per_write(by_hint, true), moved_per_write(by_hint, false));
    assert!(with < 0.9 * without, "{with:.3} with lifetimes, {without:.3} without");
    // Another drive has one class.
    let blind = |is_hinted| moved_per_write(PlacementPolicy::default(), is_hinted);
    assert_eq!(blind(true), blind(false));
}

/// The first `rows` pages of a block, freshly erased, and their new contents.
fn programmed(driver: &mut Driver, rows: u32, seed: u64) -> (Target, Vec<u8>) {
    let target = rows_of(&driver.geometry(), (1, 0, 2), 0, rows);
    driver.erase(target).unwrap();
    let bytes = pattern(seed, driver.target_bytes(&target));
    driver.program(target, &bytes).unwrap();
    (target, bytes)
}

#[test]
fn what_is_programmed_reads_back_whoever_asks() {
    for trim in [false, true] {
        let device = device_cut(&Extents { trim, ..cut() });
        let mut first = driver(&device);
        let (target, bytes) = programmed(&mut first, 8, 1);
        let middle = Target { page: 3, rows: 2, ..target };
        assert_eq!(first.read(middle).unwrap(), bytes[3 * 4096..5 * 4096]);
        let next = Target { page: 8, rows: 3, ..target };
        let more = pattern(3, first.target_bytes(&next));
        let mut data = first.pool().take(more.len());
        data.copy_from_slice(&more);
        let completion = first.run(next, Operation::Program { data, durable: true });
        assert_eq!(completion.result, Ok(()));
        assert_eq!(buffer_of(completion)[..], more, "the buffer comes back as it was");
        assert_eq!(first.run(target, Operation::Flush).result, Ok(()));
        drop(first);
        let mut second = driver(&device);
        assert_eq!(second.read(target).unwrap(), bytes);
        assert_eq!(second.read(next).unwrap(), more);
        let (target, new) = programmed(&mut second, 4, 5);
        assert_eq!(second.read(target).unwrap(), new);
        assert_eq!(second.read(next), Err(DeviceError::Erased { page: 8 }));
        device.with_drive(|drive| drive.check().unwrap());
    }
}

#[test]
fn addresses_outside_are_refused_and_buffers_come_back() {
    let device = device();
    let mut driver = driver(&device);
    let geometry = driver.geometry();
    let inside = target(1, 2, 0, 1);
    let outside = [
        Target { unit: UnitId(UNITS), ..inside },
        Target { die: 1, ..inside },
        Target { plane: 1, ..inside },
        Target { planes: 2, ..inside },
        Target { blocks: [geometry.blocks_per_plane; 4], ..inside },
        Target { page: geometry.pages_per_block, ..inside },
        Target { page: u32::MAX, rows: u32::MAX, ..inside },
        Target { rows: 0, ..inside },
        Target { rows: 2, ..inside },
    ];
    for target in outside {
        for durable in [None, Some(false)] {
            let data = driver.pool().take(4096);
            let operation = match durable {
                None => Operation::Read(data),
                Some(durable) => Operation::Program { data, durable },
            };
            let completion = driver.run(target, operation);
            let refused = matches!(completion.result, Err(DeviceError::OutOfRange(_)));
            assert!(refused, "{target:?}: {:?}", completion.result);
            assert_eq!(buffer_of(completion).len(), 4096);
        }
    }
    for target in &outside[..5] {
        assert!(matches!(driver.erase(*target), Err(DeviceError::OutOfRange(_))), "{target:?}");
        assert!(matches!(driver.mark_bad(*target), Err(DeviceError::OutOfRange(_))), "{target:?}");
    }
}

#[test]
fn the_rules_of_the_flash_are_kept() {
    let device = device();
    let mut driver = driver(&device);
    let (target, _) = programmed(&mut driver, 2, 6);
    for page in [0, 1, 3] {
        let wrong = driver.program(Target { page, rows: 1, ..target }, &[0; 4096]);
        assert!(matches!(wrong, Err(DeviceError::RuleBroken(_))), "{wrong:?}");
    }
    assert_eq!(
        driver.read(Target { page: 1, rows: 2, ..target }),
        Err(DeviceError::Erased { page: 2 })
    );
}

#[test]
fn bad_blocks_stay_bad_and_can_be_read() {
    let device = device();
    let mut own = driver(&device);
    let (target, bytes) = programmed(&mut own, 3, 7);
    own.mark_bad(target).unwrap();
    own.mark_bad(Target { blocks: [0; 4], ..target }).unwrap();
    drop(own);
    let mut own = driver(&device);
    assert_eq!(own.queue.bad_blocks(UnitId(1)), [(0, 0, 0), (0, 0, 2)]);
    assert_eq!(own.queue.bad_blocks(UnitId(0)), []);
    assert_eq!(own.read(target).unwrap(), bytes);
    let next = own.program(Target { page: 3, rows: 1, ..target }, &[0; 4096]);
    assert_eq!(next, Err(DeviceError::BadBlock { block: 2 }));
    assert_eq!(own.erase(target), Err(DeviceError::BadBlock { block: 2 }));
}

#[test]
fn units_belong_to_one_queue_pair() {
    let device = device();
    let first = device.open_queue_pair(&UnitSet::from(0..1)).unwrap();
    let rest = device.open_queue_pair(&UnitSet::from(1..UNITS)).unwrap();
    assert_eq!(first.units(), &UnitSet::from(0..1));
    assert_eq!(rest.units(), &UnitSet::from(1..UNITS));
    for range in [0..UNITS, 1..2, 0..1, UNITS..UNITS + 1, 0..0] {
        let refused = device.open_queue_pair(&UnitSet::from(range.clone())).map(drop);
        assert!(matches!(refused, Err(OpenError::Geometry(_))), "{range:?}: {refused:?}");
    }
    drop(rest);
    device.open_queue_pair(&UnitSet::from(1..2)).unwrap();
}

#[test]
fn a_unit_that_is_given_up_has_its_own_completions_in_another_queue_pair() {
    let device = device();
    let mut first = driver(&device);
    let (moved, kept) = (target(0, 2, 0, 1), target(1, 2, 0, 1));
    let bytes = vec![5; first.target_bytes(&moved)];
    first.program(moved, &bytes).unwrap();
    first.queue.give_up(UnitId(0));
    // Its first unit is that of the other queue pair.
    let mut second = Driver::new(device.open_queue_pair(&UnitSet::from(0..1)).unwrap());
    assert_eq!(second.read(moved).unwrap(), bytes);
    for (driver, target) in [(&mut first, kept), (&mut second, moved)] {
        driver.erase(target).unwrap();
        driver.program(target, &bytes).unwrap();
    }
    drop(second);
    assert_eq!(first.read(kept).unwrap(), bytes);
    assert!(matches!(first.read(moved), Err(DeviceError::OutOfRange(_))));
}

#[test]
fn a_full_unit_gives_the_command_back_and_others_take_theirs() {
    let device = device();
    let mut driver = driver(&device);
    let (target, bytes) = programmed(&mut driver, 1, 9);
    let (pool, page) = (driver.pool(), target);
    let read = move |tag, unit: u16| {
        let mut target = page;
        target.unit = UnitId(unit);
        Command {
            tag: Tag(tag),
            target,
            operation: Operation::Read(pool.take(4096)),
            hint: Hint::FOREGROUND,
        }
    };
    let now = driver.now;
    for tag in 1000..1006 {
        let command = read(tag, 1);
        assert!(matches!(driver.queue.submit(now, command), Submit::Accepted));
    }
    let command = read(1006, 1);
    assert!(matches!(driver.queue.submit(now, command), Submit::Full(_)));
    let command = read(1007, 0);
    assert!(matches!(driver.queue.submit(now, command), Submit::Accepted));
    let mut completions = driver.drain();
    assert_eq!(driver.queue.wake(), Wake::Idle);
    completions.sort_by_key(|completion| completion.tag);
    assert_eq!(completions.len(), 7);
    assert_eq!(completions.pop().unwrap().result, Err(DeviceError::Erased { page: 0 }));
    for completion in completions {
        assert_eq!(completion.result, Ok(()));
        assert_eq!(buffer_of(completion)[..], bytes);
    }
}

#[test]
fn a_queue_pair_may_be_dropped_with_commands_under_way() {
    let device = device();
    for round in 0..20 {
        let mut driver = driver(&device);
        driver.now = Time(round * 1_000_000);
        let target = rows_of(&driver.geometry(), (0, 0, 1), 0, 8);
        driver.erase(target).unwrap();
        let bytes = pattern(round, 8 * 4096);
        let mut data = driver.pool().take(bytes.len());
        data.copy_from_slice(&bytes);
        driver.submit(target, Operation::Program { data, durable: false });
        if round % 2 == 0 {
            driver.queue.poll(driver.now, &mut Vec::new());
        }
        drop(driver);
        let mut other = Driver::new(device.open_queue_pair(&UnitSet::from(0..1)).unwrap());
        assert_eq!(other.read(target).unwrap(), bytes, "there as a whole");
    }
    device.with_drive(|drive| drive.check().unwrap());
}

#[test]
fn one_command_costs_what_the_same_request_costs_the_drive() {
    let device =
        DriveDevice::new(Drive::new(&spec(), &PageMapped::default(), 28.0).unwrap(), &cut(), 7)
            .unwrap();
    let mut driver = driver(&device);
    let target = target(0, 0, 0, 16);
    let start = driver.now;
    driver.program(target, &[7; 16 * 4096]).unwrap();
    // Submission, firmware for the request and page after page (the link is faster), completion.
    let crossing_ns = (16_u64 * 4096 * 1_000_000_000).div_ceil(700_000_000);
    let first_page_ns = crossing_ns - crossing_ns / 16 * 15;
    let last_page_ns = crossing_ns.max(first_page_ns + 2_000 + 15 * 4_000);
    let least_ns = 1_000 + last_page_ns + 4_000 + 2_000;
    let took_ns = driver.now.since_ns(start);
    assert!((least_ns..least_ns + 4_000).contains(&took_ns), "{took_ns} for {least_ns}");
    assert_eq!(device.with_drive(|drive| drive.counters().host_pages_written), 16);
}

/// Random commands on two queue pairs that share a clock; returns the completions, with times and
/// bytes.
fn run(seed: u64) -> Vec<(u64, u64, Vec<u8>)> {
    let device = device();
    let mut queues = [
        device.open_queue_pair(&UnitSet::from(0..1)).unwrap(),
        device.open_queue_pair(&UnitSet::from(1..3)).unwrap(),
    ];
    let mut rng = Rng::seeded(seed);
    let mut written: BTreeMap<(u16, u32), Vec<u8>> = BTreeMap::new();
    let mut expected: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    let (mut ended, mut completions, mut now, mut under_way) =
        (Vec::new(), Vec::new(), Time::ZERO, 0);
    for tag in 0..3000 {
        let (unit, block) = (rng.below(3) as u16, rng.below(8) as u32);
        let bytes = written.entry((unit, block)).or_default();
        let rows = (bytes.len() / 4096) as u32;
        let queue = &mut queues[usize::from(unit > 0)];
        let (target, operation) = match rng.below(10) {
            0..=4 if rows < 16 => {
                let count = 1 + rng.below(u64::from(16 - rows).min(5)) as u32;
                let new = pattern(rng.next_u64(), count as usize * 4096);
                let mut data = queue.buffers().take(new.len());
                data.copy_from_slice(&new);
                bytes.extend(&new);
                (target(unit, block, rows, count), Operation::Program { data, durable: false })
            }
            5..=8 if rows > 0 => {
                let first = rng.below(u64::from(rows)) as u32;
                let count = 1 + rng.below(u64::from(rows - first)) as u32;
                let place = first as usize * 4096..(first + count) as usize * 4096;
                expected.insert(tag, bytes[place.clone()].to_vec());
                let buffer = queue.buffers().take(place.len());
                (target(unit, block, first, count), Operation::Read(buffer))
            }
            _ if rows == 16 => {
                bytes.clear();
                (target(unit, block, 0, 1), Operation::Erase)
            }
            _ => continue,
        };
        let mut command = Command { tag: Tag(tag), target, operation, hint: Hint::FOREGROUND };
        under_way += 1;
        loop {
            match queue.submit(now, command) {
                Submit::Accepted => break,
                Submit::Full(back) => command = back,
            }
            if let Wake::At(at) = queue.wake() {
                now = now.max(at);
            }
            queue.poll(now, &mut completions);
        }
        if rng.chance(0.3) {
            now = Time(now.0 + rng.below(100_000));
        }
    }
    while let Some(at) = queues
        .iter()
        .filter_map(|queue| match queue.wake() {
            Wake::At(at) => Some(at),
            Wake::Now => Some(now),
            _ => None,
        })
        .min()
    {
        now = now.max(at);
        for queue in &mut queues {
            let before = completions.len();
            queue.poll(now, &mut completions);
            for completion in &completions[before..] {
                assert!(completion.finished_at <= now);
            }
        }
    }
    for completion in completions {
        assert_eq!(completion.result, Ok(()), "{:?}", completion.tag);
        let bytes = completion.buffer.map_or_else(Vec::new, |buffer| buffer.to_vec());
        if let Some(expected) = expected.remove(&completion.tag.0) {
            assert!(bytes == expected, "wrong bytes for {:?}", completion.tag);
        }
        ended.push((completion.tag.0, completion.finished_at.0, bytes));
    }
    assert_eq!(ended.len(), under_way);
    device.with_drive(|drive| drive.check().unwrap());
    assert!(device.with_drive(|drive| drive.counters().programmed_for_collection) > 0);
    ended
}

#[test]
fn random_commands_end_with_what_was_written_and_equal_runs_are_equal() {
    for seed in 0..6 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}

/// A caller that wakes at the requested time gets each completion at its time, not later.
#[test]
fn nobody_is_woken_too_late() {
    for depth in [0, 4] {
        let mut spec = spec();
        spec.controller.queue_depth = depth;
        let mut drive = Drive::new(&spec, &PageMapped::default(), 28.0).unwrap();
        drive.make_steady(3);
        let device = DriveDevice::new(drive, &Extents { queue_depth: 64, ..cut() }, 7).unwrap();
        let mut queues: Vec<_> = (0..UNITS)
            .map(|unit| device.open_queue_pair(&UnitSet::from(unit..unit + 1)).unwrap())
            .collect();
        let mut rng = Rng::seeded(5);
        let mut now = Time::ZERO;
        let (mut tag, mut ended, mut wakes) = (0, 0, 0);
        let mut pages = [0_u32; UNITS as usize];
        while ended < 3000 {
            for unit in 0..UNITS {
                for _ in 0..rng.below(4) {
                    let place = &mut pages[usize::from(unit)];
                    let block = *place / 16 % 20;
                    let queue = &mut queues[usize::from(unit)];
                    if *place % 16 == 0 {
                        let erase = Command {
                            tag: Tag(tag),
                            target: target(unit, block, 0, 1),
                            operation: Operation::Erase,
                            hint: Hint::FOREGROUND,
                        };
                        if matches!(queue.submit(now, erase), Submit::Full(_)) {
                            break;
                        }
                        tag += 1;
                    }
                    let data = queue.buffers().take(4096);
                    let (page, rows) = (*place % 16, 1);
                    let operation = match rng.below(2) {
                        0 => Operation::Program { data, durable: true },
                        _ if page > 0 => Operation::Read(data),
                        _ => continue,
                    };
                    let programs = matches!(operation, Operation::Program { .. });
                    let page = if programs { page } else { 0 };
                    let target = target(unit, block, page, rows);
                    let command =
                        Command { tag: Tag(tag), target, operation, hint: Hint::FOREGROUND };
                    if matches!(queue.submit(now, command), Submit::Full(_)) {
                        break;
                    }
                    tag += 1;
                    *place += u32::from(programs);
                }
            }
            let next = queues.iter().filter_map(|queue| match queue.wake() {
                Wake::At(at) => Some(at.max(now)),
                Wake::Now => Some(now),
                _ => None,
            });
            now = next.min().unwrap();
            for queue in &mut queues {
                // Polls only the queue pairs that are due.
                let due = match queue.wake() {
                    Wake::At(at) => at <= now,
                    Wake::Now => true,
                    _ => false,
                };
                if due {
                    wakes += 1;
                    let mut completions = Vec::new();
                    queue.poll(now, &mut completions);
                    for completion in completions {
                        assert_eq!(completion.finished_at, now, "{:?}", completion.tag);
                        ended += 1;
                    }
                }
            }
        }
        assert!(wakes < 20 * ended, "{wakes} wakes for {ended} ends");
    }
}

#[test]
fn a_drive_that_cannot_be_cut_so_says_why() {
    for wrong in [
        Extents { units: 0, ..cut() },
        Extents { extent_bytes: 0, ..cut() },
        Extents { extent_bytes: 4096 + 512, ..cut() },
        Extents { extent_bytes: 1 << 40, ..cut() },
    ] {
        let refused = DriveDevice::new(used_drive(), &wrong, 7).err();
        assert!(matches!(refused, Some(DriveError::Extents { .. })), "{wrong:?}: {refused:?}");
    }
}
