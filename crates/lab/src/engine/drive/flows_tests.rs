//! Several flows at once.

use super::tests::{cell, run};
use crate::cell::{Cell, unattended};
use crate::workload::Workload;
use crate::{Outcome, Precondition};
use softflash_workload::{
    BlockWorkload, Flow, FlowWorkload, Load, Pattern, RateCaps, RequestSize, Span,
};
use std::sync::atomic::AtomicBool;

/// A flow of single pages.
fn flow(name: &str, read_fraction: f64, queue_depth: u32) -> Flow {
    let mut workload = BlockWorkload::new(name, RequestSize::Fixed(4096), Pattern::Random);
    (workload.read_fraction, workload.load) = (read_fraction, Load::closed(1, queue_depth));
    workload.into()
}

fn run_flows(flows: Vec<Flow>, change: impl FnOnce(&mut Cell)) -> Outcome {
    let (_, mut cell) = cell(Load::closed(1, 1), 20_000);
    cell.parameters.precondition = Precondition::Fill;
    change(&mut cell);
    cell.workload = Workload::Flows(FlowWorkload::new("flows", flows));
    let stop = AtomicBool::new(false);
    crate::engine::run(&cell, &unattended(&stop)).unwrap()
}

fn of<'a>(outcome: &'a Outcome, name: &str) -> &'a crate::outcome::FlowOutcome {
    outcome.flows.iter().find(|flow| flow.name == name).unwrap()
}

#[test]
fn a_writer_slows_a_reader_and_the_figures_of_both_are_those_of_the_run() {
    let alone = run_flows(vec![flow("reader", 1.0, 1)], |cell| {
        cell.parameters.requests = Some(3000);
    });
    let both = run_flows(vec![flow("reader", 1.0, 1), flow("writer", 0.0, 64)], |_| {});
    let [undisturbed, disturbed] =
        [&alone, &both].map(|outcome| of(outcome, "reader").read_latency.p99_ns);
    assert!(disturbed > 2 * undisturbed, "{disturbed} of {undisturbed}");
    let sum = |of: fn(&crate::outcome::FlowOutcome) -> u64| both.flows.iter().map(of).sum::<u64>();
    assert_eq!(sum(|flow| flow.requests), both.requests);
    assert_eq!(sum(|flow| flow.completed), both.completed);
    assert_eq!(sum(|flow| flow.bytes_read), both.bytes_read);
    assert_eq!(sum(|flow| flow.bytes_written), both.bytes_written);
    assert_eq!(of(&both, "reader").read_latency, both.read_latency);
    assert_eq!(of(&both, "writer").write_latency, both.write_latency);
    assert!(both.flows.iter().all(|flow| flow.active_ns == both.simulated_ns));
    let again = run_flows(vec![flow("reader", 1.0, 1), flow("writer", 0.0, 64)], |_| {});
    assert_eq!(
        serde_json::to_string(&both).unwrap(),
        serde_json::to_string(&again).unwrap(),
        "equal seeds give equal bytes"
    );
}

/// A single flow makes the requests of a workload of its own, at the same times.
#[test]
fn one_flow_is_as_its_workload_alone() {
    let (mut workload, cell) = cell(Load::closed(1, 8), 3000);
    (workload.read_fraction, workload.pattern) = (1.0, Pattern::SEQUENTIAL);
    let flow = Flow::from(workload.clone());
    let alone = run((workload, cell));
    let as_flow = run_flows(vec![flow], |cell| cell.parameters.requests = Some(3000));
    assert_eq!(alone.read_latency, as_flow.read_latency);
    assert_eq!(alone.simulated_ns, as_flow.simulated_ns);
}

#[test]
fn flows_keep_to_their_parts_caps_starts_and_limits() {
    let mut capped = flow("capped", 1.0, 4);
    let cap = 4096 * 500;
    capped.workload.rate_caps =
        RateCaps { read_bytes_per_second: Some(cap), ..RateCaps::default() };
    capped.copies = 2;
    let mut short = flow("short", 0.0, 1);
    (short.workload.requests, short.start_ns) = (Some(100), 50_000_000);
    let outcome = run_flows(vec![flow("free", 1.0, 2), capped, short], |cell| {
        (cell.parameters.requests, cell.parameters.duration_ms) = (None, Some(400));
    });
    // Each copy has the cap.
    let reached = of(&outcome, "capped").bytes_read as f64 / (2.0 * cap as f64 * 0.4);
    assert!((reached - 1.0).abs() < 0.05, "{reached} of the cap");
    let short = of(&outcome, "short");
    assert_eq!((short.requests, short.completed), (100, 100));
    assert!(short.active_ns + 50_000_000 < outcome.simulated_ns, "{}", short.active_ns);
    assert!(of(&outcome, "free").active_ns == outcome.simulated_ns);
}

#[test]
fn a_run_ends_when_every_flow_has_ended() {
    let limited = |name: &str, requests| {
        let mut flow = flow(name, 1.0, 2);
        flow.workload.requests = Some(requests);
        flow
    };
    let outcome = run_flows(vec![limited("a", 300), limited("b", 700)], |cell| {
        cell.parameters.requests = None;
    });
    let made = ["a", "b"].map(|name| of(&outcome, name).requests);
    assert_eq!((made, outcome.requests), ([300, 700], 1000));
}

#[test]
fn a_flow_ends_after_its_passes() {
    let mut twice = flow("twice", 0.0, 8);
    (twice.passes, twice.workload.span) = (Some(2), Span::Bytes(4_096_000));
    let outcome = run_flows(vec![twice], |cell| cell.parameters.requests = Some(u64::MAX));
    assert_eq!((outcome.requests, outcome.bytes_written), (2000, 8_192_000));
}

#[test]
fn a_flow_begins_when_those_before_it_have_ended() {
    let phase = |name: &str, after_previous, requests, duration_ns| {
        let mut flow = flow(name, 1.0, 4);
        (flow.workload.requests, flow.workload.duration_ns) = (requests, duration_ns);
        Flow { after_previous, ..flow }
    };
    let flows = vec![
        phase("a", false, Some(2000), None),
        phase("b", false, None, Some(20_000_000)),
        phase("c", true, None, Some(30_000_000)),
        phase("d", true, Some(2000), None),
    ];
    let workload = FlowWorkload::new("phases", flows.clone());
    let outcome = run_flows(flows, |cell| cell.parameters.requests = workload.limits().0);
    let active = ["a", "b", "c", "d"].map(|name| of(&outcome, name).active_ns);
    assert_eq!(["a", "d"].map(|name| of(&outcome, name).requests), [2000, 2000]);
    // The requests under way at the end of a phase complete before the next one begins.
    assert!((20_000_000..22_000_000).contains(&active[1]), "{active:?}");
    assert!((30_000_000..32_000_000).contains(&active[2]), "{active:?}");
    let phases = active[0].max(active[1]) + active[2] + active[3];
    assert_eq!(phases, outcome.simulated_ns, "{active:?}");
    // Alone in its phase, with as many requests under way as each of two, a flow is faster.
    assert!(active[3] < active[0], "{active:?}");
    let endless =
        FlowWorkload::new("e", vec![phase("a", false, None, None), phase("b", true, None, None)]);
    assert!(endless.validate().unwrap_err().to_string().contains("flow `a` never ends"));
}

#[test]
fn open_flows_say_whether_the_drive_kept_up() {
    let open = |name: &str, requests_per_second| {
        let mut flow = flow(name, 1.0, 1);
        flow.workload.load = Load::Open { requests_per_second, arrivals: Default::default() };
        flow
    };
    let outcome = run_flows(vec![open("slow", 100.0), open("fast", 500_000.0)], |_| {});
    assert!(!of(&outcome, "fast").backlog.unwrap().kept_up());
    let closed = run_flows(vec![flow("closed", 1.0, 1), open("slow", 100.0)], |_| {});
    assert!(of(&closed, "closed").backlog.is_none());
    assert!(of(&closed, "slow").backlog.unwrap().kept_up());
}

#[test]
fn the_steady_state_of_flows_is_that_of_their_writes_together() {
    let (mut hot, mut cold) = (flow("hot", 0.0, 16), flow("cold", 0.0, 1));
    (hot.workload.span, cold.workload.span) = (Span::Share(0.3), Span::Share(0.7));
    cold.workload.begin = softflash_workload::Begin::Share(0.3);
    let outcome = run_flows(vec![hot, cold], |cell| {
        cell.device.geometry.blocks_per_plane = 128;
        cell.parameters.requests = Some(100_000);
        cell.parameters.precondition = Precondition::STEADY;
    });
    assert!(outcome.settled.unwrap().is_level && !outcome.drift.unwrap().is_significant());
    assert!(outcome.programs.waf() > 1.1, "{}", outcome.programs.waf());
}

#[test]
fn units_of_flash_take_no_flows() {
    let (_, mut cell) = cell(Load::closed(1, 1), 10);
    cell.workload = Workload::Flows(FlowWorkload::new("flows", vec![flow("a", 1.0, 1)]));
    cell.layout = crate::presets::layout("sdf").unwrap().1;
    let stop = AtomicBool::new(false);
    let error = crate::engine::run(&cell, &unattended(&stop)).unwrap_err().to_string();
    assert!(error.contains("several flows, which need a page-mapped layout"), "{error}");
}
