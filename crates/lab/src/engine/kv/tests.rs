use super::setup::{key_prefix, store_layout, store_options};
use crate::cell::{Cell, Parameters, unattended};
use crate::layout::{LayoutKind, Units};
use crate::workload::Workload;
use crate::{Outcome, presets};
use softflash_base::SliceId;
use softflash_device::model::UnitKind;
use softflash_policy::{PlacementPolicy, Schedule};
use softflash_store::StoreOptions;
use softflash_workload::{KvOrder, KvWorkload, Operation, ValueSize};
use std::sync::atomic::AtomicBool;

/// A store of some tens of megabytes on the SDF.
fn cell(slices: u32, operation: Operation, change: impl FnOnce(&mut KvWorkload)) -> Cell {
    let (_, workload) = presets::workload("kv-read-512k").unwrap();
    let Workload::Kv(mut workload) = workload else { unreachable!() };
    (workload.slices, workload.operation) = (slices, operation);
    workload.data_bytes_per_slice = Some(48_000_000 / u64::from(slices));
    change(&mut workload);
    let mut device = presets::device("sdf").unwrap();
    device.geometry.blocks_per_plane = 16;
    let (layout_name, layout) = presets::layout("sdf").unwrap();
    Cell {
        key: "test".to_owned(),
        layout_name,
        workload_name: workload.name.clone(),
        device,
        layout,
        workload: Workload::Kv(workload),
        parameters: Parameters { requests: Some(40), ..Parameters::default() },
        seed: 3,
    }
}

fn run(cell: &Cell) -> Outcome {
    let stop = AtomicBool::new(false);
    crate::engine::run(cell, &unattended(&stop)).unwrap()
}

#[test]
fn reads_bring_values_whole_and_equal_seeds_give_equal_outcomes() {
    let reads = cell(2, Operation::Read, |workload| workload.barrier = false);
    let outcome = run(&reads);
    assert_eq!((outcome.requests, outcome.completed), (40, 40));
    assert_eq!(outcome.bytes_read, 40 * 524_288);
    assert!(outcome.figures["flash_read_mb_s"] > 0.0);
    assert_eq!(outcome, run(&reads));
}

#[test]
fn patches_lie_as_the_layout_says() {
    // As many patches as units, in one slice, so that they are written in sequence.
    let with = |scheduler| {
        let mut reads = cell(1, Operation::Read, |workload| {
            (workload.keys_per_slice, workload.data_bytes_per_slice) = (Some(44 * 15), None);
        });
        let LayoutKind::Units(units) = &mut reads.layout.kind else { unreachable!() };
        units.scheduler = scheduler;
        run(&reads).figures
    };
    let round_robin = with(PlacementPolicy::ROUND_ROBIN);
    assert_eq!((round_robin["patches"], round_robin["fullest_unit_share"]), (44.0, 1.0));
    assert_eq!(round_robin["in_turn_share"], 1.0);
    let (_, layout) = presets::layout("sdf").unwrap();
    let workload = KvWorkload::new("test");
    let options = |kind: &LayoutKind| store_options(&workload, kind, 2);
    let sdf = options(&layout.kind);
    assert_eq!((sdf.placement, sdf.ftl.order), (PlacementPolicy::ROUND_ROBIN, Schedule::FIFO));
    let other = Units {
        unit: UnitKind::Channel,
        scheduler: PlacementPolicy::LEAST_LOADED,
        order: Schedule::READS_FIRST,
        ..Units::default()
    };
    let other = options(&LayoutKind::Units(other));
    assert_eq!(
        (other.placement, other.ftl.order),
        (PlacementPolicy::LEAST_LOADED, Schedule::READS_FIRST)
    );
    let default = StoreOptions { value_threshold: None, ..StoreOptions::default() };
    assert_eq!(other, StoreOptions { memory_bytes: other.memory_bytes, ..default });
}

#[test]
fn a_duration_is_a_window_in_the_work_of_clients_that_go_on() {
    let mut reads = cell(1, Operation::Read, |workload| workload.batch = 8);
    reads.parameters = Parameters {
        requests: None,
        duration_ms: Some(200),
        warm_up_ms: 50,
        ..Parameters::default()
    };
    let outcome = run(&reads);
    assert_eq!((outcome.simulated_ns, outcome.requests), (200_000_000, outcome.completed));
    assert!(outcome.completed > 30, "{outcome:?}");
    assert!(outcome.series.iter().all(|sample| sample.at_ns <= 200_000_000));
}

#[test]
fn scans_go_on_from_the_beginning_where_a_slice_ends() {
    let scans = cell(1, Operation::Scan { scan_bytes: 4 << 20 }, |workload| {
        workload.order = KvOrder::InOrder;
        workload.batch = 1;
    });
    let outcome = run(&scans);
    assert_eq!(outcome.completed, 40);
    assert!(outcome.bytes_read >= 40 * (4 << 20));
}

#[test]
fn writes_are_on_flash_with_their_log_elsewhere() {
    let writes = cell(4, Operation::Write, |workload| {
        workload.value_bytes = ValueSize::Range { min: 100_000, max: 1_000_000 };
    });
    let outcome = run(&writes);
    assert_eq!(outcome.completed, 40);
    assert!(outcome.bytes_written > 40 * 100_000);
    assert_eq!(outcome.figures["shards"], 4.0);
}

#[test]
fn prefixes_lead_to_their_slices() {
    let Workload::Kv(workload) = cell(32, Operation::Write, |_| {}).workload else {
        unreachable!()
    };
    let layout = store_layout(&workload, 44);
    for slice in 0..32 {
        let prefix = key_prefix(&layout, slice);
        assert!(prefix.len() < 8);
        assert_eq!(layout.slice_of(&[&prefix[..], b"000"].concat()), SliceId(slice));
    }
}
