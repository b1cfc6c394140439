//! `softflash lab`, `bench sim` and `replay`: experiments and traces with the real program, on a
//! drive that is small enough for a test.

use crate::support::program::{binary, said, softflash};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const DEVICE: &str = r#"
name = "tiny"
title = "A tiny drive: 64 MiB"
default_layout = "page-mapped"

[geometry]
channels = 4
chips_per_channel = 1
planes_per_die = 1
blocks_per_plane = 64
pages_per_block = 64
page_bytes = 4096

[die]
cell = "slc"
read_ns = [50_000]
program_ns = [200_000]
erase_ns = 2_000_000

[bus]
bytes_per_second = 400_000_000
"#;

const EXPERIMENT: &str = r#"
title = "Reads and writes of a tiny drive"
source = "nobody"

[paper]
"tiny write 4 KiB" = 1.0

[[plot]]
name = "writes"
title = "Writes by size"
x = "workload.size"
x_label = "request"
y_label = "throughput"

[[group]]
name = "writes"
device = "DEVICE"
workload = "random-write-8k"
set.requests = 20_000
vary.workload.size = [4096, 8192]
[[group.row]]
label = "{device} write {size}"
measure = "write_mb_s"
plot = "writes"
[[group.row]]
label = "WAF {size}"
measure = "waf"

[[group]]
name = "reads"
device = "DEVICE"
workload = "random-read-8k"
set.requests = 20_000
[[group.row]]
label = "{device} read"
measure = "read_mean_us"

[[derived]]
label = "8 KiB over 4 KiB"
of = "tiny write 8 KiB"
over = "tiny write 4 KiB"
as = "ratio"
"#;

/// A directory with a device and experiments.
struct Laboratory {
    directory: tempfile::TempDir,
}

impl Laboratory {
    fn new() -> Laboratory {
        let laboratory = Laboratory { directory: tempfile::tempdir().unwrap() };
        laboratory.write("tiny.toml", DEVICE);
        laboratory.experiment("it.toml", EXPERIMENT);
        laboratory
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn experiment(&self, name: &str, text: &str) {
        self.write(name, &text.replace("DEVICE", &self.path("tiny.toml")));
    }

    fn run(&self, out: &str, more: &[&str]) -> Output {
        let (experiment, out) = (self.path("it.toml"), self.path(out));
        softflash([&["lab", "run", &experiment, "--out", &out], more].concat())
    }

    fn cells(&self, out: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path(&format!("{out}/it/cells"))).unwrap();
        let mut cells: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        cells.sort();
        cells
    }

    fn result(&self, out: &str) -> Option<Vec<u8>> {
        fs::read(self.path(&format!("{out}/it/result.json"))).ok()
    }
}

fn succeeds(output: &Output) {
    assert!(output.status.success(), "{}", said(output));
}

fn fails(output: &Output, code: i32, parts: &[&str]) {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(parts.iter().all(|part| errors.contains(part)), "{parts:?}: {errors}");
}

fn json(output: &Output) -> Value {
    succeeds(output);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

#[test]
fn the_list_has_the_fields_for_scripts() {
    let list = json(&softflash(["lab", "list", "-o", "json"]));
    let names = |kind: &str| -> Vec<String> {
        let entries = list[kind].as_array().unwrap().iter();
        entries.map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("devices").contains(&"mqsim-default".to_owned()));
    assert!(names("layouts").contains(&"page-mapped".to_owned()));
    assert!(names("workloads").contains(&"mixed-8k".to_owned()));
    succeeds(&softflash(["lab", "list"]));
}

#[test]
fn equal_seeds_give_equal_bytes_on_one_and_on_two_threads() {
    let laboratory = Laboratory::new();
    succeeds(&laboratory.run("one", &["--jobs", "1", "--seed", "7"]));
    succeeds(&laboratory.run("two", &["--jobs", "2", "--seed", "7"]));
    succeeds(&laboratory.run("other", &["--seed", "8"]));
    let [one, two, other] = ["one", "two", "other"].map(|out| laboratory.result(out).unwrap());
    assert_eq!(one, two);
    assert_ne!(one, other);
    let result: Value = serde_json::from_slice(&one).unwrap();
    assert_eq!((&result["experiment"], &result["seed"]), (&"it".into(), &7.into()));
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert_eq!((&rows[0]["label"], &rows[0]["unit"]), (&"tiny write 4 KiB".into(), &"MB/s".into()));
    assert_eq!((&rows[0]["paper"], &rows[1]["paper"]), (&1.0.into(), &Value::Null));
    assert!(rows[0]["ours"].as_f64().unwrap() > 1.0 && rows[1]["ours"].as_f64().unwrap() >= 1.0);
    let csv = fs::read_to_string(laboratory.path("one/it/result.csv")).unwrap();
    let begin = "label,unit,paper,ours,ratio,theory,stddev,ci95\ntiny write 4 KiB,MB/s,1,";
    assert!(csv.starts_with(begin), "{csv}");
}

#[test]
fn a_run_goes_on_from_the_cells_that_are_there() {
    let laboratory = Laboratory::new();
    succeeds(&laboratory.run("out", &[]));
    let before = laboratory.result("out").unwrap();
    let cells = laboratory.cells("out");
    assert_eq!(cells.len(), 3);
    // One is missing, one is damaged, one is reused.
    fs::remove_file(&cells[0]).unwrap();
    fs::write(&cells[1], "{}").unwrap();
    let kept = fs::metadata(&cells[2]).unwrap().modified().unwrap();
    fs::remove_file(laboratory.path("out/it/result.json")).unwrap();
    succeeds(&laboratory.run("out", &[]));
    assert_eq!(laboratory.result("out").unwrap(), before);
    assert_eq!(laboratory.cells("out"), cells);
    assert_eq!(fs::metadata(&cells[2]).unwrap().modified().unwrap(), kept);
}

#[test]
fn a_cell_that_fails_lets_the_others_end() {
    let laboratory = Laboratory::new();
    succeeds(&laboratory.run("out", &[]));
    let text =
        EXPERIMENT.replacen("[4096, 8192]", "[4096, 134217728]", 1).replace("8 KiB", "128 MiB");
    laboratory.experiment("it.toml", &text);
    let output = laboratory.run("out", &[]);
    fails(&output, 1, &["size=134217728", "no result for it", "the completed cells are kept"]);
    assert!(laboratory.result("out").is_none(), "the old result is not of these cells");
    assert!(
        laboratory
            .cells("out")
            .iter()
            .any(|cell| cell.ends_with("reads_tiny_page-mapped_random-read-8k.json"))
    );
}

#[test]
fn an_interrupt_keeps_completed_cells_and_says_how_to_continue() {
    let laboratory = Laboratory::new();
    let endless = EXPERIMENT.replacen("set.requests = 20_000", "set.requests = 1_000_000_000", 1);
    laboratory.experiment("it.toml", &endless);
    let (experiment, out) = (laboratory.path("it.toml"), laboratory.path("out"));
    let mut command = Command::new(binary());
    command.args(["lab", "run", &experiment, "--out", &out, "--jobs", "3"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The reads end soon, the writes never.
    while !fs::exists(laboratory.path("out/it/cells/reads_tiny_page-mapped_random-read-8k.json"))
        .unwrap()
    {
        std::thread::yield_now();
    }
    // SAFETY: a signal to a child that has not been waited for.
    #[expect(unsafe_code, reason = "the standard library sends no SIGINT")]
    let sent = unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(sent, 0);
    let output = child.wait_with_output().unwrap();
    fails(&output, 1, &["interrupted", "the same command continues"]);
    assert_eq!(laboratory.cells("out").len(), 1);
    assert!(laboratory.result("out").is_none());
}

#[test]
fn a_report_is_one_file_with_all_that_ran() {
    let laboratory = Laboratory::new();
    fs::create_dir(laboratory.path("empty")).unwrap();
    fails(
        &softflash(["lab", "report", &laboratory.path("empty")]),
        2,
        &["no results in it", "lab run"],
    );
    succeeds(&laboratory.run("out", &[]));
    succeeds(&softflash(["lab", "report", &laboratory.path("out")]));
    let html = fs::read_to_string(laboratory.path("out/report.html")).unwrap();
    for part in [
        "tiny write 4 KiB",
        "Writes by size",
        "<svg",
        "A tiny drive",
        "Write amplification",
        "Utilisation",
        "tiny write 4 KiB: still drifting",
        "Runs: 3",
        "over-provisioning, %",
        "write throughput",
        "Distribution of latency",
        "tiny: all parameters",
        "geometry.pages_per_block",
    ] {
        assert!(html.contains(part), "`{part}` is missing");
    }
    assert!(
        !html.contains("http://") || !html.contains("src=\"http"),
        "nothing comes from outside"
    );
}

#[test]
fn replicates_give_means_with_their_spread() {
    let laboratory = Laboratory::new();
    let text = EXPERIMENT.replacen("source =", "replicates = 3\nsource =", 1);
    laboratory.experiment("it.toml", &text);
    let table = laboratory.run("out", &[]);
    succeeds(&table);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(text.contains("± 95 %") && text.contains("write amplification in pages"), "{text}");
    assert!(!text.contains("write throughput"), "the label says that it is of writes: {text}");
    assert_eq!(laboratory.cells("out").len(), 9);
    let result: Value = serde_json::from_slice(&laboratory.result("out").unwrap()).unwrap();
    assert_eq!(result["replicates"], 3);
    let waf = &result["rows"][1];
    assert!(waf["spread"]["stddev"].as_f64().unwrap() > 0.0, "{waf}");
    assert!(waf["spread"]["ci95"].as_f64() > waf["spread"]["stddev"].as_f64(), "{waf}");
    let [derived, of, over] = [5, 2, 0].map(|row| &result["rows"][row]["ours"]);
    let ratio = of.as_f64().unwrap() / over.as_f64().unwrap();
    assert!((derived.as_f64().unwrap() / ratio - 1.0).abs() < 0.01, "{derived} and {ratio}");
    succeeds(&softflash(["lab", "report", &laboratory.path("out")]));
    let html = fs::read_to_string(laboratory.path("out/report.html")).unwrap();
    assert!(html.contains("3 replicates with different seeds") && html.contains("replicate 2"));
}

#[test]
fn directories_of_results_stand_side_by_side() {
    let laboratory = Laboratory::new();
    succeeds(&laboratory.run("before", &[]));
    succeeds(&laboratory.run("after", &["--seed", "8"]));
    let [before, after, to] = ["before", "after", "both.html"].map(|name| laboratory.path(name));
    fails(&softflash(["lab", "report", &before, &after]), 2, &["--to compared.html"]);
    let report = ["lab", "report", &before, &after, "--to", &to];
    succeeds(&softflash(report));
    fails(&softflash(report), 1, &["both.html: it exists already"]);
    succeeds(&softflash([&report[..], &["--force"]].concat()));
    let html = fs::read_to_string(&to).unwrap();
    for part in ["ratios to before", "tiny write 4 KiB, after", "seed 8", "Runs: 6"] {
        assert!(html.contains(part), "`{part}` is missing");
    }
}

#[test]
fn mistakes_are_named_before_anything_runs() {
    let laboratory = Laboratory::new();
    let wrong = |from: &str, to: &str, code: i32, parts: &[&str]| {
        laboratory.experiment("it.toml", &EXPERIMENT.replacen(from, to, 1));
        fails(&laboratory.run("out", &[]), code, parts);
        assert!(!fs::exists(laboratory.path("out")).unwrap());
    };
    wrong(
        "measure = \"waf\"",
        "meassure = \"waf\"",
        1,
        &["it.toml: line 27", "`meassure`", "`measure`"],
    );
    wrong(
        "random-write-8k",
        "random-writes-8k",
        2,
        &["no workload is called `random-writes-8k`", "`random-write-8k`"],
    );
    fails(&softflash(["lab", "run", "sdf-tabel4"]), 2, &["no experiment is called `sdf-tabel4`"]);
    fails(&softflash(["lab", "run"]), 2, &["NAME"]);
}

fn sim(laboratory: &Laboratory, more: &[&str]) -> Output {
    let device = laboratory.path("tiny.toml");
    softflash([&["bench", "sim", "--device", &device, "--layout", "page-mapped"], more].concat())
}

#[test]
fn one_simulation_reports_results_and_cost() {
    let laboratory = Laboratory::new();
    let arguments = ["--workload", "mixed-8k", "--requests", "20000", "--op", "25", "-o", "json"];
    let report = json(&sim(&laboratory, &arguments));
    assert_eq!((&report["requests"], &report["completed"]), (&20_000.into(), &20_000.into()));
    for figure in ["cpu_seconds", "precondition_cpu_seconds", "simulated_seconds", "bytes_per_page"]
    {
        assert!(report[figure].as_f64().unwrap() > 0.0, "{figure}: {report}");
    }
    assert!(report["waf"].as_f64().unwrap() >= 1.0);
    // 8 KiB are two pages.
    let ratio = report["waf_bytes"].as_f64().unwrap() / report["waf"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.05, "{report}");
    let iops = 20_000.0 / report["simulated_seconds"].as_f64().unwrap();
    assert!((report["iops"].as_f64().unwrap() / iops - 1.0).abs() < 1e-9, "{report}");
    assert!((report["op_percent"].as_f64().unwrap() - 25.0).abs() < 0.1, "{report}");
    assert!(report["capacity_bytes"].as_u64().unwrap() < 64 << 20, "{report}");
    assert!(report["drift"].is_number() && report["kept_up"].is_null(), "{report}");
    for latency in ["read_latency_ns", "write_latency_ns"] {
        let of = |name: &str| report[latency][name].as_f64().unwrap();
        assert!(of("mean") > 0.0 && of("p50") > 0.0 && of("p99") <= of("p99.9"));
        assert!(of("p99.9") <= of("max"));
    }
    let again = json(&sim(&laboratory, &arguments));
    assert_eq!(report["simulated_seconds"], again["simulated_seconds"]);
    succeeds(&sim(
        &laboratory,
        &["--workload", "random-read-8k", "--requests", "1000", "--precondition", "steady"],
    ));
    let wrong = ["--workload", "mixed-8k", "--precondition", "full"];
    fails(&sim(&laboratory, &wrong), 2, &["'full' is no state"]);
}

#[test]
fn partial_pages_and_drift_are_told() {
    let laboratory = Laboratory::new();
    laboratory.write("big.toml", &DEVICE.replace("page_bytes = 4096", "page_bytes = 16384"));
    let device = laboratory.path("big.toml");
    let command = ["bench", "sim", "--device", &device, "--workload", "random-write-4k"];
    let written = [&command[..], &["--requests", "4000", "-o", "json"]].concat();
    let report = json(&softflash(written));
    let ratio = report["waf_bytes"].as_f64().unwrap() / report["waf"].as_f64().unwrap();
    assert!((ratio - 4.0).abs() < 0.3, "4 KiB are a quarter of a page: {report}");
    // Units of 4 KiB fill pages; without a buffer they do not wait for that.
    let units = [&command[..], &["--layout", "page-mapped-4k", "--requests", "4000"]].concat();
    let buffered = DEVICE.replace("page_bytes = 4096", "page_bytes = 16384")
        + "\n[controller]\nwrite_buffer_bytes = 1048576\n";
    let unbuffered = json(&softflash([&units[..], &["-o", "json"]].concat()));
    laboratory.write("big.toml", &buffered);
    let gathered = json(&softflash([&units[..], &["-o", "json"]].concat()));
    let padded = |report: &Value| report["partial_page_programs"].as_u64().unwrap();
    assert!(padded(&unbuffered) > padded(&gathered), "{unbuffered}");
    assert!(padded(&gathered) < 100, "{gathered}");
    assert_eq!(gathered["erased_blocks"], gathered["erases"]);
    let few = [&command[..], &["--precondition", "none", "--requests", "50"]].concat();
    let few = String::from_utf8_lossy(&softflash(few).stdout).into_owned();
    assert!(few.contains("nothing was erased"), "{few}");
    // From a filled drive, collection has yet to begin.
    let arguments = ["--workload", "random-write-4k", "--requests", "20000"];
    let table = sim(&laboratory, &arguments);
    let text = String::from_utf8_lossy(&table.stdout).into_owned();
    for part in ["still drifting", "over-provisioning 7", "in pages", "p99.99", "IOPS"] {
        assert!(text.contains(part), "`{part}`: {text}");
    }
    let steady = sim(&laboratory, &[&arguments[..], &["--precondition", "steady"]].concat());
    assert!(!String::from_utf8_lossy(&steady.stdout).contains("still drifting"));
}

#[test]
fn a_log_of_requests_has_a_line_for_each() {
    let laboratory = Laboratory::new();
    let logged = |name: &str, more: &[&str]| {
        let path = laboratory.path(name);
        let arguments = ["--workload", "mixed-8k", "--log-requests", &path, "--requests"];
        let output = sim(&laboratory, &[&arguments[..], more].concat());
        (output, fs::read_to_string(path))
    };
    let (output, log) = logged("one.csv", &["3000"]);
    succeeds(&output);
    let log = log.unwrap();
    let mut lines = log.lines();
    assert_eq!(lines.next(), Some("arrival_ns,start_ns,end_ns,kind,offset_bytes,length_bytes"));
    let fields: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(fields.len(), 3000);
    assert!(fields.iter().all(|line| line.len() == 6 && line[5] == "8192"));
    assert!(["read", "write"].iter().all(|kind| fields.iter().any(|line| line[3] == *kind)));
    assert_eq!(logged("two.csv", &["3000"]).1.unwrap(), log, "equal seeds give equal bytes");
    let (output, kept) = logged("two.csv", &["10"]);
    fails(&output, 1, &["two.csv: it exists already"]);
    assert_eq!(kept.unwrap(), log);
    let (output, replaced) = logged("two.csv", &["10", "--force"]);
    succeeds(&output);
    assert_eq!(replaced.unwrap().lines().count(), 11);
    // A link to standard output stays.
    let out = laboratory.path("out");
    std::os::unix::fs::symlink("/proc/self/fd/1", &out).unwrap();
    let few = ["--workload", "mixed-8k", "--requests", "10", "--log-requests", &out];
    let output = sim(&laboratory, &few);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.starts_with("arrival_ns,"), "{said}");
    assert!(fs::symlink_metadata(&out).unwrap().is_symlink());
    // A store names no places, and a log that cannot be written is an error.
    let path = laboratory.path("kv.csv");
    let kv = ["bench", "sim", "--device", "sdf", "--workload", "kv-scan", "--log-requests", &path];
    fails(&softflash(kv), 2, &["a log of requests needs a block workload"]);
    let full = ["--workload", "mixed-8k", "--requests", "10", "--log-requests", "/dev/full"];
    fails(&sim(&laboratory, &full), 1, &["/dev/full: No space left on device"]);
    let (output, log) = logged("none/log.csv", &["10"]);
    fails(&output, 1, &["log.csv: No such file"]);
    assert!(log.is_err() && !fs::exists(path).unwrap());
}

#[test]
fn a_run_over_time_has_all_percentiles_of_reads_and_of_writes() {
    let laboratory = Laboratory::new();
    let mixed = ["--workload", "mixed-8k", "--requests", "20000", "-o", "json"];
    let report = json(&sim(&laboratory, &[&mixed[..], &["--series"]].concat()));
    let series = report["series"].as_array().unwrap();
    assert_eq!(series.len(), 100);
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value}"));
    for kind in ["read", "write"] {
        let of = format!("{kind}_latency");
        let count: u64 = series.iter().map(|sample| number(&sample[&of]["count"])).sum();
        let all = report[format!("{kind}_iops")].as_f64().unwrap();
        let seconds = report["simulated_seconds"].as_f64().unwrap();
        assert!((count as f64 / (all * seconds) - 1.0).abs() < 1e-6, "{kind}: {count}");
        for sample in series {
            let percentiles = ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "max_ns"];
            assert!(percentiles.map(|name| number(&sample[&of][name])).is_sorted(), "{sample}");
        }
        let longest = series.iter().map(|sample| number(&sample[&of]["max_ns"])).max();
        assert_eq!(longest, Some(number(&report[format!("{kind}_latency_ns")]["max"])));
    }
    assert!(json(&sim(&laboratory, &mixed)).get("series").is_none());
}

#[test]
fn flows_have_figures_of_their_own() {
    let laboratory = Laboratory::new();
    let reader = ["--flow", "reader=random-read-8k,load.closed.queue_depth=1", "-o", "json"];
    let writer = ["--flow", "writer=random-write-8k,load.closed.queue_depth=32,span.share=0.5"];
    let requests = ["--requests", "20000"];
    let alone = json(&sim(&laboratory, &[&reader[..], &requests].concat()));
    let both = json(&sim(&laboratory, &[&reader[..], &writer, &requests].concat()));
    let p99 = |report: &Value| report["flows"][0]["read_latency_ns"]["p99"].as_u64().unwrap();
    assert!(p99(&both) > 2 * p99(&alone), "{both}");
    let flows = both["flows"].as_array().unwrap();
    let names: Vec<&str> = flows.iter().map(|flow| flow["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["reader", "writer"]);
    for figure in ["requests", "completed", "bytes_read", "bytes_written"] {
        let sum: u64 = flows.iter().map(|flow| flow[figure].as_u64().unwrap()).sum();
        assert_eq!(both[figure], sum, "{figure}: {both}");
    }
    let table = said(&sim(&laboratory, &[&reader[..2], &writer, &requests].concat()));
    assert!(table.contains("reader   reads") && table.contains("writer  writes"), "{table}");
    let wrong = ["--flow", "reader=random-raed-8k"];
    fails(&sim(&laboratory, &wrong), 2, &["nearest known one is `random-read-8k`"]);
    fails(&sim(&laboratory, &["--flow", "reader"]), 2, &["write NAME=WORKLOAD"]);
    let two = ["--workload", "mixed-8k", "--flow", "a=mixed-8k"];
    fails(&sim(&laboratory, &two), 2, &["cannot be used with"]);
}

#[test]
fn jobs_of_fio_are_flows() {
    let laboratory = Laboratory::new();
    let jobs = "[global]\nioengine=libaio\nsize=8m\nbs=8k\nbogus=1\n[read]\nrw=randread\niodepth=4\n\
                [write]\nstonewall\nrw=write\nnumjobs=2\n";
    laboratory.write("jobs.fio", jobs);
    let path = laboratory.path("jobs.fio");
    let report = json(&sim(&laboratory, &["--fio", &path, "-o", "json"]));
    let requests = |flow: usize| report["flows"][flow]["requests"].as_u64().unwrap();
    assert_eq!((requests(0), requests(1), &report["requests"]), (1024, 2048, &3072.into()));
    assert!(report["remarks"][0].as_str().unwrap().contains("bogus (line 5)"), "{report}");
    let by_path = json(&sim(&laboratory, &["--workload", &path, "-o", "json"]));
    assert_eq!(report["flows"], by_path["flows"]);
    for by in ["--fio", "--workload"] {
        let section = json(&sim(&laboratory, &[by, &path, "--section", "write", "-o", "json"]));
        assert_eq!(section["requests"], 2048, "{by}");
    }
    let preset = ["--workload", "mixed-8k", "--section", "write"];
    fails(&sim(&laboratory, &preset), 2, &["--section chooses a job", "--fio FILE"]);
    // In an experiment, by a path from its directory.
    let experiment = "title = \"f\"\n[[group]]\ndevice = \"DEVICE\"\nworkload = \"./jobs.fio\"\n\
        [[group.row]]\nlabel = \"reads\"\nmeasure = \"flow.read.read_p99_us\"\n";
    laboratory.experiment("it.toml", experiment);
    succeeds(&laboratory.run("out", &[]));
    let result: Value = serde_json::from_slice(&laboratory.result("out").unwrap()).unwrap();
    assert!(result["rows"][0]["ours"].as_f64().unwrap() > 50.0, "{result}");
    assert!(result["warnings"].to_string().contains("not known, and ignored: bogus"), "{result}");
    laboratory.write("jobs.fio", &jobs.replace("bogus=1", "verify=md5"));
    fails(&sim(&laboratory, &["--fio", &path]), 1, &["jobs.fio: line 5: verify is not built"]);
}

#[test]
fn requests_of_no_bytes_are_counted_and_archives_named() {
    let laboratory = Laboratory::new();
    laboratory.write("t.csv", "0,R,0,4096,1577808000000000\n0,W,8192,0,1577808000000100\n");
    let report = json(&replay(&laboratory, "t.csv", &[]));
    assert_eq!((&report["completed"], &report["empty_passed_over"]), (&1.into(), &1.into()));
    let device = laboratory.path("tiny.toml");
    let shown = said(&softflash(["replay", &laboratory.path("t.csv"), "--device", &device]));
    assert!(shown.contains("1 requests of length 0 were left out"), "{shown}");
    laboratory.write("t.csv.bz2", "BZh91AY&SY and so on");
    let parts = ["compressed by bzip2, which is not read", "bzip2 -dc"];
    fails(&replay(&laboratory, "t.csv.bz2", &[]), 1, &parts);
}

fn replay(laboratory: &Laboratory, trace: &str, more: &[&str]) -> Output {
    let (trace, device) = (laboratory.path(trace), laboratory.path("tiny.toml"));
    softflash([&["replay", &trace, "--device", &device, "-o", "json"], more].concat())
}

#[test]
fn a_trace_is_replayed_wrapped_copied_and_judged() {
    let laboratory = Laboratory::new();
    let line = |index: u64| {
        let kind = if index.is_multiple_of(4) { 'R' } else { 'W' };
        format!("0,{kind},{},4096,{}\n", (index % 50) << 20, 1_577_808_000_000_000 + index * 1000)
    };
    let trace: String = (0..400).map(line).collect();
    laboratory.write("good.csv", &trace);
    let report = json(&replay(&laboratory, "good.csv", &[]));
    assert_eq!((&report["requests"], &report["completed"]), (&400.into(), &400.into()));
    assert_eq!((&report["format"], &report["tally"]["malformed"]), (&"alibaba".into(), &0.into()));
    let copies = ["--copies", "3", "--copy-offset", "1MiB", "--speed", "2"];
    assert_eq!(json(&replay(&laboratory, "good.csv", &copies))["completed"], 1200);
    assert_eq!(report["kept_up"], true, "{report}");
    let hurried = json(&replay(&laboratory, "good.csv", &["--speed", "100000"]));
    assert_eq!(hurried["kept_up"], false, "{hurried}");
    assert!(hurried["backlog"]["waiting"].as_u64().unwrap() > 100, "{hurried}");
    // Beyond the drive, unless folded onto it.
    laboratory.write("far.csv", &trace.replace(",4096,", "0000,4096,"));
    fails(&replay(&laboratory, "far.csv", &[]), 1, &["beyond the device", "--wrap"]);
    assert_eq!(json(&replay(&laboratory, "far.csv", &["--wrap"]))["completed"], 400);
    // Malformed lines are counted, or end the replay.
    laboratory.write("bad.csv", &(trace.clone() + "0,X,0,4096,1577808000500000\n"));
    let report = json(&replay(&laboratory, "bad.csv", &[]));
    assert_eq!((&report["completed"], &report["tally"]["malformed"]), (&400.into(), &1.into()));
    fails(&replay(&laboratory, "bad.csv", &["--strict"]), 1, &["bad.csv: line 401: opcode"]);
    fails(&replay(&laboratory, "none.csv", &[]), 1, &["none.csv: No such file"]);
}

/// Units of a channel, on which volumes are.
const CHANNELS: &str = r#"
title = "Each channel a unit"
kind = "units"
unit = "channel"
"#;

#[test]
fn small_writes_and_traces_run_on_a_volume_over_units() {
    let laboratory = Laboratory::new();
    laboratory.write("channels.toml", CHANNELS);
    let (device, layout) = (laboratory.path("tiny.toml"), laboratory.path("channels.toml"));
    let simulated = |layout: &str, op: &str| {
        let target = ["bench", "sim", "--device", &device, "--layout", layout, "--op", op];
        let run = ["--workload", "random-write-4k", "--precondition", "steady:2", "-o", "json"];
        softflash([&target[..], &run, &["--requests", "20000"]].concat())
    };
    let (units, drive) = (json(&simulated(&layout, "60")), json(&simulated("page-mapped", "60")));
    let figure = |report: &Value, name: &str| report[name].as_f64().unwrap();
    assert_eq!((&units["completed"], &units["settled"]["rewrites"]), (&20_000.into(), &2.into()));
    for name in ["capacity_bytes", "op_percent"] {
        let ratio = figure(&units, name) / figure(&drive, name);
        assert!((ratio - 1.0).abs() < 0.02, "{name}: {units} {drive}");
    }
    assert!(figure(&units, "waf_bytes") > figure(&drive, "waf_bytes"), "{units} {drive}");
    assert!(figure(&units, "erased_blocks") > 0.0, "{units}");
    fails(&simulated(&layout, "5"), 2, &["over-provisioning of at least"]);
    // A trace, with its flushes.
    let line = |index: u64| {
        let at = format!("8,0 0 {} 0.{:03}000000 1 Q", index + 1, index);
        match index % 5 {
            4 => format!("{at} FN [x]\n"),
            _ => format!("{at} W {} + 8 [x]\n", index % 50 * 8),
        }
    };
    laboratory.write("flushes.txt", &(0..200).map(line).collect::<String>());
    let report = json(&replay(&laboratory, "flushes.txt", &["--layout", &layout]));
    assert_eq!((&report["completed"], &report["kept_up"]), (&160.into(), &true.into()));
    assert_eq!((&report["flushes_made"], &report["flushes_passed_over"]), (&40.into(), &0.into()));
    assert!(figure(&report, "waf_bytes") > 1.0, "{report}");
    laboratory.write("far.csv", "0,W,1000000000000,4096,1577808000000000\n");
    let far = replay(&laboratory, "far.csv", &["--layout", &layout]);
    fails(&far, 1, &["beyond the device", "--wrap"]);
}

#[test]
fn an_experiment_compares_a_drive_with_a_volume() {
    let laboratory = Laboratory::new();
    laboratory.write("channels.toml", CHANNELS);
    laboratory.experiment(
        "it.toml",
        r#"
title = "Small writes"
[[group]]
name = "writes"
device = "DEVICE"
layout = ["page-mapped", "./channels.toml"]
workload = "random-write-4k"
set.op_percent = 60.0
set.precondition = "steady:1"
set.requests = 5000
[[group.row]]
label = "{layout}"
measures = ["iops", "waf_bytes", "write_p99_us", "figures.op_percent"]
"#,
    );
    succeeds(&laboratory.run("out", &["--jobs", "2"]));
    let result: Value = serde_json::from_slice(&laboratory.result("out").unwrap()).unwrap();
    let rows = result["table"]["rows"].as_array().unwrap();
    let waf = |row: &Value| row["values"][1]["ours"].as_f64().unwrap();
    assert_eq!(rows.len(), 2, "{result}");
    assert!(waf(&rows[0]) >= 1.0 && waf(&rows[1]) > waf(&rows[0]), "{rows:?}");
}

#[test]
fn help_has_examples() {
    for command in [
        &["lab"][..],
        &["lab", "run"],
        &["lab", "list"],
        &["lab", "report"],
        &["bench", "sim"],
        &["replay"],
    ] {
        let output = softflash([command, &["--help"]].concat());
        succeeds(&output);
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains("softflash"), "{help}");
    }
}
