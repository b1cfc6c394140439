//! A drive under random requests: all of them complete, no page is lost, equal runs have equal
//! results, and times agree with values computed by hand.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use crate::support::run;
use proptest::prelude::*;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::spec::{
    ControllerSpec, DeviceSpec, FrontierScope, HostSpec, LinkSpec, PageMapped, Schedule,
    VictimPolicy, WearPolicy,
};
use softflash_drive::{AccessKind, Done, Drive, DriveError, HostRequest};
use softflash_nand::presets;

fn device() -> DeviceSpec {
    let mut array = presets::small();
    array.geometry.blocks_per_plane = 24;
    DeviceSpec::bare("small", &array)
}

/// Runs reads and writes in a closed loop, advanced by `play`; returns the completions.
fn run_played(
    drive: &mut Drive,
    play: fn(&mut Drive, &mut Vec<Done>) -> bool,
    seed: u64,
) -> Vec<Done> {
    let mut rng = Rng::seeded(seed);
    let pages = drive.capacity_bytes() / u64::from(drive.page_bytes());
    let mut done = Vec::new();
    for submitted in 0..2000 {
        while submitted - done.len() == 24 {
            assert!(play(drive, &mut done), "seed {seed}: nothing is under way");
        }
        let kind = if rng.chance(0.5) { AccessKind::Read } else { AccessKind::Write };
        let bytes = u64::from(drive.page_bytes()) * (1 + rng.below(2));
        let offset_bytes = rng.below(pages - 1) * u64::from(drive.page_bytes());
        let request = HostRequest::new(submitted as u64, kind, offset_bytes, bytes);
        drive.submit(drive.now(), request).unwrap();
    }
    while play(drive, &mut done) {}
    done
}

fn layouts() -> impl Strategy<Value = PageMapped> {
    let frontier = prop_oneof![Just(FrontierScope::Plane), Just(FrontierScope::Die)];
    let victim = prop_oneof![
        Just(VictimPolicy::GREEDY),
        Just(VictimPolicy::FIFO),
        Just(VictimPolicy::COST_BENEFIT),
        Just(VictimPolicy::d_choices(3)),
        Just(VictimPolicy::windowed_greedy(6)),
    ];
    let wear = prop_oneof![
        Just(WearPolicy::FIFO),
        Just(WearPolicy::DYNAMIC),
        Just(WearPolicy::level_by(2))
    ];
    let schedule = prop_oneof![Just(Schedule::FIFO), Just(Schedule::READS_FIRST)];
    let parity = prop_oneof![Just(0_u32), Just(3), Just(10)];
    (frontier, victim, wear, schedule, parity, any::<bool>(), any::<bool>()).prop_map(
        |(frontier, victim, wear, schedule, parity_data_pages, copyback, write_buffer)| {
            PageMapped {
                frontier,
                victim,
                wear,
                schedule,
                parity_data_pages,
                copyback,
                write_buffer,
                ..PageMapped::default()
            }
        },
    )
}

fn devices() -> impl Strategy<Value = DeviceSpec> {
    (any::<[bool; 6]>(), 0_u32..3).prop_map(|(on, depth)| {
        let mut device = device();
        device.die.cache_read = on[0];
        device.die.cache_program = on[1];
        if on[2] {
            device.link = LinkSpec {
                read_bytes_per_second: 300_000_000,
                write_bytes_per_second: 200_000_000,
                half_duplex: on[3],
            };
        }
        device.controller = ControllerSpec {
            request_ns: if on[3] { 2_000 } else { 0 },
            read_page_ns: if on[4] { 3_000 } else { 0 },
            write_page_ns: if on[3] { 5_000 } else { 0 },
            write_buffer_bytes: if on[5] { 64 * 4096 } else { 0 },
            queue_depth: 8 * depth,
            ..ControllerSpec::default()
        };
        device.host = HostSpec {
            submit_ns: if on[4] { 1_000 } else { 0 },
            complete_ns: if on[5] { 2_000 } else { 0 },
            completions_per_interrupt: 1,
        };
        device
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_request_ends_and_no_page_is_lost(
        device in devices(),
        layout in layouts(),
        op_percent in 0.0_f64..60.0,
        state in 0_u8..3,
        seed: u64,
    ) {
        let new = || {
            let mut drive = Drive::new(&device, &layout, op_percent).unwrap();
            match state {
                0 => {}
                1 => drive.fill(),
                _ => drive.make_steady(seed),
            }
            drive.check().unwrap();
            drive
        };
        let mut drive = new();
        let done = run(&mut drive, 1500, 16, seed);
        drive.check().unwrap();
        let counters = drive.counters();
        prop_assert_eq!((counters.submitted, counters.completed), (1500, 1500));
        prop_assert_eq!(drive.in_flight(), 0);
        prop_assert!(done.is_sorted_by_key(|done| done.at));
        let flashed = counters.programmed_for_host + counters.absorbed;
        prop_assert!(flashed <= counters.host_pages_written);
        prop_assert_eq!(run(&mut new(), 1500, 16, seed), done);
    }

    #[test]
    fn playing_to_the_next_end_is_playing_event_by_event(
        device in devices(),
        layout in layouts(),
        seed: u64,
    ) {
        // A read from memory completes at once; its completion is returned with this event or the
        // next.
        let layout = PageMapped { write_buffer: false, ..layout };
        let filled = || {
            let mut drive = Drive::new(&device, &layout, 20.0).unwrap();
            drive.fill();
            drive
        };
        let by_steps = run_played(&mut filled(), Drive::step, seed);
        let to_ends = |drive: &mut Drive, done: &mut Vec<Done>| {
            drive.play_to_next_completion(Time(u64::MAX), done)
        };
        prop_assert_eq!(run_played(&mut filled(), to_ends, seed), by_steps);
    }
}

#[test]
fn a_read_takes_sense_and_transfer_and_a_write_transfer_and_program() {
    let mut drive = Drive::new(&device(), &PageMapped::default(), 28.0).unwrap();
    let mut done = Vec::new();
    for (tag, kind, latency_ns) in [
        (0, AccessKind::Read, 0),
        (1, AccessKind::Write, 210_000),
        (2, AccessKind::Read, 60_000),
        (3, AccessKind::Trim, 0),
        (4, AccessKind::Read, 0),
    ] {
        let request = HostRequest::new(tag, kind, 4096, 4096);
        drive.submit(drive.now(), request).unwrap();
        while drive.step(&mut done) {}
        assert_eq!((done[tag as usize].tag, done[tag as usize].latency_ns()), (tag, latency_ns));
    }
}

#[test]
fn reads_of_what_was_never_written_end_at_once() {
    let mut drive = Drive::new(&device(), &PageMapped::default(), 28.0).unwrap();
    let read = |tag| HostRequest::new(tag, AccessKind::Read, 0, 4096);
    (0..3).for_each(|tag| drive.submit(Time::ZERO, read(tag)).unwrap());
    let mut done = Vec::new();
    assert!(drive.step(&mut done), "completions are pending");
    assert_eq!((done.len(), drive.step(&mut done)), (3, false));
}

#[test]
fn a_partial_write_reads_the_page_before() {
    let mut drive = Drive::new(&device(), &PageMapped::default(), 28.0).unwrap();
    drive.fill();
    let mut done = Vec::new();
    let request = HostRequest::new(0, AccessKind::Write, 512, 1024);
    drive.submit(Time::ZERO, request).unwrap();
    while drive.step(&mut done) {}
    assert!(done[0].latency_ns() >= 60_000 + 210_000);
    assert_eq!(drive.counters().read_for_partial_writes, 1);
}

#[test]
fn a_buffered_write_is_acknowledged_before_it_is_programmed_and_read_from_memory() {
    let mut device = device();
    device.controller.write_buffer_bytes = 1 << 20;
    device.controller.write_page_ns = 3_000;
    let mut drive = Drive::new(&device, &PageMapped::default(), 28.0).unwrap();
    let mut done = Vec::new();
    let request = |tag, kind| HostRequest::new(tag, kind, 0, 4096);
    drive.submit(Time::ZERO, request(0, AccessKind::Write)).unwrap();
    while done.is_empty() {
        drive.step(&mut done);
    }
    drive.submit(drive.now(), request(1, AccessKind::Read)).unwrap();
    while drive.step(&mut done) {}
    assert_eq!((done[0].latency_ns(), done[1].latency_ns()), (3_000, 0));
    assert_eq!(drive.now(), Time(3_000 + 210_000));
}

#[test]
fn requests_that_cannot_be_served_say_why() {
    let mut drive = Drive::new(&device(), &PageMapped::default(), 28.0).unwrap();
    let capacity_bytes = drive.capacity_bytes();
    let request = |offset_bytes, bytes| HostRequest::new(0, AccessKind::Read, offset_bytes, bytes);
    let beyond = drive.submit(Time::ZERO, request(capacity_bytes - 1, 2)).unwrap_err();
    assert!(beyond.to_string().contains("wrap the requests"), "{beyond}");
    let empty = drive.submit(Time::ZERO, request(0, 0)).unwrap_err();
    assert_eq!(empty, DriveError::Empty { offset_bytes: 0 });
    let op = Drive::new(&device(), &PageMapped::default(), -1.0).err().unwrap();
    assert_eq!(op, DriveError::OverProvisioning(-1.0));
}

#[test]
fn over_provisioning_leaves_what_it_says_and_keeps_room_to_collect() {
    let of = |op| Drive::new(&device(), &PageMapped::default(), op).unwrap().op_percent();
    assert!((of(28.0) - 28.0).abs() < 0.5);
    assert!((of(0.0) - 100.0 * 2.0 / 22.0).abs() < 0.5);
}
