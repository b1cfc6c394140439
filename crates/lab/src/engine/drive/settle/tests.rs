//! Tests of settling.

use super::*;
use crate::cell::{Cell, Parameters, unattended};
use crate::engine;
use crate::workload::Workload;
use crate::{LabError, Outcome, Precondition, StateCache, presets};
use softflash_workload::{Begin, BlockWorkload, FlowWorkload, Load, Pattern, RequestSize, Span};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Skewed writes to scattered places of a drive that is large enough for a sibling.
fn of_a_large_drive() -> Cell {
    let pattern = Pattern::Zipf { exponent: 0.9, scattered: true };
    let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), pattern);
    (workload.read_fraction, workload.load) = (0.0, Load::closed(1, 32));
    let mut device = presets::device("tlc-modern").unwrap();
    (device.geometry.blocks_per_plane, device.geometry.pages_per_block) = (32, 768);
    // What the buffer absorbs never comes to flash, and is not part of the state.
    device.controller.write_buffer_bytes = 1 << 20;
    let (layout_name, layout) = presets::layout("page-mapped-4k").unwrap();
    Cell {
        key: "test".to_owned(),
        layout_name,
        workload_name: "w".to_owned(),
        device,
        layout,
        workload: Workload::Block(workload),
        parameters: Parameters {
            op_percent: Some(20.0),
            precondition: Precondition::STEADY,
            requests: Some(200_000),
            ..Parameters::default()
        },
        seed: 3,
    }
}

/// Runs the cell with a cache of states; stops after so many reports of settling.
fn run_with(states: Option<&StateCache>, reports: usize) -> (Result<Outcome, LabError>, usize) {
    let (stop, reported) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = |_: &crate::Settling| {
        if reported.fetch_add(1, Ordering::Relaxed) + 1 == reports {
            stop.store(true, Ordering::Relaxed);
        }
        true
    };
    let control = Control { states, on_settling: &told, ..unattended(&stop) };
    let outcome = engine::run(&of_a_large_drive(), &control);
    (outcome, reported.into_inner())
}

#[test]
fn a_settled_state_is_the_same_from_the_cache_and_after_an_interruption() {
    let (fresh, reports) = run_with(None, usize::MAX);
    let fresh = fresh.unwrap();
    let settled = fresh.settled.unwrap();
    assert!(settled.is_level && settled.rewrites >= 4, "{settled:?}");
    let waf = fresh.programs.waf();
    assert!((waf / settled.waf - 1.0).abs() < 0.02, "{waf} after {settled:?}");
    let directory = tempfile::tempdir().unwrap();
    let states = StateCache::new(directory.path().to_owned(), 1);
    let (stopped, _) = run_with(Some(&states), reports / 2);
    assert!(matches!(stopped, Err(LabError::Stopped)));
    let (resumed, rest) = run_with(Some(&states), usize::MAX);
    assert!(0 < rest && rest < reports, "{rest} of {reports}");
    let (shared, none) = run_with(Some(&states), usize::MAX);
    assert_eq!(none, 0, "the state is known");
    assert!(resumed.unwrap() == fresh && shared.unwrap() == fresh);
}

/// Skewed writes to scattered places of the first half, and longer ones to the second half: while
/// the run goes on, write amplification stays that of the settled state.
#[test]
fn flows_with_a_span_each_are_settled_by_the_sibling() {
    let mut cell = of_a_large_drive();
    let Workload::Block(skewed) = cell.workload.clone() else { panic!("a block workload") };
    let skewed = BlockWorkload { span: Span::Share(0.5), ..skewed };
    let mut long = BlockWorkload::new("long", RequestSize::Fixed(65536), Pattern::Random);
    (long.read_fraction, long.load) = (0.0, Load::closed(1, 8));
    long.begin = Begin::Share(0.5);
    cell.workload = Workload::Flows(FlowWorkload::new("two", vec![skewed.into(), long.into()]));
    let (stop, reported) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = |_: &crate::Settling| {
        reported.fetch_add(1, Ordering::Relaxed);
        true
    };
    let control = Control { on_settling: &told, ..unattended(&stop) };
    let outcome = engine::run(&cell, &control).unwrap();
    let settled = outcome.settled.unwrap();
    assert!(settled.is_level && settled.rewrites >= 4, "{settled:?}");
    let waf = outcome.programs.waf();
    assert!((waf / settled.waf - 1.0).abs() < 0.02, "{waf} after {settled:?}");
    // Settling reports each 256 MiB: the drive itself would do so 80 times in a rewrite.
    let reported = reported.into_inner();
    assert!(reported <= settled.rewrites as usize * 32, "{reported} reports, {settled:?}");
}
