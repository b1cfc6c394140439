//! Tests of planning: from the text of an experiment to cells and rows.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use softflash_lab::presets::Kind;
use softflash_lab::{Experiment, Form, LabError, Plan, Workload};
use std::collections::BTreeSet;

const TEXT: &str = r#"
title = "Reads and writes by size"
source = "nobody"
seed = 3
tolerance = 0.1

[paper]
"sdf read 8 KiB" = 1.23
"more at 16 KiB" = 2.0

[tolerances]
"sdf read 8 KiB" = 0.02

[[plot]]
name = "reads"
title = "Reads"
x = "workload.size"
x_label = "request"
y_label = "throughput"

[[group]]
name = "reads"
device = ["sdf", "huawei-gen3"]
workload = "random-read-8k"
set.precondition = "none"
set.workload.load = { closed = { threads = 4, queue_depth = 1 } }
set.device.link.read_bytes_per_second = 5
vary.workload.size = [8192, 16384]
quick.requests = 10
quick_vary.workload.size = [8192]
[[group.row]]
label = "{device} read {size}"
measure = "read_gb_s"
plot = "reads"
series = "{device}"

[[group]]
device = "huawei-gen3"
layout = ["huawei-gen3", "page-mapped"]
workload = ["random-write-8k"]
vary.op_percent = [7, 25.5]
[[group.variant]]
name = "few"
set.workload.load.closed.threads = 1
[[group.variant]]
name = "many"
set.workload.load.closed.threads = 32
[[group.row]]
label = "{layout} {variant} OP {op_percent} %"
measure = "write_mean_ms"
[[group.row]]
label = "WAF {layout} {variant} OP {op_percent} %"
measure = "waf"

[[derived]]
label = "more at 16 KiB"
of = "sdf read 16 KiB"
over = "sdf read 8 KiB"
as = "ratio"
"#;

fn planned(text: &str, form: Form) -> Result<Plan, LabError> {
    Experiment::parse("it", "it.toml", text)?.plan(form)
}

fn plan() -> Plan {
    planned(TEXT, Form::default()).unwrap()
}

fn problem(from: &str, to: &str) -> String {
    assert!(TEXT.contains(from), "{from}");
    planned(&TEXT.replacen(from, to, 1), Form::default()).unwrap_err().to_string()
}

#[test]
fn lists_become_every_combination() {
    let plan = plan();
    let labels: Vec<&str> = plan.labels().collect();
    let expected = [
        "sdf read 8 KiB",
        "sdf read 16 KiB",
        "huawei-gen3 read 8 KiB",
        "huawei-gen3 read 16 KiB",
        "huawei-gen3 few OP 7 %",
        "WAF huawei-gen3 few OP 7 %",
        "huawei-gen3 few OP 25.5 %",
        "WAF huawei-gen3 few OP 25.5 %",
    ];
    assert_eq!(labels[..8], expected);
    assert_eq!((labels.len(), plan.cells.len()), (4 + 16 + 1, 4 + 8));
    assert_eq!(labels.last(), Some(&"more at 16 KiB"));
}

#[test]
fn replicates_differ_in_their_seeds_alone() {
    let text = TEXT.replacen("seed = 3", "seed = 3\nreplicates = 3", 1);
    let (plan, single) = (planned(&text, Form::default()).unwrap(), plan());
    assert_eq!((plan.cells.len(), plan.rows.len()), (3 * single.cells.len(), single.rows.len()));
    let (mut seeds, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for (replicates, cell) in plan.cells.chunks(3).zip(&single.cells) {
        assert_eq!(&replicates[0], cell, "the first is the cell without replicates");
        for replicate in replicates {
            seeds.insert(replicate.seed);
            keys.insert(replicate.key.clone());
            let (seed, key) = (cell.seed, cell.key.clone());
            assert_eq!(&softflash_lab::Cell { seed, key, ..replicate.clone() }, cell);
        }
    }
    assert_eq!((seeds.len(), keys.len()), (plan.cells.len(), plan.cells.len()));
    let cells = plan.rows.iter().map(|row| row.cell);
    assert!(cells.eq(single.rows.iter().map(|row| 3 * row.cell)));
    for count in [0, 1001] {
        let problem = problem("seed = 3", &format!("seed = 3\nreplicates = {count}"));
        assert!(
            problem.contains("it.toml: line 5: ") && problem.contains("1 to 1000"),
            "{problem}"
        );
    }
}

#[test]
fn a_plot_needs_a_field_along_x_or_a_distribution() {
    let problem = problem("x = \"workload.size\"\n", "");
    assert!(problem.contains("plot `reads` needs `x`"), "{problem}");
    let text = TEXT.replacen("x = \"workload.size\"", "distribution = \"read\"", 1);
    assert!(planned(&text, Form::default()).unwrap().rows[0].point.is_some());
}

#[test]
fn fields_are_set_in_device_layout_workload_and_parameters() {
    let plan = plan();
    let first = &plan.cells[0];
    assert_eq!(first.device.link.read_bytes_per_second, 5);
    assert_eq!(first.parameters.precondition.to_string(), "none");
    assert_eq!((first.layout_name.as_str(), first.limits().requests), ("sdf", Some(100_000)));
    let Workload::Block(workload) = &first.workload else { panic!("reads are of blocks") };
    assert_eq!(format!("{:?}", workload.size), "Some(Fixed(8192))");
    let ops: Vec<f64> = plan.cells[4..8].iter().map(softflash_lab::Cell::op_percent).collect();
    assert_eq!(ops, [7.0, 25.5, 7.0, 25.5]);
}

#[test]
fn rows_know_their_cell_unit_and_place() {
    let plan = plan();
    let row = &plan.rows[1];
    assert_eq!((row.cell, row.unit.as_str()), (1, "GB/s"));
    let point = row.point.as_ref().unwrap();
    assert_eq!((point.series.as_str(), point.x), ("sdf", 16384.0));
    assert_eq!((plan.rows[5].cell, plan.rows[5].unit.as_str()), (4, ""));
    assert_eq!((plan.tolerance("sdf read 8 KiB"), plan.tolerance("more at 16 KiB")), (0.02, 0.1));
}

#[test]
fn every_cell_has_a_key_and_a_seed_of_its_own() {
    let seeds = |form| -> BTreeSet<u64> {
        planned(TEXT, form).unwrap().cells.iter().map(|cell| cell.seed).collect()
    };
    let own = seeds(Form::default());
    assert_eq!(own.len(), 12);
    assert_eq!(own, seeds(Form { quick: false, seed: Some(3) }));
    assert!(own.is_disjoint(&seeds(Form { quick: false, seed: Some(4) })));
    let keys: Vec<String> = plan().cells.into_iter().map(|cell| cell.key).collect();
    assert_eq!(keys[0], "reads_sdf_sdf_random-read-8k_size=8192");
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 12);
}

#[test]
fn the_quick_form_is_shorter_and_has_the_same_seeds() {
    let quick = planned(TEXT, Form { quick: true, seed: None });
    // Without reads of 16 KiB, the comparison is left out.
    let quick = quick.unwrap();
    assert_eq!((quick.cells.len(), quick.derived.len()), (2 + 8, 0));
    assert_eq!(quick.cells[0].limits().requests, Some(10));
    assert_eq!(quick.cells[0].seed, plan().cells[0].seed);
}

#[test]
fn a_cell_survives_json() {
    for cell in plan().cells {
        let text = serde_json::to_string(&cell).unwrap();
        let read: softflash_lab::Cell = serde_json::from_str(&text).unwrap();
        assert_eq!(read, cell);
    }
}

#[test]
fn mistakes_are_named_with_line_and_remedy() {
    let cases = [
        (
            "workload = \"random-read-8k\"",
            "worklaod = \"x\"",
            "line 24: unknown key `worklaod`; the nearest known one is `workload`",
        ),
        (
            "set.workload.load",
            "set.workload.laod",
            "line 26: unknown key `laod`; the nearest known one is `load`",
        ),
        (
            "quick_vary.workload.size",
            "quick_vary.workload.siz",
            "`workload.siz` is not varied; the nearest known one is `workload.size`",
        ),
        (
            "set.device.link.read_bytes_per_second",
            "set.device.link.read_bytes_per_s",
            "unknown key `read_bytes_per_s`",
        ),
        // `seed` has the same value.
        (
            "read_bytes_per_second = 5",
            "read_bytes_per_second = \"3\"",
            "line 27: group.set.device.link.read_bytes_per_second: string \"3\", expected a whole",
        ),
        (
            "set.precondition = \"none\"",
            "set.workload.read_fraction = \"3\"",
            "line 25: group.set.workload.read_fraction: string \"3\", expected a number",
        ),
        (
            "set.precondition = \"none\"",
            "set.layout.order = 3",
            "line 25: group.set.layout.order: integer `3`, expected a text in quotes",
        ),
        ("vary.op_percent = [7, 25.5]", "vary.op_percent = 7", "`op_percent` needs a list"),
        (
            "vary.op_percent",
            "vary.op_procent",
            "unknown field `op_procent`; the nearest known one is `op_percent`",
        ),
        (
            "measure = \"read_gb_s\"",
            "measure = \"read_gbs\"",
            "unknown measure `read_gbs`; the nearest known one is `read_gb_s`",
        ),
        ("{device} read {size}", "{device} read {sizes}", "no value for {sizes}"),
        (
            "WAF {layout} {variant} OP {op_percent} %",
            "WAF {layout} {variant}",
            "two rows are labelled `WAF huawei-gen3 few`",
        ),
        (
            "\"more at 16 KiB\" = 2.0",
            "\"more at 8 KiB\" = 2.0",
            "line 9: no row is labelled `more at 8 KiB`; the nearest",
        ),
        (
            "of = \"sdf read 16 KiB\"",
            "of = \"sdf read 61 KiB\"",
            "no row is labelled `sdf read 61 KiB`; the nearest",
        ),
        (
            "plot = \"reads\"",
            "plot = \"raeds\"",
            "no plot `raeds`; the nearest known one is `reads`",
        ),
        ("x = \"workload.size\"", "x = \"workload.pattern\"", "`workload.pattern` is no number"),
        (
            "set.precondition = \"none\"",
            "set.precondition = \"full\"",
            "'full' is no state of a device",
        ),
        (
            "\"sdf\", \"huawei-gen3\"]\nworkload",
            "\"sfd\", \"huawei-gen3\"]\nworkload",
            "no device is called `sfd`",
        ),
    ];
    for (from, to, expected) in cases {
        let found = problem(from, to);
        assert!(found.contains(expected), "{to}: {found}");
        assert!(found.contains("it.toml") || found.contains("sfd"), "{to}: {found}");
    }
}

#[test]
fn paths_in_a_file_begin_at_its_directory() {
    let directory = tempfile::tempdir().unwrap();
    let put = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    std::fs::create_dir(directory.path().join("parts")).unwrap();
    let device = Kind::Device.find("sdf").unwrap().text;
    let layout = "default_layout = \"./own.toml\"\n";
    put("parts/drive.toml", &device.replace("default_layout = \"sdf\"\n", layout));
    put("parts/own.toml", &Kind::Layout.find("page-mapped").unwrap().text);
    let text = "title = \"paths\"\n[[group]]\ndevice = \"parts/drive.toml\"\nworkload = \"random-read-8k\"\n\
                [[group.row]]\nlabel = \"r\"\nmeasure = \"waf\"\n";
    put("mine.toml", text);
    let path = directory.path().join("mine.toml").display().to_string();
    let plan = Experiment::find(&path).unwrap().plan(Form::default()).unwrap();
    assert_eq!(
        (plan.cells[0].layout_name.as_str(), plan.cells[0].device.name.as_str()),
        ("own", "sdf")
    );
    put("mine.toml", &text.replace("parts/drive.toml", "drive.toml"));
    let error = Experiment::find(&path).unwrap().plan(Form::default()).unwrap_err().to_string();
    let wanted = directory.path().join("drive.toml").display().to_string();
    assert!(error.starts_with(&format!("{path}: line 3: {wanted}: No such file")), "{error}");
    assert!(error.ends_with("paths begin at the directory of this file"), "{error}");
}

#[test]
fn two_tables_in_place_of_one_are_told_the_quotes() {
    let text = TEXT.replace(
        "set.precondition = \"none\"",
        "set.workload.pattern.zipf.exponent = 0.9\nset.precondition = \"none\"",
    );
    let error = planned(&text, Form::default()).unwrap_err().to_string();
    let quotes = "replace it as a whole: set.\"workload.pattern\" = { zipf = { exponent = ... } }";
    assert!(error.contains(quotes), "{error}");
    let text = TEXT.replace(
        "closed = { threads = 4, queue_depth = 1 }",
        "open = { requests_per_second = 1.0 }",
    );
    let error = planned(&text, Form::default()).unwrap_err().to_string();
    assert!(error.contains("set.\"workload.pattern\" ="), "{error}");
    let text = TEXT.replace("\"random-write-8k\"", "\"hot-cold-write-8k\"").replace(
        "vary.op_percent = [7, 25.5]",
        "vary.op_percent = [7, 25.5]\nset.workload.pattern.zipf.exponent = 0.9",
    );
    let error = planned(&text, Form::default()).unwrap_err().to_string();
    assert!(error.contains("write its path in quotes to replace it"), "{error}");
    let text = TEXT.replace("precondition = \"none\"", "precondition = \"nonne\"");
    let error = planned(&text, Form::default()).unwrap_err().to_string();
    assert!(error.starts_with("it.toml: line 25: 'nonne' is no state of a device"), "{error}");
}
