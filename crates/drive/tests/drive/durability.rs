//! Flushes and forced unit access: where a power loss empties the write buffer, they end when data
//! are on flash, and elsewhere at once.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_drive::{AccessKind, Done, Drive, Durability, HostRequest};
use softflash_nand::presets;

const UNIT: u64 = 4096;

/// Flash with pages of four mapping units behind a write buffer.
fn device(power_loss_protection: bool) -> DeviceSpec {
    let mut array = presets::small();
    array.geometry.page_bytes = 16_384;
    array.geometry.pages_per_block = 128;
    let mut device = DeviceSpec::bare("buffered", &array);
    device.controller.write_buffer_bytes = 1 << 20;
    device.controller.power_loss_protection = power_loss_protection;
    device
}

fn write(unit: u64, durability: Durability) -> HostRequest {
    let request = HostRequest::new(unit, AccessKind::Write, unit * UNIT, UNIT);
    HostRequest { durability, ..request }
}

/// Writes these units at once, the last of them with `durability`; returns its latency and the
/// pages whose program had begun when it ended.
fn last_of(device: &DeviceSpec, units: u64, durability: Durability) -> (u64, u64) {
    let mut drive = Drive::new(device, &PageMapped::default(), 28.0).unwrap();
    for unit in 0..units - 1 {
        drive.submit(drive.now(), write(unit, Durability::Accepted)).unwrap();
    }
    drive.submit(drive.now(), write(units - 1, durability)).unwrap();
    let mut done: Vec<Done> = Vec::new();
    while done.iter().all(|done| done.tag != units - 1) {
        assert!(drive.step(&mut done), "{} of {units} writes ended", done.len());
    }
    let last = done.iter().find(|done| done.tag == units - 1).unwrap();
    let counted = drive.counters();
    (last.latency_ns(), counted.programmed_for_host)
}

#[test]
fn a_flush_waits_for_all_before_and_forced_unit_access_for_itself() {
    let volatile = device(false);
    let program_ns = volatile.die.program_ns.iter().copied().min().unwrap();
    let (latency, on_flash) = last_of(&volatile, 9, Durability::AllBefore);
    assert!(latency >= program_ns && on_flash == 9, "{latency} ns, {on_flash} units on flash");
    let (latency, on_flash) = last_of(&volatile, 9, Durability::Itself);
    assert!(latency >= program_ns && on_flash >= 1, "{latency} ns, {on_flash} units on flash");
    let (latency, on_flash) = last_of(&volatile, 9, Durability::Accepted);
    assert!(latency == 0 && on_flash < 9, "{latency} ns, {on_flash} units on flash");
}

#[test]
fn a_protected_buffer_is_durable() {
    for durability in [Durability::AllBefore, Durability::Itself] {
        let (latency, on_flash) = last_of(&device(true), 9, durability);
        assert!(latency == 0 && on_flash < 9, "{latency} ns, {on_flash} units on flash");
    }
}

#[test]
fn a_flush_after_each_write_programs_a_part_of_a_flash_page_for_each() {
    let mut drive = Drive::new(&device(false), &PageMapped::default(), 28.0).unwrap();
    let mut done = Vec::new();
    for unit in 0..40 {
        drive.submit(drive.now(), write(7 * unit, Durability::AllBefore)).unwrap();
        while done.len() as u64 <= unit {
            assert!(drive.step(&mut done), "the flush of write {unit} does not end");
        }
    }
    let counted = drive.counters();
    assert_eq!((counted.partial_page_programs, counted.programmed_for_host), (40, 40));
    assert_eq!(counted.waf(), 4.0);
    drive.check().unwrap();
}

#[test]
fn drawn_writes_of_any_durability_end_and_equal_seeds_give_equal_runs() {
    for seed in 0..20 {
        let twice = [(); 2].map(|()| {
            let mut rng = Rng::seeded(seed).fork("durability");
            let mut drive = Drive::new(&device(false), &PageMapped::default(), 20.0).unwrap();
            drive.fill();
            let units = drive.capacity_bytes() / UNIT - 8;
            let (mut submitted, mut done) = (0, Vec::new());
            while done.len() < 2000 {
                while submitted < 2000 && submitted - done.len() < 24 {
                    let durability = match rng.below(8) {
                        0 => Durability::AllBefore,
                        1 => Durability::Itself,
                        _ => Durability::Accepted,
                    };
                    let offset = rng.below(units) * UNIT + 512 * rng.below(2);
                    let bytes = 512 * (1 + rng.below(40));
                    let kind = [AccessKind::Read, AccessKind::Write, AccessKind::Write]
                        [rng.below(3) as usize];
                    let request = HostRequest::new(submitted as u64, kind, offset, bytes);
                    drive.submit(drive.now(), HostRequest { durability, ..request }).unwrap();
                    submitted += 1;
                }
                assert!(drive.step(&mut done), "seed {seed}: {} of {submitted}", done.len());
            }
            drive.check().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            (done, drive.counters())
        });
        assert!(twice[0] == twice[1], "seed {seed}: two runs differ");
    }
}
