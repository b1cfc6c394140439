//! Tests of key-value workloads on a conventional drive: the drive's state affects results, its
//! collection is counted separately from the store's compaction, and equal cells give equal
//! outcomes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use softflash_lab::cell::{DriveIo, unattended};
use softflash_lab::{Cell, LabError, Outcome, Parameters, Workload, engine, presets};
use softflash_workload::{Operation, Precondition, ValueSize};
use std::sync::atomic::AtomicBool;

/// More than gather in level 0.
const REQUESTS: u64 = 7000;

/// Clients that write to four slices on a small Gen3.
fn run(precondition: Precondition) -> Outcome {
    outcome(precondition).unwrap()
}

fn outcome(precondition: Precondition) -> Result<Outcome, LabError> {
    let (_, Workload::Kv(mut workload)) = presets::workload("kv-write-large").unwrap() else {
        panic!("not a key-value workload")
    };
    (workload.slices, workload.operation) = (4, Operation::Write);
    workload.value_bytes = ValueSize::Fixed(300_000);
    workload.data_bytes_per_slice = Some(30_000_000);
    let mut device = presets::device("huawei-gen3").unwrap();
    device.geometry.blocks_per_plane = 16;
    device.controller.write_buffer_bytes = 32 << 20;
    let (layout_name, layout) = presets::layout("huawei-gen3").unwrap();
    let cell = Cell {
        key: "test".to_owned(),
        layout_name,
        workload_name: workload.name.clone(),
        device,
        layout,
        workload: Workload::Kv(workload),
        parameters: Parameters { requests: Some(REQUESTS), precondition, ..Parameters::default() },
        seed: 3,
    };
    let stop = AtomicBool::new(false);
    engine::run(&cell, &unattended(&stop))
}

#[test]
fn a_state_of_a_block_workload_is_refused_with_a_remedy() {
    let error = outcome(Precondition::Random4k { seconds: 9 }).unwrap_err().to_string();
    assert!(error.starts_with("precondition random-4k:9s needs a block workload"), "{error}");
}

#[test]
fn what_a_used_drive_collects_is_counted_beside_what_the_store_compacts() {
    let [filled, used] = [Precondition::Fill, Precondition::STEADY].map(run);
    for outcome in [&filled, &used] {
        assert_eq!((outcome.requests, outcome.completed), (REQUESTS, REQUESTS));
        assert!(
            outcome.programs.host > 0 && outcome.programs.compaction > 0,
            "{:?}",
            outcome.programs
        );
        assert!(outcome.programs.parity > 0, "{:?}", outcome.programs);
        // Writers that are too fast are slowed, not put to sleep.
        assert!(outcome.write_latency.max_ns < 5_000_000_000, "{:?}", outcome.write_latency);
        assert!(outcome.channel_utilisation.iter().all(|share| (0.01..=1.0).contains(share)));
    }
    assert!(used.programs.collection > filled.programs.collection, "{:?}", used.programs);
    assert!(used.simulated_ns > filled.simulated_ns, "a used drive is slower");
    assert_eq!(run(Precondition::Fill), filled);
}

#[test]
fn the_page_cache_slows_single_reads_of_a_drive_and_leaves_units_alone() {
    let read = |device: &str, drive_io| {
        let (workload_name, Workload::Kv(mut workload)) =
            presets::workload("kv-read-512k").unwrap()
        else {
            panic!("not a key-value workload")
        };
        (workload.slices, workload.batch) = (1, 1);
        workload.data_bytes_per_slice = Some(60_000_000);
        let mut spec = presets::device(device).unwrap();
        spec.geometry.blocks_per_plane = 16;
        let (layout_name, layout) = presets::layout(device).unwrap();
        let parameters = Parameters { requests: Some(50), drive_io, ..Parameters::default() };
        let cell = Cell {
            key: "test".to_owned(),
            layout_name,
            workload_name,
            device: spec,
            layout,
            workload: Workload::Kv(workload),
            parameters,
            seed: 3,
        };
        let stop = AtomicBool::new(false);
        engine::run(&cell, &unattended(&stop)).unwrap()
    };
    let [direct, buffered] = [DriveIo::Direct, DriveIo::Buffered].map(|io| read("huawei-gen3", io));
    assert_eq!((direct.completed, buffered.completed), (50, 50));
    // Six windows of 128 KiB in five steps, in place of one request.
    let ratio = buffered.simulated_ns as f64 / direct.simulated_ns as f64;
    assert!((1.4..2.0).contains(&ratio), "{ratio}");
    assert_eq!(read("sdf", DriveIo::Direct), read("sdf", DriveIo::Buffered));
}
