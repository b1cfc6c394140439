//! `softflash bench kv`: its workloads, the fields of its JSON, and wrong arguments.

use crate::support::program::{fails, json, softflash};
use serde_json::Value;
use std::fs;

/// Runs a small benchmark with two threads.
fn bench(more: &[&str]) -> Value {
    let temp = tempfile::tempdir().unwrap();
    let here = temp.path().to_str().unwrap();
    let common = ["bench", "kv", "--threads", "2", "--directory", here, "-o", "json"];
    let result = json(&softflash(common.iter().chain(more)));
    assert_eq!(fs::read_dir(here).unwrap().count(), 0, "nothing is left behind");
    result
}

fn small(workload: &str, more: &[&str]) -> Value {
    let size = ["--workload", workload, "--keys", "3000", "--operations", "4000", "--size", "1GiB"];
    bench(&[&size[..], more].concat())
}

fn number(result: &Value, field: &str) -> f64 {
    result[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number in {result:#}"))
}

#[test]
fn every_workload_reports_what_it_did() {
    let (reads, writes, both) = ("reads", "writes", "both");
    for (workload, kinds, distribution) in [
        ("fill", writes, "once"),
        ("overwrite", writes, "uniform"),
        ("get", reads, "uniform"),
        ("mixed", both, "uniform"),
        ("scan", reads, "ascending"),
        ("delete", writes, "uniform"),
        ("ycsb-a", both, "zipf:0.99"),
        ("ycsb-b", both, "zipf:0.99"),
        ("ycsb-c", reads, "zipf:0.99"),
        ("ycsb-d", both, "latest:0.99"),
        ("ycsb-e", both, "zipf:0.99"),
        ("ycsb-f", both, "zipf:0.99"),
    ] {
        let result = small(workload, &[]);
        assert_eq!(result["workload"], workload);
        assert_eq!(result["distribution"], distribution, "{workload}");
        assert_eq!(number(&result, "operations"), if workload == "fill" { 3000.0 } else { 4000.0 });
        for field in ["operations_per_second", "bytes_per_second", "cpu_us_per_operation"] {
            assert!(number(&result, field) > 0.0, "{workload}: {field}");
        }
        assert!(number(&result["latency"], "p99_us") > 0.0);
        assert_eq!(result["write_amplification"].is_null(), kinds == reads, "{workload}");
        for latency in ["read_latency", "write_latency"] {
            let apart = &result[latency];
            assert_eq!(apart.is_object(), kinds == both, "{workload}: {latency} {apart}");
            assert!(kinds != both || number(apart, "p999_us") > 0.0);
        }
        assert!(result["slowest_second_ratio"].is_null(), "it takes less than two seconds");
        assert!(number(&result, "space_used_ratio") > 1.0, "{workload}: superblocks are large");
        assert!(number(&result, "peak_memory_bytes") > 1e6);
        assert!(result.get("series").is_none());
    }
}

#[test]
fn a_distribution_and_a_share_of_reads_can_be_chosen() {
    let result = small("overwrite", &["--distribution", "zipf:1.2"]);
    assert_eq!(result["distribution"], "zipf:1.2");
    let result = small("ycsb-a", &["--distribution", "uniform"]);
    assert_eq!(result["distribution"], "uniform");
    let result = small("scan", &["--distribution", "zipf:0.99"]);
    assert_eq!(result["distribution"], "zipf:0.99");
    let result = small("mixed", &["--reads", "100%"]);
    assert!(result["read_latency"].is_null() && result["write_amplification"].is_null());
}

#[test]
fn deleted_keys_are_not_live() {
    // In the long run the last operation on half of the keys is a deletion.
    let space = |result: &Value| number(result, "space_used_ratio");
    let all = bench(&["--workload", "overwrite", "--keys", "2000", "--size", "1GiB"]);
    let half = ["--workload", "delete", "--keys", "2000", "--operations", "20000"];
    let half = bench(&[&half[..], &["--size", "1GiB"]].concat());
    assert!(space(&half) > 1.5 * space(&all), "{} and {}", space(&half), space(&all));
}

#[test]
fn the_device_is_as_full_as_wanted_and_each_second_is_reported() {
    let data = ["--keys", "4000", "--value-size", "64KiB", "--fullness", "25%"];
    let run = ["--workload", "get", "--operations", "40000", "--depth", "1", "--series"];
    let result = bench(&[&data[..], &run].concat());
    let fullness = number(&result, "fullness");
    assert!((0.24..0.26).contains(&fullness), "{fullness}");
    let used = number(&result, "space_used_ratio");
    assert!((1.0..4.0).contains(&used), "{used}: above 4 there would be more than the device has");
    let series = result["series"].as_array().unwrap();
    let operations: f64 = series.iter().map(|second| number(second, "operations")).sum();
    assert_eq!(operations, 40_000.0);
    let line = result["seconds_series"].as_array().unwrap();
    let of_line: f64 = line.iter().map(|second| number(second, "operations")).sum();
    assert_eq!((line.len(), of_line), (series.len(), 40_000.0));
    for cause in ["space", "cleaning", "values", "memory", "log", "runs", "merge"] {
        let waits = line.iter().map(|second| number(&second["stall_us"], cause)).sum::<f64>();
        assert_eq!(waits, 0.0, "{cause}: reads are not delayed");
    }
    let longest = series.iter().map(|second| number(second, "longest_us")).fold(0.0, f64::max);
    let max = number(&result["latency"], "max_us");
    assert!((longest / max - 1.0).abs() < 0.01, "{longest} and {max}");
    assert!(series.len() as f64 <= number(&result, "seconds") + 1.0);
}

/// More is written than the spare space: writes wait for cleaning.
#[test]
fn writes_that_wait_for_space_are_stalls_of_their_second() {
    let data = ["--keys", "20000", "--value-size", "16KiB", "--fullness", "70%"];
    let run = ["--workload", "overwrite", "--memory", "32MiB", "--durability", "1s"];
    let result = bench(&[&data[..], &run].concat());
    let line = result["seconds_series"].as_array().unwrap();
    let of_line: f64 = line.iter().map(|second| number(second, "operations")).sum();
    assert_eq!(of_line, 20_000.0);
    let waits =
        |cause: &str| -> f64 { line.iter().map(|second| number(&second["stall_us"], cause)).sum() };
    assert!(waits("space") + waits("cleaning") > 0.0, "{line:?}");
    // Each of the 32 concurrent writes waits for at most the time of the run.
    let all = waits("space") + waits("cleaning");
    assert!(all <= 32e6 * number(&result, "seconds"), "{all} us");
}

#[test]
fn wrong_arguments_are_refused_with_the_remedy() {
    let kv = |more: &[&'static str]| [&["bench", "kv"][..], more].concat();
    fails(2, &kv(&["--distribution", "zipf:x"]), &["--distribution", "`zipf:x`", "zipf:0.99"]);
    fails(2, &kv(&["--distribution", "zipf:0"]), &["--distribution", "above 0", "uniform"]);
    fails(2, &kv(&["--fullness", "0%"]), &["--fullness", "`0%`", "70%"]);
    fails(2, &kv(&["--fullness", "120%"]), &["--fullness", "`120%`", "below 100 %"]);
    fails(2, &kv(&["--fullness", "0.7"]), &["--fullness", "`0.7`", "70%"]);
    fails(2, &kv(&["--fullness", "50%", "--size", "1GiB"]), &["--fullness", "--size"]);
    fails(2, &kv(&["--reads", "half"]), &["--reads", "`half`", "50%"]);
    fails(2, &kv(&["--workload", "ycsb-g"]), &["--workload", "ycsb-f"]);
}

#[test]
fn a_data_set_that_the_store_has_no_room_for_is_an_error_with_the_remedy() {
    let temp = tempfile::tempdir().unwrap();
    let here = temp.path().to_str().unwrap();
    let data = ["--keys", "4000", "--value-size", "64KiB", "--fullness", "99%"];
    let all = [&["bench", "kv", "--directory", here][..], &data].concat();
    fails(1, &all, &["full", "4000 keys", "99", "--fullness"]);
    assert_eq!(fs::read_dir(here).unwrap().count(), 0, "nothing is left behind");
}
