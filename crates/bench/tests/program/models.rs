//! `softflash-bench array` and `recovery`: benchmarks of models.

use crate::support::{bench, fails, json};
use serde_json::Value;

#[test]
fn the_model_of_an_array_is_measured() {
    let array = json(&bench(["array", "--operations", "200000", "-o", "json"]));
    assert!(array["page_ops_per_cpu_second"].as_f64().unwrap() > 10_000.0);
    assert!(array["bytes_per_page"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_recovery_is_measured_in_virtual_time_the_same_each_time() {
    let measure = ["recovery", "--array", "small", "--capacity", "64MiB", "--shards", "2"];
    let sizes = ["--fullness", "10,30", "--memory", "1MiB", "--value-size", "16KiB"];
    let measure = [&measure[..], &sizes].concat();
    let rows = || {
        let report = json(&bench([&measure[..], &["-o", "json"]].concat()));
        let row = |row: &Value| {
            let start = |after: &str| row[after]["virtual_seconds"].as_f64().unwrap();
            (row["keys"].as_u64().unwrap(), start("after_close"), start("after_cut"))
        };
        report["rows"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let first = rows();
    assert_eq!(first.len(), 2);
    assert!(first[0].0 < first[1].0, "{first:?}: the second has more keys");
    assert!(first.iter().all(|&(_, close, cut)| close > 0.0 && cut > 0.0), "{first:?}");
    assert_eq!(first, rows(), "equal seeds take the same virtual time");
    let full = [&measure[..], &["--fullness", "95"]].concat();
    fails(1, &full, &["at 95 %", "full", "--capacity"]);
    fails(2, &["recovery", "--array", "nope"], &["--array", "nope", "sdf"]);
    fails(2, &["recovery", "--value-size", "0"], &["--value-size"]);
}
