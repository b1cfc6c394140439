use crate::cell::{Cell, Control, Parameters, unattended};
use crate::engine::limits::physical_limits;
use crate::layout::{Interface, Layout, LayoutKind, Sets, Units};
use crate::workload::Workload;
use crate::{LabError, Outcome, presets};
use softflash_device::model::UnitKind;
use softflash_policy::{PlacementPolicy, Schedule};
use softflash_workload::{BlockWorkload, Load, Pattern, Precondition, RequestSize, Span};
use std::sync::atomic::{AtomicBool, Ordering};

const SUPERBLOCK: u32 = 8 << 20;

/// The SDF with fewer blocks, which changes no time.
fn cell(read_fraction: f64, bytes: u32, load: Load, requests: u64) -> Cell {
    let mut device = presets::device("sdf").unwrap();
    device.geometry.blocks_per_plane = 4;
    let mut workload = BlockWorkload::new("w", RequestSize::Fixed(bytes), Pattern::Random);
    workload.read_fraction = read_fraction;
    workload.align_bytes = Some(8192);
    workload.load = load;
    let units = Units {
        unit: UnitKind::Channel,
        scheduler: PlacementPolicy::ROUND_ROBIN,
        order: Schedule::FIFO,
        interface: Interface::Superblocks,
        ..Units::default()
    };
    Cell {
        key: "test".to_owned(),
        layout_name: "sdf".to_owned(),
        workload_name: "w".to_owned(),
        device,
        layout: Layout {
            title: String::new(),
            sets: Sets::default(),
            kind: LayoutKind::Units(units),
        },
        workload: Workload::Block(workload),
        parameters: Parameters { requests: Some(requests), ..Parameters::default() },
        seed: 7,
    }
}

fn run(cell: &Cell) -> Result<Outcome, LabError> {
    let stop = AtomicBool::new(false);
    crate::engine::run(cell, &unattended(&stop))
}

fn near(ours: f64, wanted: f64, tolerance: f64) {
    assert!((ours / wanted - 1.0).abs() < tolerance, "{ours} is not {wanted}");
}

#[test]
fn one_thread_reads_at_the_speed_that_its_steps_add_up_to() {
    let outcome = run(&cell(1.0, 8192, Load::closed(1, 1), 500)).unwrap();
    // Software, sense, bus, link, and the wait of an interrupt for completions that do not arrive.
    let wanted_ns = 3_000.0 + 75_000.0 + 204_800.0 + 5_089.0 + 20_000.0;
    near(outcome.read_latency.mean_ns, wanted_ns, 0.001);
    assert_eq!((outcome.requests, outcome.completed, outcome.bytes_read), (500, 500, 500 * 8192));
    near(outcome.channel_utilisation[0], 204_800.0 / wanted_ns, 0.001);
    assert!(outcome.channel_utilisation[1..].iter().all(|share| *share == 0.0));
}

#[test]
fn a_write_that_units_do_not_take_is_refused_before_they_are_filled() {
    let mut cell = cell(0.0, 4096, Load::closed(1, 1), 1);
    cell.parameters.precondition = Precondition::Fill;
    let stop = AtomicBool::new(false);
    let told = |_| panic!("nothing was to be done");
    let control = Control { on_progress: &told, ..unattended(&stop) };
    let refused = crate::engine::run(&cell, &control).unwrap_err().to_string();
    assert!(refused.contains("a write of 4096 bytes"), "{refused}");
}

#[test]
fn a_write_takes_its_erase_its_headers_and_its_pages() {
    let outcome = run(&cell(0.0, SUPERBLOCK, Load::closed(2, 1), 8)).unwrap();
    // 256 rows of two page loads and a two-plane program, and an erase of all planes.
    let wanted_ns = 256.0 * 1_427_500.0 + 3e6;
    near(outcome.write_latency.mean_ns, wanted_ns, 0.01);
    assert_eq!(outcome.bytes_written, 8 * 1022 * 8192, "headers are no payload");
    assert_eq!(outcome.programs.host, 8 * 1022);
    // The first superblock of each unit was erased ahead, its erase header written.
    assert_eq!(outcome.programs.metadata, 8 * 2 - 2);
    assert_eq!(outcome.erases, (8 - 2) * 4);
}

/// A chip of TSSD senses a page in 50 us and sends it with its spare bytes at 40 MB/s; four chips
/// share a channel.
#[test]
fn units_of_one_chip_share_the_bus_of_their_channel() {
    let reads = |threads| {
        let mut cell = cell(1.0, 4096, Load::closed(threads, 1), 2_000);
        cell.device = presets::device("tssd").unwrap();
        cell.device.geometry.blocks_per_plane = 4;
        cell.device.geometry.channels = 1;
        let (_, layout) = presets::layout("tssd").unwrap();
        cell.layout = layout;
        run(&cell).unwrap()
    };
    let (one, many) = (reads(1), reads(64));
    let (sense_ns, transfer_ns) = (50_000.0, (4096.0 + 218.0) * 25.0);
    assert!(one.read_latency.mean_ns > sense_ns + transfer_ns, "{}", one.read_latency.mean_ns);
    near(one.channel_utilisation[0], transfer_ns / one.read_latency.mean_ns, 0.01);
    near(many.channel_utilisation[0], 1.0, 0.01);
}

#[test]
fn all_channels_reach_the_limit_of_flash_and_link() {
    let share = |cell: &Cell, name: &str| run(cell).unwrap().figures[name];
    let reads = cell(1.0, SUPERBLOCK, Load::closed(44, 1), 88);
    assert!(share(&reads, "read_limit_share") > 0.97);
    let writes = cell(0.0, SUPERBLOCK, Load::closed(44, 1), 88);
    assert!(share(&writes, "write_limit_share") > 0.97);
    assert!(share(&writes, "capacity_share") > 0.99);
    assert!((0.1..10.0).contains(&run(&writes).unwrap().bytes_per_page));
    let [read, write] = physical_limits(&reads.device);
    near(read, 1.61e9, 1e-9);
    near(write, 1.01e9, 0.001);
}

#[test]
fn equal_seeds_give_equal_outcomes_and_mixed_requests_all_end() {
    let mut mixed = cell(0.5, SUPERBLOCK, Load::closed(1, 60), 120);
    let Workload::Block(workload) = &mut mixed.workload else { unreachable!() };
    workload.span = Span::Share(0.5);
    let outcomes = [run(&mixed).unwrap(), run(&mixed).unwrap()];
    assert_eq!(outcomes[0], outcomes[1]);
    assert_eq!(outcomes[0].completed, 120);
    assert!(outcomes[0].bytes_read > 0 && outcomes[0].bytes_written > 0);
    let other = run(&Cell { seed: 8, ..mixed }).unwrap();
    assert_ne!(other.read_latency, outcomes[0].read_latency);
}

#[test]
fn erases_alone_take_all_planes_at_once() {
    let mut erases = cell(0.0, SUPERBLOCK, Load::closed(44, 1), 440);
    let Workload::Block(workload) = &mut erases.workload else { unreachable!() };
    workload.trim_fraction = 1.0;
    let [_, erased] = run(&erases).unwrap().bytes_per_second();
    near(erased, 44.0 * f64::from(SUPERBLOCK) / 3.003e-3, 0.001);
}

#[test]
fn an_open_loop_comes_at_its_rate_and_goes_to_all_units() {
    let load = Load::Open { requests_per_second: 20_000.0, arrivals: Default::default() };
    let mut open = cell(1.0, 8192, load, 4000);
    open.parameters.warm_up_ms = 20;
    let outcomes = [run(&open).unwrap(), run(&open).unwrap()];
    assert_eq!(outcomes[0], outcomes[1], "equal seeds");
    let outcome = &outcomes[0];
    assert_eq!((outcome.requests, outcome.completed), (4000, 4000));
    near(4000.0 / (outcome.simulated_ns as f64 / 1e9), 20_000.0, 0.05);
    assert!(outcome.channel_utilisation.iter().all(|share| *share > 0.0));
    // Some requests wait for their channel; a single one never does.
    assert!(outcome.read_latency.max_ns > outcome.read_latency.p50_ns + 100_000);
}

#[test]
fn a_cap_holds_reads_back_and_writes_are_free() {
    let mut capped = cell(1.0, 8192, Load::closed(1, 16), 2000);
    let free = run(&capped).unwrap().bytes_per_second()[0];
    let Workload::Block(workload) = &mut capped.workload else { unreachable!() };
    workload.rate_caps.read_bytes_per_second = Some((free / 10.0) as u64);
    workload.rate_caps.write_bytes_per_second = Some(1);
    let outcome = run(&capped).unwrap();
    assert_eq!((outcome.requests, outcome.completed), (2000, 2000));
    near(outcome.bytes_per_second()[0], free / 10.0, 0.01);
    capped.parameters.requests = None;
    capped.parameters.duration_ms = Some(200);
    let timed = run(&capped).unwrap();
    near(timed.bytes_per_second()[0], free / 10.0, 0.02);
}

#[test]
fn what_units_cannot_do_is_refused_with_a_remedy() {
    let refusal = |cell: Cell| run(&cell).unwrap_err().to_string();
    assert!(refusal(cell(0.0, 4096, Load::closed(1, 1), 1)).contains("8372224"));
    let mut empty = cell(1.0, 8192, Load::closed(1, 1), 1);
    empty.parameters.precondition = Precondition::None;
    assert!(refusal(empty).contains("nothing to read"));
    let mut aged = cell(1.0, 8192, Load::closed(1, 1), 1);
    aged.parameters.precondition = Precondition::Random4k { seconds: 9 };
    assert!(refusal(aged).contains("precondition random-4k:9s needs a block workload"));
    let mut beside = cell(1.0, 8192, Load::closed(1, 1), 1);
    if let Workload::Block(workload) = &mut beside.workload {
        workload.writers = 3;
    }
    assert!(refusal(beside).contains("writers = 3: units have no threads beside"));
}

#[test]
fn a_fill_can_be_stopped() {
    let (stop, measures) = (AtomicBool::new(true), AtomicBool::new(false));
    let told = || measures.store(true, Ordering::Relaxed);
    let control = Control { on_measuring: &told, ..unattended(&stop) };
    let stopped = crate::engine::run(&cell(1.0, 8192, Load::closed(1, 1), 1), &control);
    assert!(matches!(stopped, Err(LabError::Stopped)), "{stopped:?}");
    assert!(!measures.load(Ordering::Relaxed));
}
