//! Write amplification of each victim policy under uniform random writes, against theory where
//! there is one and in the order that theory says: nothing beats greedy, and what looks at fewer
//! valid counts is worse.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_lab::cell::unattended;
use softflash_lab::theory::{d_choices_waf, fifo_waf, greedy_waf};
use softflash_lab::{Experiment, Form, engine};
use std::sync::atomic::AtomicBool;

/// Two independent planes, 512 blocks of 16 pages each, 20 % of them spare, overwritten six times
/// before the run.
const DRIVE: &str = r#"
title = "victims"
[[group]]
device = "mqsim-default"
layout = "page-mapped"
workload = "random-write-8k"
set.device.geometry = { channels = 2, chips_per_channel = 1, planes_per_die = 1, blocks_per_plane = 512, pages_per_block = 16, page_bytes = 8192, spare_bytes = 448 }
set.op_percent = 25.0
set.precondition = "overwrite:6"
set.requests = 300_000
vary.layout.victim = VICTIMS
[[group.row]]
label = "{victim}"
measure = "waf"
"#;

const PAGES_PER_BLOCK: u32 = 16;

/// Write amplification of each policy, and physical / logical pages without the open blocks.
fn waf_of(victims: &[&str]) -> (Vec<f64>, f64) {
    let text = DRIVE.replace("VICTIMS", &format!("{victims:?}"));
    let plan = Experiment::parse("it", "it.toml", &text).unwrap().plan(Form::default()).unwrap();
    let stop = AtomicBool::new(false);
    let waf = |cell| engine::run(cell, &unattended(&stop)).unwrap().programs.waf();
    let alpha = (1.0 + plan.cells[0].op_percent() / 100.0) * 511.0 / 512.0;
    (plan.cells.iter().map(waf).collect(), alpha)
}

#[test]
fn policies_agree_with_theory_and_lie_in_its_order() {
    let victims = [
        "greedy",
        "windowed-greedy:256",
        "cost-benefit",
        "windowed-greedy:32",
        "d-choices:30",
        "d-choices:8",
        "fifo",
        "d-choices:1",
    ];
    let (waf, alpha) = waf_of(&victims);
    let of = |victim| waf[victims.iter().position(|&name| name == victim).unwrap()];
    for (victim, theory) in [
        ("greedy", greedy_waf(alpha, PAGES_PER_BLOCK)),
        ("fifo", fifo_waf(alpha)),
        ("d-choices:30", d_choices_waf(alpha, PAGES_PER_BLOCK, 30)),
        ("d-choices:8", d_choices_waf(alpha, PAGES_PER_BLOCK, 8)),
        ("d-choices:1", alpha / (alpha - 1.0)),
    ] {
        let ratio = of(victim) / theory;
        assert!((ratio - 1.0).abs() < 0.03, "{victim}: {ratio} of theory");
    }
    for order in [
        ["greedy", "d-choices:30", "d-choices:8", "fifo", "d-choices:1"].as_slice(),
        &["greedy", "windowed-greedy:32", "fifo"],
        &["greedy", "cost-benefit", "fifo"],
    ] {
        assert!(order.is_sorted_by(|better, worse| of(better) < of(worse)), "{order:?}: {waf:?}");
    }
    let ratio = of("windowed-greedy:256") / of("greedy");
    assert!((ratio - 1.0).abs() < 0.01, "half of all blocks: {ratio} of greedy");
}
