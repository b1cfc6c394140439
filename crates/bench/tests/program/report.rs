//! `softflash-bench report`: a page with plots from the JSON of benchmarks.

use crate::support::{bench, fails, said};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// A turn of a comparison as bench/against_rocksdb.py writes it.
fn turn(engine: &str, value_bytes: u64, full_percent: Option<f64>, written: f64) -> Value {
    let latency =
        json!({"p50_us": 10.0, "p90_us": 20.0, "p99_us": 30.0, "p999_us": 40.0, "max_us": 50.0});
    let series: Vec<Value> = (0..5).map(|second| json!({"operations": 100 + second})).collect();
    json!({
        "engine": engine, "workload": "overwrite", "distribution": "uniform", "keys": 1000,
        "value_bytes": value_bytes, "full_percent": full_percent, "round": 0,
        "fullness": full_percent.map(|percent| percent / 100.0), "operations_per_second": 1000.0,
        "bytes_per_second": 1e6, "write_amplification": written, "cpu_us_per_operation": 5.0,
        "latency": latency, "slowest_second_ratio": null, "peak_memory_bytes": 1 << 27,
        "series": series,
    })
}

fn write(path: &Path, value: &Value) -> String {
    fs::write(path, value.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_comparison_becomes_a_page_with_plots_and_theory() {
    let temp = tempfile::tempdir().unwrap();
    let mut turns = Vec::new();
    for value_bytes in [1 << 10, 128 << 10] {
        turns.push(turn("rocksdb", value_bytes, None, 4.5));
        turns.push(turn("softflash", value_bytes, Some(70.0), 2.5));
        turns.push(turn("softflash", value_bytes, Some(80.0), 3.5));
    }
    turns.push(json!({
        "engine": "rocksdb", "workload": "delete", "distribution": "zipf", "value_bytes": 1024,
        "refused": "db_bench cannot skew this workload",
    }));
    let script = json!({
        "benchmark": "rocksdb", "machine": {"cores": 2, "kernel": "6.1"}, "results": {"ratio & more": 1.5},
        "details": {"settings": {"notes": ["A note."]}, "turns": turns},
    });
    let file = write(&temp.path().join("rocksdb.json"), &script);
    let page = temp.path().join("out").join("kv.html");
    let output = bench(["report", &file, "--svg", "--out", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    let html = fs::read_to_string(&page).unwrap();
    for part in [
        "overwrite, uniform",
        "rocksdb",
        "softflash, 70 % full",
        "Throughput by size of values",
        "Write amplification of uniform overwrites beside theory",
        "Throughput over time",
        "1.83",
        "db_bench cannot skew this workload",
        "ratio &amp; more",
        "A note.",
    ] {
        assert!(html.contains(part), "`{part}` is missing");
    }
    let plots: Vec<String> = fs::read_dir(page.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".svg"))
        .collect();
    assert!(plots.contains(&"kv-overwrite-uniform-1.svg".to_owned()), "{plots:?}");
    assert!(plots.len() >= 5, "{plots:?}");
}

#[test]
fn a_run_of_kv_becomes_plots_over_time() {
    let temp = tempfile::tempdir().unwrap();
    let mut run = turn("", 1024, None, 2.0);
    run["workload"] = "get".into();
    let file = write(&temp.path().join("run.json"), &run);
    let page = temp.path().join("run.html");
    let output = bench(["report", &file, "--out", page.to_str().unwrap()]);
    assert!(output.status.success(), "{}", said(&output));
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains("Throughput over time") && html.contains("written 2.000 times"));
}

#[test]
fn what_is_no_result_is_named_with_the_remedy() {
    let temp = tempfile::tempdir().unwrap();
    let file = write(&temp.path().join("other.json"), &json!({"a": 1}));
    fails(2, &["report", &file], &["other.json", "--json", "bench kv -o json"]);
    fails(1, &["report", "nowhere.json"], &["nowhere.json"]);
    fails(2, &["report"], &["FILE"]);
}
