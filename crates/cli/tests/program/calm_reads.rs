//! Reads of a paired volume beside writes, by fio over NBD on a modelled array at the speed of real
//! flash, and what the laboratory predicts of the same array.

use crate::nbd::change;
use crate::nbd_clients::{all_exist, run, uri};
use crate::sets::{changed, set, softflash_ok};
use crate::support::http;
use crate::support::program::{json, said, softflash};
use crate::support::server::Server;
use serde_json::Value;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Dies like those of the laboratory's `tlc-modern`, without suspension and ten times slower, so
/// that other work of the machine matters less; two a channel, in few short blocks. A channel is
/// for the store, and two for each set.
const ARRAY: &str = r#"
unit = "channel"
seed = 1

[array.geometry]
channels = 5
chips_per_channel = 2
dies_per_chip = 1
planes_per_die = 4
blocks_per_plane = 40
pages_per_block = 24
page_bytes = 16384
spare_bytes = 2048

[array.die]
cell = "tlc"
pairing = "adjacent"
read_ns = [400000, 500000, 600000]
program_ns = [5500000]
erase_ns = 45000000
cache_read = true
cache_program = true

[array.bus]
bytes_per_second = 160000000
command_overhead_ns = 300
transfer_spare = true

[faults]
"#;

/// The same dies in the laboratory, with a volume of the same size on two sets.
const PREDICTION: &str = r#"
title = "Calm reads on the array of the test"

[[group]]
name = "array"
device = "./flash.toml"
layout = "sdf"
workload = "random-read-4k"
set.device.geometry.channels = 4
set.device.die.read_ns = [400_000, 500_000, 600_000]
set.device.die.program_ns = [5_500_000]
set.device.die.erase_ns = 45_000_000
set.device.bus.bytes_per_second = 160_000_000
set.device.geometry.blocks_per_plane = 40
set.device.geometry.pages_per_block = 24
set.layout.unit = "channel"
set.layout.interface = "volume"
set.layout.order = "reads-first"
set.layout.scheduler = "least-queue"
set.layout.sets = 2
set.layout.copies = 2
set.workload.load.closed.queue_depth = 1
set.workload.write_size = 16_384
set.op_percent = 275
set.precondition = "steady:1"
set.warm_up_ms = 2000
set.duration_ms = 10_000
[[group.variant]]
name = "idle"
[[group.variant]]
name = "together"
set.workload.writers = 32
[[group.variant]]
name = "windows"
set.workload.writers = 32
set.layout.window_ms = 400
[[group.row]]
label = "{variant} mean"
measure = "read_mean_us"
[[group.row]]
label = "{variant} p99"
measure = "read_p99_us"
"#;

const SIZE: &str = "64MiB";

/// A directory with a pair of sets of two channels each, and a volume on it.
fn with_a_pair() -> (TempDir, PathBuf) {
    let temp = tempfile::tempdir().unwrap();
    let (array, data) = (temp.path().join("array.toml"), temp.path().join("data"));
    fs::write(&array, ARRAY).unwrap();
    let path = data.to_str().unwrap();
    let shape = ["--preset", array.to_str().unwrap(), "--shards", "1", "--volume-units", "4"];
    softflash_ok(&[&["format", path, "--backend", "model"], &shape[..]].concat());
    set(&data, "resize", &["vol-0", "--units", "2"]);
    set(&data, "create", &["copy", "--units", "2", "--shard", "0"]);
    set(&data, "pair", &["vol-0", "copy"]);
    (temp, data)
}

/// Latencies of the reads, in microseconds.
#[derive(Clone, Copy)]
struct Reads {
    mean: f64,
    p50: f64,
    p99: f64,
}

impl fmt::Display for Reads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reads { mean, p50, p99 } = self;
        write!(f, "mean {mean:.0} us, p50 {p50:.0} us, p99 {p99:.0} us")
    }
}

/// A reader of 4 KiB at depth 1 for so many seconds, beside a writer of 16 KiB at depth 32 if
/// `writes`.
fn fio(server: &Server, directory: &Path, seconds: u32, writes: bool) -> Reads {
    let (uri, runtime) = (format!("--uri={}", uri(server, "disk")), format!("--runtime={seconds}"));
    let size = format!("--size={SIZE}");
    let state = format!("--aux-path={}", directory.display());
    let reader = ["--name=reader", "--rw=randread", "--bs=4k", "--iodepth=1"];
    let writer = ["--name=writer", "--rw=randwrite", "--bs=16k", "--iodepth=32"];
    let all =
        ["--output-format=json", "--ioengine=nbd", "--thread", "--time_based", "--norandommap"];
    let of_run = [uri.as_str(), runtime.as_str(), size.as_str(), state.as_str()];
    let writer = if writes { &writer[..] } else { &[] };
    let said = run("fio", &[&all[..], &of_run[..], &reader[..], writer].concat());
    let begin = said.find('{').unwrap_or_default();
    let found: Value = serde_json::from_str(&said[begin..]).unwrap();
    let job = |name: &str| {
        let jobs = found["jobs"].as_array().unwrap();
        jobs.iter().find(|job| job["jobname"] == name).cloned().unwrap_or_default()
    };
    let reads = job("reader")["read"]["clat_ns"].clone();
    let us = |value: &Value| value.as_f64().unwrap() / 1e3;
    let percentile = |name: &str| us(&reads["percentile"][name]);
    let (p50, p99) = (percentile("50.000000"), percentile("99.000000"));
    Reads { mean: us(&reads["mean"]), p50, p99 }
}

/// The mean and the p99 of reads that the laboratory predicts, in microseconds.
fn predicted(directory: &Path) -> impl Fn(&str) -> [f64; 2] {
    let (file, out) = (directory.join("calm.toml"), directory.join("results"));
    fs::write(&file, PREDICTION).unwrap();
    fs::write(directory.join("flash.toml"), without_suspension()).unwrap();
    let (file, out) = (file.to_str().unwrap(), out.to_str().unwrap());
    let rows = json(&softflash(["lab", "run", file, "--out", out, "--jobs", "1", "-o", "json"]));
    move |variant: &str| {
        ["mean", "p99"].map(|figure| {
            let label = format!("{variant} {figure}");
            value_of(&rows, &label).unwrap_or_else(|| panic!("no row `{label}` in {rows:#}"))
        })
    }
}

/// `tlc-modern` as a file, without the tables of its suspension.
fn without_suspension() -> String {
    let shown = softflash(["lab", "show", "tlc-modern"]);
    assert!(shown.status.success(), "{}", said(&shown));
    let (mut kept, mut is_kept) = (String::new(), true);
    for line in String::from_utf8_lossy(&shown.stdout).lines() {
        if line.starts_with('[') {
            is_kept = !line.ends_with("_suspend]");
        }
        if is_kept {
            kept.extend([line, "\n"]);
        }
    }
    kept
}

/// The figure of a row, wherever its experiment is in the results.
fn value_of(results: &Value, label: &str) -> Option<f64> {
    match results {
        Value::Object(fields) if fields.get("label").is_some_and(|found| found == label) => {
            fields.get("ours")?.as_f64()
        }
        Value::Object(fields) => fields.values().find_map(|field| value_of(field, label)),
        Value::Array(values) => values.iter().find_map(|value| value_of(value, label)),
        _ => None,
    }
}

/// A figure of the first set of a pair in `/metrics`.
fn metric(server: &Server, name: &str) -> f64 {
    let page = http::get(server.address_of("http"), "/metrics");
    let line = page.lines().find(|line| line.starts_with(&format!("softflash_volume_{name}{{")));
    let value = line.and_then(|line| line.split_whitespace().last());
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{page}"))
}

/// Windows take the programs away from the reads, on the served volume as in the laboratory.
/// `SOFTFLASH_CALM_SECONDS` is the duration of each of the three runs.
#[test]
fn fio_over_nbd_sees_the_calm_reads_that_the_laboratory_predicts() {
    if !all_exist(&["fio"]) {
        return;
    }
    let seconds = std::env::var("SOFTFLASH_CALM_SECONDS").ok();
    let seconds = seconds.and_then(|text| text.parse().ok()).unwrap_or(4);
    let (temp, data) = with_a_pair();
    let server = Server::start(&data, &["--memory", "64MiB", "--nbd", "127.0.0.1:0"]);
    change(&server, &["CREATE", "disk", SIZE, "COPIES", "2"]);
    let fill = ["--name=fill", "--ioengine=nbd", "--rw=write", "--bs=256k", "--iodepth=8"];
    let place = [format!("--uri={}", uri(&server, "disk")), format!("--size={SIZE}")];
    run("fio", &[&fill[..], &[place[0].as_str(), place[1].as_str()]].concat());
    let idle = fio(&server, temp.path(), seconds, false);
    let together = fio(&server, temp.path(), seconds, true);
    changed(&server, &["WINDOW", "vol-0", "400ms"]);
    let windows = fio(&server, temp.path(), seconds, true);
    let turns = metric(&server, "pair_turns_total");
    let drain_ms = 1e3 * metric(&server, "pair_longest_drain_seconds");
    assert_eq!(metric(&server, "pair_whole"), 1.0);
    assert!(server.terminate().success());

    let predicted = predicted(temp.path());
    for (name, measured) in [("idle", idle), ("together", together), ("windows", windows)] {
        let [mean, p99] = predicted(name);
        println!("{name}: {measured}; predicted: mean {mean:.0} us, p99 {p99:.0} us");
    }
    println!("{turns} turns, the longest drain {drain_ms:.1} ms");
    assert!(turns >= f64::from(seconds), "{turns} turns in {seconds} s");
    let [[idle_mean, idle_p99], [together_mean, _], [windows_mean, windows_p99]] =
        ["idle", "together", "windows"].map(predicted);
    assert!(windows_mean < 1.2 * idle_mean && windows_p99 < 1.2 * idle_p99, "as predicted");
    assert!(together_mean > 3.0 * idle_mean, "as predicted");
    // The machine of a test has other work, which delays some reads of all runs: the tails are its.
    assert!(windows.p50 < 2.0 * idle.p50, "windows: {windows}; idle: {idle}");
    assert!(windows.p50 < 0.5 * together.p50, "windows: {windows}; together: {together}");
    assert!(windows.mean < 0.7 * together.mean, "windows: {windows}; together: {together}");
}
