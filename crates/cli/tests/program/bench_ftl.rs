//! `bench ftl`: its figures beside theory, the recovery, and wrong arguments.

use crate::support::program::{fails, json, softflash};
use serde_json::Value;

/// Runs a benchmark with a seed.
fn bench(size: &str, units: &str, more: &[&str]) -> Value {
    let shape = ["bench", "ftl", "--size", size, "--units", units, "-o", "json", "--seed", "5"];
    let counts = ["--writes", "300000", "--reads", "20000"];
    json(&softflash(shape.iter().chain(&counts).chain(more)))
}

fn number(result: &Value, field: &str) -> f64 {
    result[field].as_f64().unwrap_or_else(|| panic!("{field} is not a number in {result:#}"))
}

#[test]
fn write_amplification_is_that_of_the_mean_field_and_memory_is_bounded() {
    println!("seed 5");
    // Four units: each has to collect as much as the others, or all write more.
    let result = bench("2GiB", "4", &[]);
    for field in ["ns_per_write", "ns_per_read", "checksum_ns", "copy_ns"] {
        assert!(number(&result, field) > 0.0, "{field}");
    }
    let ratio = number(&result, "waf_ratio");
    assert!((ratio - 1.0).abs() < 0.03, "{ratio} of the mean field: {result:#}");
    let parts = ["waf", "waf_frames", "waf_checkpoints", "waf_headers"];
    let sum: f64 = parts.iter().map(|part| number(&result, part)).sum();
    assert!((sum - number(&result, "waf_total")).abs() < 1e-6, "{result:#}");
    assert!(number(&result, "memory_bytes_per_unit") < 12.0, "{result:#}");
    assert!(result["recovery"].is_null());
}

#[test]
fn a_recovery_after_a_cut_replays_the_frames_behind_the_root() {
    let recovery = &bench("512MiB", "2", &["--recovery"])["recovery"];
    for field in ["seconds", "seconds_per_tib", "leaves", "frames", "entries"] {
        assert!(number(recovery, field) > 0.0, "{field}: {recovery:#}");
    }
}

#[test]
fn equal_seeds_write_the_same() {
    let [first, second] = [(); 2].map(|()| bench("256MiB", "1", &[]));
    for field in ["waf", "waf_total", "effective_spare_percent", "overwrites_before"] {
        assert_eq!(first[field], second[field], "{field}");
    }
}

#[test]
fn impossible_sizes_are_usage_errors_that_name_the_option() {
    for (option, value, reason) in [
        ("--size", "100MiB", "4 units need at least 512.0 MiB"),
        ("--size", "17TiB", "a domain has at most 16 TiB"),
        ("--spare", "0.5", "0.5 is not between 1 and 90"),
        ("--spare", "-1", "-1 is not between 1 and 90"),
        ("--batch", "0", "0 is not in 1..=256"),
    ] {
        fails(2, &["bench", "ftl", option, value], &[option, reason]);
    }
}
