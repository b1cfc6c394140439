//! The figures of a drive whose map lies on flash.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_lab::cell::unattended;
use softflash_lab::{Experiment, Form, Outcome, engine};
use std::sync::atomic::AtomicBool;

/// 8 dies of 16 384 pages, 104 856 logical pages, 52 translation pages of 2048 entries.
const DRIVE: &str = r#"
title = "maps"
[[group]]
device = "mqsim-default"
layout = "page-mapped"
workload = "random-read-8k"
set.device.geometry = { channels = 4, chips_per_channel = 2, planes_per_die = 1, blocks_per_plane = 64, pages_per_block = 256, page_bytes = 8192, spare_bytes = 448 }
set.workload.load.closed = { threads = 1, queue_depth = 1 }
set.op_percent = 25.0
set.precondition = "fill"
set.warm_up_ms = 200
set.requests = 20_000
vary.layout.map = MAPS
[[group.row]]
label = "{map}"
measure = "read_mean_us"
"#;

fn outcomes(maps: &[&str]) -> Vec<Outcome> {
    let text = DRIVE.replace("MAPS", &format!("{maps:?}"));
    let plan = Experiment::parse("it", "it.toml", &text).unwrap().plan(Form::default()).unwrap();
    let stop = AtomicBool::new(false);
    plan.cells.iter().map(|cell| engine::run(cell, &unattended(&stop)).unwrap()).collect()
}

#[test]
fn random_reads_hit_the_cached_share_and_a_miss_costs_a_read() {
    let [cached, page] = &outcomes(&["cached:25%", "page"])[..] else { unreachable!() };
    let ratio = cached.figures["map_hit_ratio"];
    // 13 of 52 pages are cached, the last of which is a fifth full; four standard deviations.
    let expected = 13.0 / 51.2;
    let error = 4.0 * (expected * (1.0 - expected) / 20_000_f64).sqrt();
    assert!((ratio - expected).abs() < error, "{ratio} instead of {expected}");
    assert!(!page.figures.contains_key("map_hit_ratio"));
    // One request at a time: a miss reads two pages, one after the other. One crosses the link.
    let latency = |outcome: &Outcome| outcome.read_latency.mean_ns;
    let slower = latency(cached) / latency(page);
    assert!((slower - (2.0 - ratio)).abs() < 0.03, "{slower} times as long");
}
