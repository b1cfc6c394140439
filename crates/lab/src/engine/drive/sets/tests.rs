//! A reader of single pages beside a writer, on the sets of a small device.

use super::group::{Group, Set};
use crate::cell::{Cell, unattended};
use crate::engine::drive::tests::cell;
use crate::layout::{LayoutKind, Sets};
use crate::workload::Workload;
use crate::{LabError, Outcome, Precondition};
use softflash_base::histogram::LatencySummary;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Time};
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_drive::{Drive, HostRequest};
use softflash_mapping::Window;
use softflash_policy::Schedule;
use softflash_workload::{BlockWorkload, Flow, FlowWorkload, Load, Pattern, RequestSize};
use std::sync::atomic::AtomicBool;

const TWO: Sets = Sets { sets: 2, copies: 2, window_ms: 0, pressure: 0.0 };

fn flow(name: &str, read_fraction: f64, queue_depth: u32) -> Flow {
    let mut workload = BlockWorkload::new(name, RequestSize::Fixed(4096), Pattern::Random);
    (workload.read_fraction, workload.load) = (read_fraction, Load::closed(1, queue_depth));
    workload.into()
}

fn tried(sets: Sets, change: impl FnOnce(&mut Cell)) -> Result<Outcome, LabError> {
    let (_, mut cell) = cell(Load::closed(1, 1), 30_000);
    cell.parameters.precondition = Precondition::STEADY;
    cell.layout.sets = sets;
    if let LayoutKind::PageMapped(layout) = &mut cell.layout.kind {
        layout.schedule = Schedule::READS_FIRST;
    }
    let flows = vec![flow("reader", 1.0, 1), flow("writer", 0.0, 16)];
    cell.workload = Workload::Flows(FlowWorkload::new("flows", flows));
    change(&mut cell);
    let stop = AtomicBool::new(false);
    crate::engine::run(&cell, &unattended(&stop))
}

fn run(sets: Sets) -> Outcome {
    tried(sets, |_| {}).unwrap()
}

fn reads(outcome: &Outcome) -> LatencySummary {
    outcome.flows.iter().find(|flow| flow.name == "reader").unwrap().read_latency
}

#[test]
fn windows_make_reads_as_calm_as_those_of_an_idle_drive() {
    let idle = tried(Sets::default(), |cell| {
        cell.workload = Workload::Flows(FlowWorkload::new("idle", vec![flow("reader", 1.0, 1)]));
    });
    let [idle, plain, copies, windows] =
        [idle.unwrap(), run(Sets::default()), run(TWO), run(Sets { window_ms: 50, ..TWO })]
            .map(|outcome| reads(&outcome));
    assert!(windows.p999_ns <= 2 * idle.p999_ns, "{windows:?} beside {idle:?} of an idle drive");
    assert!(copies.mean_ns < 0.9 * plain.mean_ns, "{copies:?} beside {plain:?} of one drive");
    assert!(windows.mean_ns < 0.9 * copies.mean_ns, "{windows:?} beside {copies:?}");
}

#[test]
fn every_copy_has_all_writes() {
    for (sets, window_ms) in [(2, 0), (2, 20), (4, 0), (1, 0)] {
        let copies = sets.min(2);
        let outcome = tried(Sets { sets, copies, window_ms, pressure: 0.5 }, |cell| {
            cell.device.geometry.channels = 4;
        });
        let outcome = outcome.unwrap();
        assert_eq!(outcome.requests, outcome.completed);
        let written = outcome.bytes_written / 4096 * u64::from(copies);
        let programmed = outcome.programs.host;
        let waits = outcome.figures.get("staged_max_bytes").map_or(0.0, |bytes| bytes / 4096.0);
        assert!(programmed <= written, "{programmed} of {written} pages with {sets} sets");
        assert!(
            programmed as f64 >= written as f64 - 2.0 * waits - 64.0,
            "{programmed} of {written} pages with {sets} sets, {waits} in memory"
        );
        assert_eq!(outcome.die_utilisation.len(), 8, "all dies of the device");
    }
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let texts = [(); 2].map(|()| {
        let outcome = run(Sets { window_ms: 30, ..TWO });
        serde_json::to_string(&outcome).unwrap()
    });
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn a_warm_up_takes_its_time() {
    let outcome = tried(Sets { window_ms: 20, ..TWO }, |cell| {
        (cell.parameters.warm_up_ms, cell.parameters.requests) = (2000, Some(100));
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.requests, outcome.completed), (100, 100));
    // Each takes 20 ms and as long as its set takes to come to rest.
    let windows = outcome.figures["windows"];
    assert!((50.0..=100.0).contains(&windows), "{windows} windows in two seconds");
}

#[test]
fn a_request_across_the_bounds_of_sets_ends_once() {
    let outcome = tried(Sets { copies: 1, ..TWO }, |cell| {
        let mut workload = BlockWorkload::new("w", RequestSize::Fixed(1 << 20), Pattern::Random);
        (workload.load, workload.align_bytes) = (Load::closed(1, 4), Some(4096));
        cell.workload = Workload::Block(workload);
        cell.parameters.requests = Some(500);
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.requests, outcome.completed), (500, 500));
    assert_eq!(outcome.bytes_read + outcome.bytes_written, 500 << 20);
}

/// While a set only reads, nothing on it is programmed and nothing erased.
#[test]
fn a_deterministic_set_programs_and_erases_nothing() {
    let seed = 3;
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let mut device = DeviceSpec::bare("small", &softflash_nand::presets::small());
    device.geometry.blocks_per_plane = 32;
    let sets = (0..2).map(|number| {
        let mut drive = Drive::new(&device, &PageMapped::default(), 14.0).unwrap();
        drive.make_steady(number);
        drive.clear_counters();
        Set::new(drive, 8, false)
    });
    let mut group = Group::new(sets.collect(), Some(100_000_000), 5000);
    let pages = group.sets()[0].drive().capacity_bytes() / 4096;
    let of = |group: &Group, set: usize| {
        let counters = group.sets()[set].drive().counters();
        let busy: u64 = (0..4).map(|die| group.sets()[set].drive().die_busy_ns(die)).sum();
        (counters.programmed(), counters.erases, busy)
    };
    let (mut now, mut ended, mut under_way) = (Time(0), Vec::new(), 0);
    let mut calm: [Option<(u64, u64, u64)>; 2] = [None; 2];
    for tag in 0..20_000 {
        while under_way < 16 {
            let write = HostRequest::new(tag, AccessKind::Write, rng.below(pages) * 4096, 4096);
            group.take(now, write).unwrap();
            under_way += 1;
        }
        while ended.is_empty() {
            now = group.next_at().unwrap();
            group.step(&mut ended).unwrap();
            for (set, calm) in calm.iter_mut().enumerate() {
                let is_calm = group.windows().is_some_and(|it| it.of(set) == Window::Deterministic);
                match (is_calm, *calm) {
                    (true, Some(before)) => assert_eq!(of(&group, set), before, "set {set}"),
                    (true, None) => *calm = Some(of(&group, set)),
                    (false, _) => *calm = None,
                }
            }
        }
        under_way -= ended.drain(..).count();
    }
    let windows = group.windows().unwrap();
    assert!(windows.ended() > 20, "{} windows", windows.ended());
    let most_staged_bytes: Vec<u64> = group.sets().iter().map(Set::most_staged_bytes).collect();
    let a_window_writes = 20_000 * 4096 / windows.ended();
    assert!(
        most_staged_bytes.iter().all(|&bytes| bytes < 4 * a_window_writes),
        "{most_staged_bytes:?} bytes waited, a window writes {a_window_writes}"
    );
}

#[test]
fn sets_that_a_device_or_a_host_cannot_have_are_refused() {
    let problem = |sets: Sets| tried(sets, |_| {}).unwrap_err().to_string();
    assert!(problem(Sets { sets: 3, copies: 1, ..TWO }).contains("whole channels"));
    assert!(problem(Sets { sets: 2, copies: 3, ..TWO }).contains("copies = 3"));
    assert!(problem(Sets { copies: 1, window_ms: 5, ..TWO }).contains("copies = 2 or more"));
    assert!(problem(Sets { pressure: -1.0, ..TWO }).contains("pressure = -1"));
    let many =
        tried(TWO, |cell| cell.parameters.precondition = Precondition::Random4k { seconds: 1 });
    assert!(many.unwrap_err().to_string().contains("random-4k"));
}
