//! Tests of volumes over units.

use super::*;
use crate::cell::{LoggedRequest, Parameters, Settling, unattended};
use crate::engine::units::{Taken, takes};
use crate::layout::{Interface, Layout, LayoutKind, Sets};
use crate::workload::Workload;
use softflash_device::model::UnitKind;
use softflash_trace::{Kind, Request, TraceError};
use softflash_workload::{ArrivalPattern, Load, Pattern, RequestSize, Span};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

const UNIT_BYTES: u64 = 4096;

/// Mapping units at random on a small array: 4 chips, each a unit of superblocks of 128 KiB.
fn cell(bytes: u32, requests: u64) -> Cell {
    let mut device = DeviceSpec::bare("small", &softflash_nand::presets::small());
    device.geometry.blocks_per_plane = 64;
    let mut workload = BlockWorkload::new("w", RequestSize::Fixed(bytes), Pattern::Random);
    (workload.read_fraction, workload.load) = (0.0, Load::closed(1, 32));
    let layout = Units { unit: UnitKind::Chip, ..Units::default() };
    Cell {
        key: "test".to_owned(),
        layout_name: "chips".to_owned(),
        workload_name: "w".to_owned(),
        device,
        layout: Layout {
            title: String::new(),
            sets: Sets::default(),
            kind: LayoutKind::Units(layout),
        },
        workload: Workload::Block(workload),
        parameters: Parameters {
            op_percent: Some(60.0),
            requests: Some(requests),
            ..Parameters::default()
        },
        seed: 7,
    }
}

/// The same after two rewrites, which come near to the steady state.
fn rewritten(bytes: u32, requests: u64) -> Cell {
    let mut cell = cell(bytes, requests);
    cell.parameters.precondition = Precondition::Steady { rewrites: Some(2) };
    cell
}

fn block(cell: &mut Cell) -> &mut BlockWorkload {
    match &mut cell.workload {
        Workload::Block(workload) => workload,
        _ => unreachable!(),
    }
}

fn units(cell: &mut Cell) -> &mut Units {
    match &mut cell.layout.kind {
        LayoutKind::Units(units) => units,
        LayoutKind::PageMapped(_) => unreachable!(),
    }
}

fn try_run(cell: &Cell) -> Result<Outcome, LabError> {
    let stop = AtomicBool::new(false);
    crate::engine::run(cell, &unattended(&stop))
}

fn ran(cell: &Cell) -> Outcome {
    try_run(cell).unwrap()
}

fn refused(cell: &Cell) -> String {
    try_run(cell).unwrap_err().to_string()
}

#[test]
fn equal_seeds_give_equal_outcomes() {
    let mut mixed = rewritten(4096, 3000);
    block(&mut mixed).read_fraction = 0.3;
    let (first, again) = (ran(&mixed), ran(&mixed));
    let text = |outcome: &Outcome| serde_json::to_string(outcome).unwrap();
    assert_eq!(text(&first), text(&again));
    assert_eq!((first.requests, first.completed), (3000, 3000));
    assert!(first.bytes_read > 0 && first.bytes_written > 0);
    mixed.seed = 8;
    assert_ne!(ran(&mixed).write_latency, first.write_latency);
}

/// The counts of the domain and of the FTL agree, and the time that the dies have worked is what
/// these programs and erases take.
#[test]
fn write_amplification_is_what_the_flash_has_programmed() {
    let cell = rewritten(4096, 20_000);
    let outcome = ran(&cell);
    let (programs, planes) = (outcome.programs, 2);
    assert_eq!(programs.host * UNIT_BYTES, outcome.bytes_written);
    assert_eq!(programs.all() * UNIT_BYTES, outcome.programmed_bytes);
    assert!(programs.collection > 0 && programs.metadata > 0, "{programs:?}");
    let waf = programs.waf();
    assert!(waf > 1.0 && (outcome.waf_bytes() / waf - 1.0).abs() < 1e-9, "{waf}");
    let block_bytes = u64::from(cell.device.geometry.pages_per_block) * UNIT_BYTES;
    let erased = (outcome.erases * block_bytes) as f64 / outcome.programmed_bytes as f64;
    // The last rows of a superblock stay empty, for power cuts.
    assert!((1.0..1.1).contains(&erased), "erased {erased} of what was programmed");
    let works_ns = (programs.all() / planes * 400_000 + outcome.erases / planes * 2_000_000) as f64;
    // Collection reads at most every page of what is erased.
    let pages = outcome.erases * u64::from(cell.device.geometry.pages_per_block);
    let reads_ns = (pages * 50_000) as f64;
    let busy_ns: f64 = outcome.die_utilisation.iter().sum::<f64>() * outcome.simulated_ns as f64;
    let range = 0.98 * works_ns..1.02 * (works_ns + reads_ns);
    assert!(range.contains(&busy_ns), "{busy_ns} ns of work, not in {range:?}");
}

#[test]
fn a_steady_state_is_settled_by_the_writes_of_the_workload_and_kept_by_the_run() {
    let mut cell = cell(4096, 30_000);
    cell.parameters.precondition = Precondition::STEADY;
    let outcome = ran(&cell);
    let settled = outcome.settled.unwrap();
    assert!(settled.is_level && (4..=16).contains(&settled.rewrites), "{settled:?}");
    let waf = outcome.programs.waf();
    assert!((waf / settled.waf - 1.0).abs() < 0.03, "{waf} after {settled:?}");
    assert!(!outcome.drift.unwrap().is_significant(), "{:?}", outcome.drift);
    // More spare, less collection.
    cell.parameters.op_percent = Some(120.0);
    assert!(ran(&cell).programs.waf() < 0.9 * waf);
}

#[test]
fn a_state_takes_exactly_its_rewrites_or_ends_at_the_limit_of_time() {
    let mut cell = cell(4096, 100);
    cell.parameters.precondition = Precondition::Steady { rewrites: Some(3) };
    assert_eq!(ran(&cell).settled.unwrap().rewrites, 3);
    let stop = AtomicBool::new(false);
    let told = |settling: &Settling| settling.rewrites < 0.5;
    let limited = Control { on_settling: &told, ..unattended(&stop) };
    let settled = crate::engine::run(&cell, &limited).unwrap().settled.unwrap();
    assert!(settled.rewrites < 3 && !settled.is_level, "{settled:?}");
    let stop = AtomicBool::new(true);
    let stopped = crate::engine::run(&cell, &unattended(&stop));
    assert!(matches!(stopped, Err(LabError::Stopped)), "{stopped:?}");
}

#[test]
fn every_state_of_a_drive_is_one_of_a_volume() {
    for state in ["none", "fill", "overwrite:1", "random-4k:1s"] {
        let mut cell = cell(4096, 200);
        cell.parameters.precondition = state.parse().unwrap();
        block(&mut cell).read_fraction = 0.5;
        let outcome = ran(&cell);
        assert_eq!((outcome.completed, outcome.settled), (200, None), "{state}");
        let reads_flash = outcome.read_latency.mean_ns > 50_000.0;
        assert_eq!(reads_flash, state != "none", "{state}: {:?}", outcome.read_latency);
    }
}

/// Spare is what the host cannot address, as of a drive.
#[test]
fn over_provisioning_is_of_all_flash_and_has_a_least() {
    let mut cell = cell(4096, 10);
    let figures = ran(&cell).figures;
    let flash = cell.device.geometry.bytes() as f64;
    assert!((figures["op_percent"] - 60.0).abs() < 0.1, "{figures:?}");
    assert!((figures["capacity_bytes"] * 1.6 / flash - 1.0).abs() < 1e-3, "{figures:?}");
    cell.parameters.op_percent = Some(10.0);
    let error = refused(&cell);
    let least = error.split("at least ").nth(1).and_then(|text| text.split(' ').next()).unwrap();
    cell.parameters.op_percent = Some(least.parse().unwrap());
    let exact = ran(&cell).figures["op_percent"];
    // What a domain takes by itself is above its least.
    cell.parameters.op_percent = None;
    assert!(ran(&cell).figures["op_percent"] > exact + 5.0);
    cell.parameters.op_percent = Some(1e9);
    assert!(refused(&cell).contains("no room for data"), "{}", refused(&cell));
    cell.device.geometry.blocks_per_plane = 8;
    cell.parameters.op_percent = None;
    assert!(refused(&cell).contains("leave no space for data"), "{}", refused(&cell));
}

#[test]
fn a_write_below_the_mapping_unit_reads_it_and_writes_all_of_it() {
    let mut small = rewritten(512, 5000);
    block(&mut small).load = Load::closed(1, 1);
    let outcome = ran(&small);
    assert_eq!(outcome.bytes_written, 5000 * 512);
    let ratio = outcome.waf_bytes() / outcome.programs.waf();
    assert!((ratio - 8.0).abs() < 1e-6, "{ratio}");
    let mut whole = rewritten(4096, 5000);
    block(&mut whole).load = Load::closed(1, 1);
    let read_ns = outcome.write_latency.mean_ns - ran(&whole).write_latency.mean_ns;
    assert!(read_ns > 50_000.0, "{read_ns} ns for the read before");
}

#[test]
fn trims_free_space_for_collection() {
    let mut cell = rewritten(4096, 10_000);
    let untrimmed = ran(&cell).programs.waf();
    block(&mut cell).trim_fraction = 0.4;
    let trimmed = ran(&cell);
    assert_eq!(trimmed.completed, 10_000);
    assert!(trimmed.programs.waf() < 0.9 * untrimmed, "{} of {untrimmed}", trimmed.programs.waf());
}

#[test]
fn the_workload_decides_unless_the_layout_names_its_interface() {
    let taken = |cell: &mut Cell| {
        let (units, workload) = (units(cell).clone(), block(cell).clone());
        takes(cell, &units, &workload).unwrap()
    };
    let (mut small, mut large) = (cell(4096, 1), cell(30 * 4096, 1));
    block(&mut large).span = Span::Share(0.5);
    assert_eq!(taken(&mut small), Taken::ByVolume);
    assert_eq!(taken(&mut large), Taken::BySuperblocks);
    units(&mut large).interface = Interface::Volume;
    assert_eq!(taken(&mut large), Taken::ByVolume);
    units(&mut small).interface = Interface::Superblocks;
    assert_eq!(taken(&mut small), Taken::BySuperblocks);
    assert!(refused(&small).contains("a write of 4096 bytes"), "{}", refused(&small));
}

#[test]
fn an_open_load_beyond_the_volume_has_a_backlog() {
    let mut cell = rewritten(4096, 5000);
    for (requests_per_second, kept_up) in [(100.0, true), (1e6, false)] {
        block(&mut cell).load =
            Load::Open { requests_per_second, arrivals: ArrivalPattern::default() };
        let backlog = ran(&cell).backlog.unwrap();
        assert_eq!(backlog.kept_up(), kept_up, "{backlog:?}");
    }
}

/// A request of a trace.
fn request(at_ns: u64, kind: Kind, offset_bytes: u64, bytes: u64) -> Request {
    Request { at_ns, kind, device: 0, offset_bytes, bytes }
}

fn replayed(requests: &[Request]) -> (Outcome, Vec<LoggedRequest>) {
    let cell = cell(4096, 1);
    let LayoutKind::Units(layout) = &cell.layout.kind else { unreachable!() };
    let setting = Setting {
        device: &cell.device,
        layout,
        sets: Sets::default(),
        op_percent: Some(60.0),
        precondition: Precondition::Fill,
        limits: Limits { requests: None, duration_ns: None, warm_up_ns: 0, samples: 10 },
        seed: 1,
    };
    let (stop, logged) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let log = |request: &LoggedRequest| logged.lock().unwrap().push(*request);
    let control = Control { on_request: Some(&log), ..unattended(&stop) };
    let mut trace = requests.iter().map(|request| Ok::<_, TraceError>(*request));
    let outcome = simulate(&setting, Asked::Trace(&mut trace), &control).unwrap();
    (outcome, logged.into_inner().unwrap())
}

#[test]
fn a_trace_keeps_its_times_and_its_flushes_are_made() {
    let ms = 1_000_000;
    let trace = [
        request(0, Kind::Write, 0, 4096),
        request(20 * ms, Kind::Flush, 0, 0),
        request(40 * ms, Kind::Read, 0, 4096),
        request(60 * ms, Kind::Write, 4096 + 512, 1024),
        request(80 * ms, Kind::Trim, 8192, 8192),
        request(100 * ms, Kind::Write, 0, 0),
    ];
    let (outcome, log) = replayed(&trace);
    assert_eq!(
        (outcome.requests, outcome.completed),
        (4, 4),
        "without the flush and the empty one"
    );
    let arrivals: Vec<u64> = log.iter().map(|request| request.arrival_ns).collect();
    assert_eq!(arrivals, [0, 40 * ms, 60 * ms, 80 * ms]);
    assert!(log.iter().all(|request| request.end_ns < request.arrival_ns + 20 * ms), "{log:?}");
    assert_eq!((outcome.bytes_read, outcome.bytes_written), (4096, 4096 + 1024));
    assert_eq!(outcome.programs.host, 2, "two mapping units");
    assert!(outcome.figures["flushes"] >= 1.0, "{:?}", outcome.figures);
    assert!(outcome.backlog.unwrap().kept_up());
    let quiet: Vec<Request> = trace.into_iter().filter(|one| one.kind != Kind::Flush).collect();
    assert!(replayed(&quiet).0.figures["flushes"] < outcome.figures["flushes"]);
}

const TWO: Sets = Sets { sets: 2, copies: 2, window_ms: 0, pressure: 0.0 };

/// A reader of mapping units beside 16 writers, on sets of a small array.
fn beside_writes(sets: Sets, requests: u64) -> Cell {
    let mut cell = rewritten(4096, requests);
    cell.parameters.op_percent = Some(80.0);
    cell.layout.sets = sets;
    let workload = block(&mut cell);
    (workload.read_fraction, workload.load, workload.writers) = (1.0, Load::closed(1, 1), 16);
    cell
}

#[test]
fn windows_of_a_pair_make_reads_as_calm_as_those_of_an_idle_volume() {
    let mut idle = beside_writes(TWO, 3000);
    block(&mut idle).writers = 0;
    let plain = beside_writes(Sets::default(), 30_000);
    let together = beside_writes(TWO, 30_000);
    let windows = beside_writes(Sets { window_ms: 50, ..TWO }, 30_000);
    let [idle, plain, together, windows] = [idle, plain, together, windows].map(|cell| ran(&cell));
    let [of_idle, of_plain, of_together, of_windows] =
        [&idle, &plain, &together, &windows].map(|outcome| outcome.read_latency);
    assert!(of_windows.p999_ns <= 2 * of_idle.p999_ns, "{of_windows:?} beside idle {of_idle:?}");
    assert!(of_windows.mean_ns < 0.7 * of_together.mean_ns, "{of_windows:?}, {of_together:?}");
    assert!(of_windows.mean_ns < 0.7 * of_plain.mean_ns, "{of_windows:?}, {of_plain:?}");
    let figures = &windows.figures;
    assert!(figures["windows"] >= 4.0 && figures["drain_max_us"] > 0.0, "{figures:?}");
    assert!(figures["staged_max_bytes"] >= 4096.0, "{figures:?}");
    assert!(!together.figures.contains_key("windows") && !plain.figures.contains_key("windows"));
    assert_eq!(windows.die_utilisation.len(), plain.die_utilisation.len(), "all dies");
}

#[test]
fn both_domains_of_a_pair_program_what_clients_write() {
    let one = ran(&beside_writes(Sets::default(), 20_000));
    let two = ran(&beside_writes(TWO, 20_000));
    assert_eq!(one.programs.host * UNIT_BYTES, one.bytes_written);
    assert_eq!(two.programs.host * UNIT_BYTES, 2 * two.bytes_written);
    let [of_one, of_two] = [&one, &two].map(|outcome| outcome.figures["capacity_bytes"]);
    assert!((2.0 * of_two / of_one - 1.0).abs() < 1e-3, "{of_two} of {of_one} bytes");
    assert!((two.figures["op_percent"] - 80.0).abs() < 0.1, "{:?}", two.figures);
}

#[test]
fn a_pair_with_windows_is_the_same_for_equal_seeds() {
    let cell = beside_writes(Sets { window_ms: 30, ..TWO }, 10_000);
    let text = || serde_json::to_string(&ran(&cell)).unwrap();
    assert_eq!(text(), text());
}

#[test]
fn sets_that_volumes_cannot_have_are_refused() {
    let problem = |sets: Sets, change: fn(&mut Cell)| {
        let mut cell = beside_writes(sets, 10);
        change(&mut cell);
        refused(&cell)
    };
    let same = |_: &mut Cell| {};
    for sets in [
        Sets { sets: 4, ..TWO },
        Sets { copies: 1, ..TWO },
        Sets { sets: 1, copies: 1, window_ms: 5, pressure: 0.0 },
    ] {
        let error = problem(sets, same);
        assert!(error.contains("sets = 2 and copies = 2"), "{error}");
    }
    let pressed = problem(Sets { pressure: 0.5, ..TWO }, same);
    assert!(pressed.contains("pressure = 0.5"), "{pressed}");
    let split = problem(TWO, |cell| cell.device.geometry.channels = 3);
    assert!(split.contains("whole channels") && split.contains("`small` has 3"), "{split}");
    let erases = problem(TWO, |cell| units(cell).interface = Interface::Superblocks);
    assert!(erases.contains("interface = \"volume\""), "{erases}");
}
