use super::{Asked, Play, Setting};
use crate::cell::{Cell, LoggedRequest, Parameters, unattended};
use crate::layout::{LayoutKind, Sets};
use crate::presets;
use crate::workload::Workload;
use crate::{Outcome, Precondition};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, VictimPolicy};
use softflash_workload::{
    AccessKind, ArrivalPattern, BlockWorkload, Load, Pattern, RateCaps, RequestSize,
};
use std::sync::atomic::AtomicBool;

const PAGE_BYTES: u32 = 4096;

/// Single pages on a small array: 4 dies on 2 channels, 60 us a read, 210 or 610 us a write.
pub(super) fn cell(load: Load, requests: u64) -> (BlockWorkload, Cell) {
    let mut workload = BlockWorkload::new("w", RequestSize::Fixed(PAGE_BYTES), Pattern::Random);
    workload.load = load;
    let mut device = DeviceSpec::bare("small", &softflash_nand::presets::small());
    device.geometry.blocks_per_plane = 32;
    let (layout_name, layout) = presets::layout("page-mapped").unwrap();
    let cell = Cell {
        key: "test".to_owned(),
        layout_name,
        workload_name: "w".to_owned(),
        device,
        layout,
        workload: Workload::Block(workload.clone()),
        parameters: Parameters {
            op_percent: Some(25.0),
            requests: Some(requests),
            ..Parameters::default()
        },
        seed: 7,
    };
    (workload, cell)
}

pub(super) fn run((workload, mut cell): (BlockWorkload, Cell)) -> Outcome {
    cell.workload = Workload::Block(workload);
    let stop = AtomicBool::new(false);
    crate::engine::run(&cell, &unattended(&stop)).unwrap()
}

#[test]
fn a_cap_holds_requests_back_and_each_counts_once() {
    let (mut workload, cell) = cell(Load::closed(1, 8), 2000);
    workload.read_fraction = 1.0;
    let free = run((workload.clone(), cell.clone()));
    // A tenth of the drive's bandwidth.
    let cap = (free.bytes_per_second()[0] / 10.0) as u64;
    workload.rate_caps = RateCaps { read_bytes_per_second: Some(cap), ..RateCaps::default() };
    let capped = run((workload, cell));
    assert_eq!((capped.requests, capped.completed), (2000, 2000));
    let reached = capped.bytes_per_second()[0] / cap as f64;
    assert!((reached - 1.0).abs() < 0.01, "{reached} of the cap");
}

#[test]
fn a_warm_up_takes_its_time_and_counts_for_nothing() {
    let (workload, mut cell) = cell(Load::closed(1, 8), 2000);
    let cold = run((workload.clone(), cell.clone()));
    cell.parameters.precondition = Precondition::Fill;
    cell.parameters.warm_up_ms = 3000;
    let warm = run((workload, cell));
    assert_eq!((warm.requests, warm.completed), (2000, 2000));
    // Three seconds of writes use up the spare blocks, so that collection runs from the beginning.
    assert!(cold.series[0].waf < 1.01 && warm.series[0].waf > 1.2, "{}", warm.series[0].waf);
}

/// Whatever the size of requests.
#[test]
fn a_steady_state_takes_no_virtual_time_and_leaves_nothing_under_way() {
    for (pages, pattern) in [
        (1, Pattern::Random),
        (3, Pattern::Random),
        (1, Pattern::SEQUENTIAL),
        (64, Pattern::SEQUENTIAL),
    ] {
        let (mut workload, cell) = cell(Load::closed(1, 8), 10);
        workload.size = Some(RequestSize::Fixed(pages * PAGE_BYTES));
        (workload.read_fraction, workload.pattern) = (0.0, pattern);
        let LayoutKind::PageMapped(layout) = &cell.layout.kind else { unreachable!() };
        let setting = Setting {
            device: &cell.device,
            layout,
            sets: Sets::default(),
            op_percent: 25.0,
            precondition: Precondition::STEADY,
            limits: cell.limits(),
            seed: cell.seed,
        };
        let stop = AtomicBool::new(false);
        let control = unattended(&stop);
        let mut play = Play::prepare(&setting, Asked::Workload(&workload), &control).unwrap();
        play.warm_up(&mut Vec::new()).unwrap();
        assert_eq!((play.drive.now(), play.drive.in_flight()), (Time::ZERO, 0));
    }
}

/// An open load beyond what the drive can do begins without a backlog of requests that were not
/// measured, which would count as written by those that are.
#[test]
fn a_load_that_the_drive_cannot_follow_has_one_write_amplification() {
    let (mut workload, mut cell) = cell(Load::closed(1, 8), 20_000);
    workload.load = Load::Open { requests_per_second: 1e6, arrivals: ArrivalPattern::default() };
    workload.read_fraction = 0.0;
    cell.parameters.op_percent = Some(14.0);
    cell.parameters.precondition = Precondition::STEADY;
    let outcome = run((workload, cell));
    assert!(!outcome.backlog.unwrap().kept_up());
    let (pages, bytes) = (outcome.programs.waf(), outcome.waf_bytes());
    assert!(
        pages > 1.5 && (bytes / pages - 1.0).abs() < 0.01,
        "{pages} in pages, {bytes} in bytes"
    );
}

/// Nine of ten writes to a tenth of the drive, on blocks whose number of pages is large enough to
/// tell greedy from fifo in a state that is not steady.
fn hot_and_cold(victim: VictimPolicy) -> (BlockWorkload, Cell) {
    let (mut workload, mut cell) = cell(Load::closed(1, 8), 100_000);
    workload.read_fraction = 0.0;
    workload.pattern = Pattern::HotCold { hot_space: 0.1, hot_accesses: 0.9 };
    cell.device.geometry.blocks_per_plane = 128;
    cell.device.geometry.pages_per_block = 256;
    cell.parameters.op_percent = Some(14.0);
    if let LayoutKind::PageMapped(layout) = &mut cell.layout.kind {
        layout.victim = victim;
    }
    (workload, cell)
}

#[test]
fn a_steady_state_is_settled_and_its_run_does_not_drift() {
    for victim in [VictimPolicy::GREEDY, VictimPolicy::FIFO, VictimPolicy::COST_BENEFIT] {
        let (workload, mut cell) = hot_and_cold(victim);
        cell.parameters.precondition = Precondition::STEADY;
        let steady = run((workload, cell));
        let (settled, drift) = (steady.settled.unwrap(), steady.drift.unwrap());
        assert!(settled.is_level && settled.rewrites >= 4, "{victim:?}: {settled:?}");
        assert!(!drift.is_significant(), "{victim:?}: {drift:?}");
    }
    let (workload, mut cell) = hot_and_cold(VictimPolicy::GREEDY);
    cell.parameters.precondition = Precondition::Fill;
    let fresh = run((workload, cell));
    assert!(fresh.settled.is_none() && fresh.drift.unwrap().is_significant(), "{:?}", fresh.drift);
}

/// A drive with idle time collects ahead, and has done so before a run in its steady state: the
/// blocks that all dies collect at the beginning are not counted.
#[test]
fn a_load_below_the_rate_of_the_drive_begins_in_its_steady_state() {
    let waf = |load: Load, requests: u64, seed: u64| {
        let (workload, mut cell) = cell(load, requests);
        cell.parameters.precondition = Precondition::STEADY;
        cell.device.geometry.pages_per_block = 256;
        cell.seed = seed;
        run((workload, cell)).programs.waf()
    };
    let long = waf(Load::closed(1, 32), 50_000, 7);
    let slow = Load::Open { requests_per_second: 500.0, arrivals: ArrivalPattern::Poisson };
    let seeds = 1..=20;
    let runs = f64::from(*seeds.end() as u32);
    let short = seeds.map(|seed| waf(slow, 400, seed)).sum::<f64>() / runs;
    assert!((short / long - 1.0).abs() < 0.15, "{short} of short runs, {long} of a long one");
}

#[test]
fn trims_belong_to_the_steady_state() {
    let (mut workload, mut cell) = hot_and_cold(VictimPolicy::GREEDY);
    (workload.pattern, workload.trim_fraction) = (Pattern::Random, 0.3);
    cell.parameters.precondition = Precondition::STEADY;
    let trimmed = run((workload.clone(), cell.clone()));
    assert!(trimmed.settled.unwrap().is_level && !trimmed.drift.unwrap().is_significant());
    workload.trim_fraction = 0.0;
    let full = run((workload, cell)).programs.waf();
    let waf = trimmed.programs.waf();
    assert!(waf < 0.8 * full, "what is trimmed is spare: {waf} of {full}");
}

#[test]
fn a_state_of_theory_needs_no_settling() {
    let settled = |victim| {
        let (mut workload, mut cell) = hot_and_cold(victim);
        (workload.pattern, cell.parameters.requests) = (Pattern::Random, Some(10));
        cell.parameters.precondition = Precondition::STEADY;
        run((workload, cell)).settled
    };
    assert_eq!([settled(VictimPolicy::GREEDY), settled(VictimPolicy::FIFO)], [None; 2]);
    let of_two = settled(VictimPolicy::d_choices(2)).unwrap();
    assert!(of_two.is_level && of_two.rewrites <= 8, "{of_two:?}");
}

#[test]
fn a_drive_that_falls_behind_its_arrivals_says_so() {
    let backlog = |requests_per_second| {
        let load = Load::Open { requests_per_second, arrivals: Default::default() };
        let (mut workload, cell) = cell(load, 3000);
        workload.read_fraction = 1.0;
        run((workload, cell)).backlog.unwrap()
    };
    // 4 dies of 60 us a read, and buses.
    let (slow, fast) = (backlog(1000.0), backlog(500_000.0));
    assert!(slow.kept_up() && slow.waiting < 10, "{slow:?}");
    assert!(!fast.kept_up() && fast.waiting > 1000 && fast.lag_ns > fast.arrivals_ns, "{fast:?}");
    let (closed, cell) = cell(Load::closed(1, 8), 3000);
    assert_eq!(run((closed, cell)).backlog, None);
}

/// The requests of a run, and its outcome.
fn logged((workload, mut cell): (BlockWorkload, Cell)) -> (Vec<LoggedRequest>, Outcome) {
    cell.workload = Workload::Block(workload);
    let (stop, log) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    let add = |request: &LoggedRequest| log.lock().unwrap().push(*request);
    let control = crate::cell::Control { on_request: Some(&add), ..unattended(&stop) };
    let outcome = crate::engine::run(&cell, &control).unwrap();
    (log.into_inner().unwrap(), outcome)
}

#[test]
fn a_log_has_every_request_and_changes_no_outcome() {
    for (seed, queue_depth) in [(1, 0), (2, 3), (3, 5)] {
        let (mut workload, mut cell) = cell(Load::closed(2, 8), 3000);
        (workload.read_fraction, workload.trim_fraction) = (0.5, 0.1);
        (cell.seed, cell.parameters.warm_up_ms) = (seed, 20);
        cell.parameters.precondition = Precondition::STEADY;
        cell.device.controller.queue_depth = queue_depth;
        let (log, outcome) = logged((workload.clone(), cell.clone()));
        assert_eq!(outcome, run((workload, cell)), "seed {seed}");
        assert_eq!(log.len() as u64, outcome.completed);
        let reads = log.iter().filter(|request| request.kind == AccessKind::Read);
        let latency_ns: u64 = reads.map(|request| request.end_ns - request.arrival_ns).sum();
        let mean_ns = outcome.read_latency.mean_ns * outcome.read_latency.count as f64;
        assert!((latency_ns as f64 - mean_ns).abs() < 1.0, "{latency_ns} of {mean_ns}");
        assert!(log.is_sorted_by_key(|request| request.end_ns));
        assert!(log.iter().all(|it| it.arrival_ns <= it.start_ns && it.start_ns <= it.end_ns));
        // The drive never has more requests than it takes.
        let most = if queue_depth == 0 { 16 } else { queue_depth as usize };
        let in_drive =
            |at: u64| log.iter().filter(|it| it.start_ns <= at && it.end_ns > at).count();
        assert!(log.iter().all(|request| in_drive(request.start_ns) <= most), "{queue_depth}");
        let waited = log.iter().any(|request| request.start_ns > request.arrival_ns);
        assert_eq!(waited, queue_depth != 0);
    }
}

#[test]
fn an_open_loop_comes_at_its_rate() {
    let load = Load::Open { requests_per_second: 1000.0, arrivals: Default::default() };
    let (mut workload, cell) = cell(load, 3000);
    workload.read_fraction = 1.0;
    let outcome = run((workload, cell));
    let seconds = outcome.simulated_ns as f64 / 1e9;
    assert!((3000.0 / seconds / 1000.0 - 1.0).abs() < 0.1, "3000 requests in {seconds} s");
    assert_eq!((outcome.requests, outcome.completed), (3000, 3000));
}

/// A barrier around batches of one has no effect except that every request is then sorted by time.
#[test]
fn clients_that_answer_at_once_are_as_those_in_order_of_time() {
    for seed in 0..60 {
        let mut rng = Rng::seeded(seed).fork("answers");
        let threads = 1 + rng.below(3) as u32;
        let queue_depth = [1, 2, 7, 64][rng.below(4) as usize];
        let (mut workload, mut cell) = cell(Load::closed(threads, queue_depth), 1 + rng.below(900));
        cell.seed = seed;
        workload.read_fraction = [0.0, 0.5, 1.0][rng.below(3) as usize];
        workload.trim_fraction = if workload.read_fraction < 1.0 { 0.1 } else { 0.0 };
        workload.size = Some(RequestSize::Fixed(PAGE_BYTES << rng.below(3) >> rng.below(2)));
        // Not an empty drive: reads of unwritten pages take no time, so a warm-up would not end.
        let states = [Precondition::Fill, Precondition::STEADY];
        cell.parameters.precondition = states[rng.below(2) as usize];
        cell.parameters.warm_up_ms = rng.below(2) * 5;
        cell.parameters.duration_ms = rng.chance(0.5).then(|| 1 + rng.below(40));
        cell.device.link.read_bytes_per_second = rng.below(2) * 300_000_000;
        cell.device.controller.queue_depth = rng.below(2) as u32 * 5;
        let mut ordered = workload.clone();
        ordered.load =
            Load::Closed { threads, queue_depth, batch: Some(1), barrier: true, think_ns: 0 };
        let at_once = run((workload, cell.clone()));
        assert_eq!(at_once, run((ordered, cell)), "seed {seed}");
    }
}

#[test]
fn a_device_that_takes_no_time_is_told_where_the_run_ends_with_time() {
    for (warm_up_ms, duration_ms) in [(1, None), (0, Some(1))] {
        let (mut workload, mut cell) = cell(Load::closed(1, 8), 2000);
        workload.read_fraction = 1.0;
        cell.workload = Workload::Block(workload);
        cell.parameters.precondition = Precondition::None;
        cell.parameters.warm_up_ms = warm_up_ms;
        if duration_ms.is_some() {
            (cell.parameters.requests, cell.parameters.duration_ms) = (None, duration_ms);
        }
        let stop = AtomicBool::new(false);
        let told = crate::engine::run(&cell, &unattended(&stop)).unwrap_err().to_string();
        assert!(told.starts_with("time stands still at 0 ns: "), "{told}");
    }
}

/// 4 readers beside 8 writers of single pages.
fn readers_and_writers(requests: u64) -> (BlockWorkload, Cell) {
    let (mut workload, mut cell) = cell(Load::closed(4, 1), requests);
    (workload.read_fraction, workload.writers) = (1.0, 8);
    cell.parameters.precondition = Precondition::Fill;
    (workload, cell)
}

#[test]
fn writers_write_up_to_their_cap_and_readers_go_on() {
    let (workload, cell) = readers_and_writers(4000);
    let free = run((workload.clone(), cell.clone()));
    let cap = (free.bytes_per_second()[1] / 4.0) as u64;
    let rate_caps = RateCaps { write_bytes_per_second: Some(cap), ..RateCaps::default() };
    let capped = run((BlockWorkload { rate_caps, ..workload.clone() }, cell.clone()));
    let reached = capped.bytes_per_second()[1] / cap as f64;
    assert!((reached - 1.0).abs() < 0.02, "{reached} of the cap");
    assert!(capped.bytes_per_second()[0] > 1.5 * free.bytes_per_second()[0]);
    assert_eq!((capped.requests, capped.completed), (4000, 4000));
    let alone = run((BlockWorkload { writers: 0, ..workload }, cell));
    assert!(alone.write_latency.count == 0 && free.write_latency.count > 0);
}

#[test]
fn each_thread_keeps_one_request_outstanding() {
    let (workload, cell) = readers_and_writers(4000);
    let outcome = run((workload, cell));
    // Little's law: requests under way = rate × latency.
    let under_way = |latency: softflash_base::histogram::LatencySummary| {
        latency.count as f64 * latency.mean_ns / outcome.simulated_ns as f64
    };
    let (reads, writes) = (under_way(outcome.read_latency), under_way(outcome.write_latency));
    assert!(
        (reads / 4.0 - 1.0).abs() < 0.02 && (writes / 8.0 - 1.0).abs() < 0.02,
        "{reads}, {writes}"
    );
}

/// The drive is in the state that as many writes lead to as it takes in the time, which the writes
/// of the run then confirm.
#[test]
fn random_writes_for_a_time_are_as_many_as_the_drive_takes() {
    let (mut workload, mut cell) = cell(Load::closed(1, 256), 40_000);
    workload.read_fraction = 0.0;
    cell.device.geometry.blocks_per_plane = 512;
    let LayoutKind::PageMapped(layout) = &cell.layout.kind else { unreachable!() };
    let mut drive = softflash_drive::Drive::new(&cell.device, layout, 25.0).unwrap();
    let stop = AtomicBool::new(false);
    let state = Precondition::Random4k { seconds: 200 };
    let hardware = super::Hardware { device: &cell.device, layout, op_percent: 25.0 };
    let (rng, control) = (Rng::seeded(3), unattended(&stop));
    super::state::prepare(&mut drive, &hardware, state, None, &rng, &control).unwrap();
    drive.check().unwrap();
    assert_eq!((drive.in_flight(), drive.counters().host_pages_written), (0, 0));
    // The parts that were written in no time have not passed.
    let passed_s = drive.now().0 as f64 / 1e9;
    assert!((1.0..150.0).contains(&passed_s), "{passed_s} s of 200");
    cell.parameters.precondition = state;
    let aged = run((workload.clone(), cell.clone()));
    cell.parameters.precondition = Precondition::Overwrite { times: 8 };
    let steady = run((workload, cell));
    let (aged, steady) = (aged.programs.waf(), steady.programs.waf());
    assert!((aged / steady - 1.0).abs() < 0.03, "{aged} after the time, {steady} in the end");
}

#[test]
fn a_run_after_a_time_of_random_writes_begins_at_its_end() {
    let load = Load::Open { requests_per_second: 1000.0, arrivals: Default::default() };
    let (mut workload, mut cell) = cell(load, 3000);
    workload.read_fraction = 1.0;
    cell.parameters.precondition = Precondition::Random4k { seconds: 2 };
    cell.parameters.warm_up_ms = 100;
    let outcome = run((workload, cell));
    let seconds = outcome.simulated_ns as f64 / 1e9;
    assert!((3000.0 / seconds / 1000.0 - 1.0).abs() < 0.1, "3000 requests in {seconds} s");
    assert!(outcome.read_latency.max_ns < 5_000_000, "{}", outcome.read_latency.max_ns);
}

#[test]
fn a_drive_of_a_cluster_has_its_share_and_the_outcome_is_that_of_all() {
    let (workload, mut cell) = readers_and_writers(4000);
    let alone = run((workload.clone(), cell.clone()));
    cell.parameters.drives = 5;
    cell.parameters.requests = Some(20_000);
    let five = BlockWorkload { load: Load::closed(20, 1), writers: 40, ..workload };
    let cluster = run((five.clone(), cell.clone()));
    assert_eq!(cluster.requests, 5 * alone.requests);
    assert_eq!(cluster.bytes_per_second(), alone.bytes_per_second().map(|rate| 5.0 * rate));
    assert_eq!(cluster.read_latency.mean_ns, alone.read_latency.mean_ns);
    assert_eq!(cluster.programs.waf(), alone.programs.waf());
    let stop = AtomicBool::new(false);
    cell.workload = Workload::Block(BlockWorkload { writers: 41, ..five });
    let error = crate::engine::run(&cell, &unattended(&stop)).unwrap_err().to_string();
    assert!(error.contains("writers = 41 cannot be shared evenly by 5 drives"), "{error}");
    cell.parameters.drives = 0;
    let error = crate::engine::run(&cell, &unattended(&stop)).unwrap_err().to_string();
    assert!(error.contains("drives is 0; it must be at least 1"), "{error}");
    cell.layout = presets::layout("sdf").unwrap().1;
    let error = crate::engine::run(&cell, &unattended(&stop)).unwrap_err().to_string();
    assert!(error.contains("only block workloads on page-mapped drives"), "{error}");
}

#[test]
fn slow_requests_are_counted_by_their_latency() {
    let (workload, cell) = readers_and_writers(4000);
    let outcome = run((workload, cell));
    let [reads, writes] = &outcome.slow;
    assert_eq!((reads.len(), writes.len()), (10, 10));
    assert!(writes.is_sorted_by(|more, fewer| more >= fewer));
    assert!(writes[0] > 0 && writes[0] <= outcome.write_latency.count, "{writes:?}");
    let over_max = crate::outcome::SLOW_MS.iter().zip(writes);
    let wrong =
        |(ms, count): (&u64, &u64)| (*ms * 1_000_000 > outcome.write_latency.max_ns) && *count > 0;
    assert!(!over_max.clone().any(wrong));
}

/// The shares of a run's progress that are reported.
fn progress(precondition: Precondition) -> Vec<f64> {
    let (workload, mut cell) = cell(Load::closed(1, 8), 70_000);
    cell.workload = Workload::Block(workload);
    cell.parameters.precondition = precondition;
    let (stop, shares) = (AtomicBool::new(false), std::sync::Mutex::new(Vec::new()));
    let told = |share| shares.lock().unwrap().push(share);
    let control = crate::cell::Control { on_progress: &told, ..unattended(&stop) };
    crate::engine::run(&cell, &control).unwrap();
    let shares = shares.into_inner().unwrap();
    assert!(shares.is_sorted() && shares[0] < 0.2 && *shares.last().unwrap() > 0.9, "{shares:?}");
    shares
}

#[test]
fn progress_includes_the_initial_state() {
    let shares = progress(Precondition::Random4k { seconds: 5 });
    assert!(shares.iter().any(|share| (0.4..=0.5).contains(share)), "{shares:?}");
    let shares = progress(Precondition::Overwrite { times: 200 });
    assert!(shares.iter().any(|share| (0.1..=0.5).contains(share)), "{shares:?}");
}
