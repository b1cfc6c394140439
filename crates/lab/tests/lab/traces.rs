//! Tests of workloads that repeat a trace.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_lab::cell::unattended;
use softflash_lab::{Experiment, Form, LabError, Outcome, engine};
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

const PAGE_BYTES: u64 = 8192;

/// Runs a trace of writes to a small drive's first 64 pages, of which every second one is of
/// another device.
fn run(load: &str, settings: &str) -> Result<Outcome, LabError> {
    let directory = tempfile::tempdir().unwrap();
    let mut trace = String::new();
    for page in 0..64u64 {
        let (stream, at_us) = (page % 2, 1000 * page);
        writeln!(trace, "{stream},W,{},{PAGE_BYTES},{at_us}", page * PAGE_BYTES).unwrap();
    }
    std::fs::write(directory.path().join("disk.csv"), trace).unwrap();
    let workload = format!("name = \"w\"\ntrace = \"./disk.csv\"\n{load}");
    std::fs::write(directory.path().join("w.toml"), workload).unwrap();
    let text = format!(
        "title = \"traces\"\n[[group]]\ndevice = \"mqsim-default\"\nlayout = \"page-mapped\"\n\
         workload = \"{}/w.toml\"\nset.op_percent = 25.0\nset.requests = 1000\n{settings}\n\
         set.device.geometry = {{ channels = 2, chips_per_channel = 1, planes_per_die = 1, \
         blocks_per_plane = 64, pages_per_block = 16, page_bytes = 8192, spare_bytes = 448 }}\n\
         [[group.row]]\nlabel = \"waf\"\nmeasure = \"waf\"\n",
        directory.path().display()
    );
    let plan = Experiment::parse("it", "it.toml", &text).unwrap().plan(Form::default()).unwrap();
    let stop = AtomicBool::new(false);
    engine::run(&plan.cells[0], &unattended(&stop))
}

#[test]
fn a_trace_begins_again_until_the_run_ends() {
    let at_its_times = run("", "").unwrap();
    assert_eq!((at_its_times.completed, at_its_times.bytes_written), (1000, 1000 * PAGE_BYTES));
    // A request a millisecond, however fast the drive is.
    assert!((0.9..1.1).contains(&at_its_times.seconds()), "{}", at_its_times.seconds());
    let closed = run("load = { closed = { queue_depth = 8 } }", "").unwrap();
    assert_eq!(closed.completed, 1000);
    assert!(closed.seconds() < at_its_times.seconds());
}

#[test]
fn the_writes_of_a_trace_settle_its_drive() {
    let settled = run("", "set.precondition = \"steady:3\"").unwrap().settled.unwrap();
    assert_eq!(settled.rewrites, 3);
    // All of the writes go to a few pages again and again.
    assert!(settled.waf < 1.1, "{}", settled.waf);
}

#[test]
fn predictions_know_what_a_trace_will_write() {
    for lifetime in ["decay:4", "oracle:4"] {
        let layout = format!("set.precondition = \"fill\"\nset.layout.lifetime = \"{lifetime}\"");
        assert_eq!(run("", &layout).unwrap().completed, 1000, "{lifetime}");
    }
    let by_device = "set.precondition = \"fill\"\nset.layout.placement = \"by-hint:2\"";
    assert_eq!(run("", by_device).unwrap().completed, 1000);
}
