//! Tests of the simulated drive against theory: write amplification of cleaning, and the wait at a
//! die.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_lab::cell::unattended;
use softflash_lab::results::ExperimentResult;
use softflash_lab::theory::{greedy_waf, md1_wait};
use softflash_lab::{Experiment, Form, Outcome, Plan, engine};
use std::sync::atomic::AtomicBool;

/// Two independent planes, 512 blocks of 256 pages each: a small drive whose share of open blocks
/// is that of a large one.
const CLEANING: &str = r#"
title = "cleaning"
tolerance = 0.02
[[group]]
device = "mqsim-default"
layout = "page-mapped"
workload = "random-write-8k"
set.device.geometry = { channels = 2, chips_per_channel = 1, planes_per_die = 1, blocks_per_plane = 512, pages_per_block = 256, page_bytes = 8192, spare_bytes = 448 }
set.layout.victim = "VICTIM"
set.precondition = "STATE"
set.requests = REQUESTS
vary.op_percent = [5.263157894736842, 11.11111111111111, 25.0, 66.66666666666667]
[[group.row]]
label = "{op_percent}"
measure = "waf"
theory = "LAW"
"#;

const QUEUEING: &str = r#"
title = "queueing"
tolerance = 0.02
[[group]]
device = "sdf"
layout = "page-mapped"
workload = "random-read-8k"
set.device.geometry = { channels = 1, chips_per_channel = 1, planes_per_die = 1, blocks_per_plane = 8, pages_per_block = 256, page_bytes = 8192, spare_bytes = 448 }
set.device.die.cache_read = false
set."device.link" = {}
set."device.host" = {}
set."workload.load" = { open = { requests_per_second = 1.0, arrivals = "poisson" } }
set.requests = 3_000_000
vary.workload.load.open.requests_per_second = [714.796, 1786.990, 2859.185]
[[group.row]]
label = "{requests_per_second}"
measure = "read_mean_us"
theory = "md1-latency-us"
"#;

const SERVICE_US: f64 = 75.0 + 204.8;

fn planned(text: &str) -> Plan {
    Experiment::parse("it", "it.toml", text).unwrap().plan(Form::default()).unwrap()
}

fn run(plan: &Plan) -> Vec<Outcome> {
    let stop = AtomicBool::new(false);
    plan.cells.iter().map(|cell| engine::run(cell, &unattended(&stop)).unwrap()).collect()
}

fn cleaning(victim: &str, state: &str, requests: u64) -> Plan {
    let text = CLEANING.replace("VICTIM", victim).replace("STATE", state);
    let text = text.replace("REQUESTS", &requests.to_string());
    planned(&text.replace("LAW", &format!("{victim}-waf")))
}

fn all_agree(plan: &Plan, outcomes: &[Outcome]) {
    let result = ExperimentResult::new(plan, outcomes).unwrap();
    for row in &result.rows {
        assert_eq!(row.agrees, Some(true), "{row:?}");
    }
}

/// The mean write amplification of the intervals in a part of the run.
fn mean_waf(outcome: &Outcome, part: std::ops::Range<usize>) -> f64 {
    let series = &outcome.series[part];
    series.iter().map(|sample| sample.waf).sum::<f64>() / series.len() as f64
}

#[test]
fn greedy_cleaning_agrees_with_the_mean_field_and_does_not_drift() {
    let plan = cleaning("greedy", "steady", 600_000);
    let outcomes = run(&plan);
    all_agree(&plan, &outcomes);
    for outcome in &outcomes {
        let half = outcome.series.len() / 2;
        let [early, late] =
            [0..half, half..outcome.series.len()].map(|part| mean_waf(outcome, part));
        assert!((late / early - 1.0).abs() < 0.015, "{early} became {late}");
    }
}

/// With few blocks in a plane, a block is a large share of the spare: the stage of the open one
/// counts.
#[test]
fn a_short_run_begins_in_the_state_of_theory_with_few_blocks_too() {
    let text = CLEANING.replace("blocks_per_plane = 512", "blocks_per_plane = 64");
    let text = text.replace("channels = 2", "channels = 8").replace("VICTIM", "greedy");
    let text = text.replace("STATE", "steady").replace("REQUESTS", "20_000");
    let plan = planned(&text.replace("theory = \"LAW\"\n", ""));
    for (cell, outcome) in plan.cells.iter().zip(run(&plan)) {
        let alpha = (1.0 + cell.op_percent() / 100.0) * 63.0 / 64.0;
        let ratio = outcome.programs.waf() / greedy_waf(alpha, 256);
        assert!((ratio - 1.0).abs() < 0.02, "{}: {ratio} of theory", cell.key);
    }
}

#[test]
fn writes_of_half_a_page_amplify_as_those_of_whole_pages() {
    let text = CLEANING.replace("VICTIM", "greedy").replace("STATE", "steady");
    let text =
        text.replace("set.requests = REQUESTS", "set.workload.size = 4096\nset.requests = 300_000");
    let plan = planned(&text.replace("theory = \"LAW\"\n", ""));
    for (cell, outcome) in plan.cells.iter().zip(run(&plan)) {
        let alpha = (1.0 + cell.op_percent() / 100.0) * 511.0 / 512.0;
        let ratio = outcome.programs.waf() / greedy_waf(alpha, 256);
        assert!((ratio - 1.0).abs() < 0.02, "{}: {ratio} of theory", cell.key);
    }
}

#[test]
fn fifo_cleaning_agrees_with_the_lambert_form() {
    let plan = cleaning("fifo", "steady", 600_000);
    all_agree(&plan, &run(&plan));
}

#[test]
fn overwriting_for_long_comes_to_the_same_state() {
    let mut plan = cleaning("greedy", "overwrite:8", 300_000);
    plan.cells.remove(0);
    plan.rows.remove(0);
    plan.rows.iter_mut().for_each(|row| row.cell -= 1);
    all_agree(&plan, &run(&plan));
}

#[test]
fn reads_of_one_die_wait_as_long_as_theory_says() {
    let plan = planned(QUEUEING);
    let outcomes = run(&plan);
    all_agree(&plan, &outcomes);
    for (outcome, utilisation) in outcomes.iter().zip([0.2, 0.5, 0.8]) {
        let waited_us = outcome.read_latency.mean_ns / 1e3 - SERVICE_US;
        let ratio = waited_us / md1_wait(utilisation, SERVICE_US);
        assert!((ratio - 1.0).abs() < 0.02, "at {utilisation}: {ratio} of the wait");
    }
}

#[test]
fn theory_refuses_what_it_cannot_speak_of() {
    let refused = |from: &str, to: &str| {
        let text = CLEANING.replace("VICTIM", "greedy").replace("STATE", "steady");
        let text = text.replace("REQUESTS", "1").replace("LAW", "greedy-waf").replace(from, to);
        let parsed = Experiment::parse("it", "it.toml", &text);
        parsed.and_then(|experiment| experiment.plan(Form::default())).unwrap_err().to_string()
    };
    assert!(refused("\"greedy\"", "\"fifo\"").contains("theory needs the layout"));
    assert!(refused("set.requests", "set.workload.size = 4096\nset.requests").contains("a page"));
    assert!(refused("greedy-waf", "greedy-wfa").contains("greedy-waf"));
    assert!(refused("greedy-waf", "md1-latency-us").contains("poisson"));
}

#[test]
fn more_spare_is_less_amplification() {
    let waf = [1.05, 1.2, 1.5, 2.0].map(|alpha| greedy_waf(alpha, 256));
    assert!(waf.windows(2).all(|pair| pair[1] < pair[0]), "{waf:?}");
}
