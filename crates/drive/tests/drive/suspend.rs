//! Drives of flash that suspends programs and erases for reads.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, FrontierScope, PageMapped, Schedule};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::{Activity, SuspendTiming, presets};

const MS: u64 = 1_000_000;
const ERASE_NS: u64 = 1000 * MS;

/// The longest read of an idle die: sense and transfer.
const READ_NS: u64 = 50_000 + 10_000;

/// Flash with erases of a second. Programs are suspended in 20 us, erases in 100.
fn device() -> DeviceSpec {
    let mut array = presets::small();
    array.geometry.blocks_per_plane = 24;
    array.die.erase_ns = ERASE_NS;
    let timing = |suspend_ns| Some(SuspendTiming { suspend_ns, resume_ns: 5_000, at_most: 100 });
    (array.die.program_suspend, array.die.erase_suspend) = (timing(20_000), timing(100_000));
    DeviceSpec::bare("suspending", &array)
}

fn request(tag: u64, kind: AccessKind, page: u64) -> HostRequest {
    HostRequest::new(tag, kind, page * 4096, 4096)
}

/// The latency of a read that is submitted now.
fn read_ns(drive: &mut Drive, page: u64) -> u64 {
    const READ: u64 = 1 << 40;
    drive.submit(drive.now(), request(READ, AccessKind::Read, page)).unwrap();
    let mut done = Vec::new();
    loop {
        assert!(drive.play_to_next_completion(Time::MAX, &mut done), "the read ends");
        if let Some(read) = done.iter().find(|done| done.tag == READ) {
            return read.latency_ns();
        }
    }
}

/// Writes at random until a die erases; returns the end of the erase.
fn write_until_an_erase(drive: &mut Drive) -> u64 {
    let mut rng = Rng::seeded(1);
    drive.fill();
    drive.record(100_000);
    let erase_ends = |drive: &Drive| {
        let mut erases = drive.recorded().iter().filter(|i| i.activity == Activity::Erase);
        erases.next().map(|erase| erase.end_ns)
    };
    let mut done = Vec::new();
    for tag in 0.. {
        let page = rng.below(drive.capacity_bytes() / 4096);
        drive.submit(drive.now(), request(tag, AccessKind::Write, page)).unwrap();
        while erase_ends(drive).is_none() && done.len() as u64 <= tag {
            drive.step(&mut done);
        }
        if erase_ends(drive).is_some() {
            break;
        }
    }
    erase_ends(drive).unwrap()
}

#[test]
fn reads_during_a_long_erase_take_suspend_sense_and_transfer() {
    for schedule in [Schedule::FIFO, Schedule::READS_FIRST] {
        let layout = PageMapped { schedule, ..PageMapped::default() };
        let mut drive = Drive::new(&device(), &layout, 28.0).unwrap();
        let erase_ends = write_until_an_erase(&mut drive);
        // The programs of other dies end.
        drive.play_until(Time(drive.now().0 + 10 * MS), &mut Vec::new());
        // Neighbouring pages lie on the 8 planes of the 4 dies. Two are on the die that erases.
        let mut latencies: Vec<u64> = (0..8).map(|page| read_ns(&mut drive, page)).collect();
        latencies.sort_unstable();
        assert!(drive.now().0 < erase_ends, "all were served during the erase");
        assert_eq!(latencies[..6], [READ_NS; 6]);
        assert_eq!(latencies[6..], [100_000 + READ_NS; 2], "{schedule:?}");
    }
}

#[test]
fn a_layout_without_suspend_lets_reads_wait_for_the_erase() {
    let layout = PageMapped { suspend: false, ..PageMapped::default() };
    let mut drive = Drive::new(&device(), &layout, 28.0).unwrap();
    let erase_ends = write_until_an_erase(&mut drive);
    drive.play_until(Time(drive.now().0 + 10 * MS), &mut Vec::new());
    let longest = (0..8).map(|page| read_ns(&mut drive, page)).max().unwrap();
    assert!(longest > ERASE_NS / 2 && drive.now().0 > erase_ends, "{longest} ns");
}

#[test]
fn a_read_suspends_a_program_unless_it_is_of_the_same_block() {
    // Pages 0 and 8 are on one plane, page 4 is on the other plane of the die. The program of page
    // 8 takes from 10 to 210 us.
    for (page, expected_ns) in [(4, 20_000 + READ_NS), (0, 160_000 + READ_NS)] {
        let mut drive = Drive::new(&device(), &PageMapped::default(), 28.0).unwrap();
        let mut done = Vec::new();
        for written in [0, 4] {
            drive.submit(drive.now(), request(written, AccessKind::Write, written)).unwrap();
            while drive.step(&mut done) {}
        }
        drive.submit(drive.now(), request(8, AccessKind::Write, 8)).unwrap();
        drive.play_until(Time(drive.now().0 + 50_000), &mut done);
        assert_eq!(read_ns(&mut drive, page), expected_ns, "page {page}");
    }
}

/// Runs random requests in a closed loop; returns the completions.
fn run(drive: &mut Drive, seed: u64) -> Vec<Done> {
    let mut rng = Rng::seeded(seed);
    let pages = drive.capacity_bytes() / 4096;
    let mut done = Vec::new();
    for tag in 0..2000 {
        while tag - done.len() as u64 == 16 {
            assert!(drive.step(&mut done), "seed {seed}: nothing is under way");
        }
        let kind = if rng.chance(0.5) { AccessKind::Read } else { AccessKind::Write };
        drive.submit(drive.now(), request(tag, kind, rng.below(pages))).unwrap();
    }
    while drive.step(&mut done) {}
    done
}

#[test]
fn all_requests_end_on_drives_that_suspend_and_reads_are_faster() {
    for seed in 0..48 {
        let mut rng = Rng::seeded(seed).fork("suspending drives");
        let mut device = device();
        device.die.erase_ns = 2 * MS;
        device.die.cache_read = rng.chance(0.5);
        device.die.cache_program = rng.chance(0.5);
        let die_wide = rng.chance(0.5);
        let layout = PageMapped {
            frontier: if die_wide { FrontierScope::Die } else { FrontierScope::Plane },
            schedule: if rng.chance(0.5) { Schedule::FIFO } else { Schedule::READS_FIRST },
            parity_data_pages: if rng.chance(0.3) { 3 } else { 0 },
            copyback: rng.chance(0.5),
            ..PageMapped::default()
        };
        let [with, without] = [true, false].map(|suspend| {
            let layout = PageMapped { suspend, ..layout.clone() };
            let mut drive = Drive::new(&device, &layout, 28.0).unwrap();
            drive.fill();
            let done = run(&mut drive, seed);
            assert_eq!((done.len(), drive.in_flight()), (2000, 0), "seed {seed}");
            drive.check().unwrap();
            let reads = done.iter().filter(|done| done.kind == AccessKind::Read);
            let latencies: Vec<u64> = reads.map(Done::latency_ns).collect();
            latencies.iter().sum::<u64>() / latencies.len() as u64
        });
        assert!(with < without, "seed {seed}: reads take {with} ns instead of {without}");
    }
}
