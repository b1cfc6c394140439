//! The order of reads and writes that wait for a die.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_drive::spec::{DeviceSpec, PageMapped, Schedule};
use softflash_drive::{AccessKind, Done, Drive, HostRequest};
use softflash_nand::presets;

/// A drive of one die, filled, without collection for long.
fn drive(schedule: &str) -> Drive {
    let mut array = presets::small();
    let geometry = &mut array.geometry;
    (geometry.channels, geometry.chips_per_channel, geometry.dies_per_chip) = (1, 1, 1);
    (geometry.planes_per_die, geometry.blocks_per_plane) = (1, 2048);
    let schedule: Schedule = schedule.parse().unwrap();
    let layout = PageMapped { schedule, ..PageMapped::default() };
    let mut drive = Drive::new(&DeviceSpec::bare("one die", &array), &layout, 100.0).unwrap();
    drive.fill();
    drive
}

fn request(kind: AccessKind, page: u64) -> HostRequest {
    HostRequest::new(0, kind, page * 4096, 4096)
}

/// Keeps 16 reads and 16 writes waiting until so many have completed.
fn contend(drive: &mut Drive, until: usize) -> Vec<Done> {
    let mut done = Vec::new();
    let mut page = 0;
    let mut under_way = [0_usize; 2];
    while done.len() < until {
        for (kind, count) in [AccessKind::Read, AccessKind::Write].into_iter().zip(&mut under_way) {
            while *count < 16 {
                drive.submit(drive.now(), request(kind, page % 1000)).unwrap();
                (page, *count) = (page + 7, *count + 1);
            }
        }
        let before = done.len();
        assert!(drive.step(&mut done));
        for done in &done[before..] {
            under_way[usize::from(done.kind == AccessKind::Write)] -= 1;
        }
    }
    done
}

fn count(done: &[Done], kind: AccessKind) -> f64 {
    done.iter().filter(|done| done.kind == kind).count() as f64
}

#[test]
fn reads_and_writes_share_the_time_of_a_die_by_their_weights() {
    let die = presets::small().die;
    let mean = |times: &[u64]| times.iter().sum::<u64>() as f64 / times.len() as f64;
    for (reads, writes) in [(1.0, 1.0), (3.0, 1.0), (1.0, 4.0)] {
        let done = contend(&mut drive(&format!("weighted-fair:{reads}:{writes}")), 6000);
        let read_ns = count(&done, AccessKind::Read) * mean(&die.read_ns);
        let write_ns = count(&done, AccessKind::Write) * mean(&die.program_ns);
        let ratio = (read_ns / write_ns) / (reads / writes);
        assert!((ratio - 1.0).abs() < 0.02, "{reads}:{writes}: {ratio} of the weights");
    }
}

#[test]
fn writes_starve_behind_reads_that_go_first_but_not_behind_deadlines() {
    let written = |schedule| count(&contend(&mut drive(schedule), 3000), AccessKind::Write);
    assert_eq!(written("reads-first"), 0.0);
    assert!(written("fifo") > 1400.0);
    // The 16 writes that wait are due every 20 ms; all of it takes some 200 ms.
    let due = written("deadline:2");
    assert!((100.0..300.0).contains(&due), "{due} writes");
}

#[test]
fn an_overdue_read_goes_before_writes_and_a_write_is_not_later_than_its_deadline_allows() {
    let mut drive = drive("deadline:1");
    // 200 writes take longer than 20 ms, so the first of them are overdue after 10.
    for page in 0..200 {
        drive.submit(drive.now(), request(AccessKind::Write, page)).unwrap();
    }
    let mut done = Vec::new();
    while drive.now().0 < 4_000_000 {
        assert!(drive.step(&mut done));
    }
    // Due at 5 ms, before the writes, which are due at 10 ms.
    drive.submit(drive.now(), request(AccessKind::Read, 900)).unwrap();
    while !done.iter().any(|done| done.kind == AccessKind::Read) {
        assert!(drive.step(&mut done));
    }
    assert!(done.last().unwrap().latency_ns() < 1_000_000, "{done:?}");
    while drive.now().0 < 12_000_000 {
        assert!(drive.step(&mut done));
    }
    // Due at 13 ms, behind the writes, all of which were due at 10 ms.
    drive.submit(drive.now(), request(AccessKind::Read, 901)).unwrap();
    while drive.step(&mut done) {}
    assert_eq!(done.last().map(|done| done.kind), Some(AccessKind::Read));
}
