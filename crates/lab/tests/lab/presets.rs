//! Tests of presets: all in the binary are valid, and errors of invalid ones name the problem.

use softflash_drive::Drive;
use softflash_lab::presets::{self, Kind};
use softflash_lab::{Experiment, Form, LayoutKind, Workload};
use std::fs;

#[test]
fn every_preset_is_understood_and_names_itself() {
    for (name, _) in Kind::Device.embedded() {
        let device = presets::device(name).unwrap();
        assert_eq!(device.name, *name);
        assert!(!device.title.is_empty(), "{name} has no title");
        presets::layout(&device.default_layout).unwrap();
        assert!(!device.provenance.sources.is_empty(), "{name} names no sources");
    }
    for (name, _) in Kind::Layout.embedded() {
        assert_eq!(presets::layout(name).unwrap().0, *name);
    }
    for (name, _) in Kind::Workload.embedded() {
        match presets::workload(name).unwrap().1 {
            Workload::Block(workload) => {
                assert_eq!(workload.name, *name);
                workload.validate().unwrap();
            }
            Workload::Flows(workload) => {
                assert_eq!(workload.name, *name);
                workload.validate().unwrap();
            }
            Workload::Trace(workload) => {
                assert_eq!(workload.name, *name);
                workload.validate().unwrap();
            }
            Workload::Kv(workload) => {
                assert_eq!(workload.name, *name);
                workload.validate().unwrap();
            }
        }
    }
}

#[test]
fn every_experiment_can_be_planned_in_both_forms() {
    for (name, _) in Kind::Experiment.embedded() {
        let experiment = Experiment::find(name).unwrap();
        let full = experiment.plan(Form::default()).unwrap();
        let quick = experiment.plan(Form { quick: true, seed: None }).unwrap();
        assert!(!full.cells.is_empty() && !quick.cells.is_empty(), "{name}");
    }
}

#[test]
fn presets_that_scripts_rely_on_are_there() {
    for device in
        ["sdf", "huawei-gen3", "intel-320", "memblaze-q520", "mqsim-default", "tssd", "plan"]
    {
        presets::device(device).unwrap();
    }
    for workload in ["random-read-8k", "random-write-8k", "mixed-8k"] {
        assert!(matches!(presets::workload(workload).unwrap().1, Workload::Block(_)));
    }
    let (_, page_mapped) = presets::layout("page-mapped").unwrap();
    assert!(matches!(page_mapped.kind, LayoutKind::PageMapped(_)));
    assert!(matches!(presets::layout("sdf").unwrap().1.kind, LayoutKind::Units(_)));
}

#[test]
fn the_drives_beside_tssd_have_the_capacity_that_is_sold() {
    let cases = [
        ("tssd", "tssd-ftl", 1.664e12),
        ("fusion-io", "fusion-io", 640e9),
        ("intel-ts8-2", "intel-ts8-2", 300e9),
    ];
    for (device, layout, bytes) in cases {
        let device = presets::device(device).unwrap();
        let (name, layout) = presets::layout(layout).unwrap();
        let LayoutKind::PageMapped(layout) = layout.kind else { panic!("{name} is page-mapped") };
        let capacity = Drive::capacity_of(&device, &layout, layout.op_percent).unwrap() as f64;
        assert!((capacity / bytes - 1.0).abs() < 0.002, "{}: {capacity} bytes", device.name);
        let fitted = &device.provenance.calibrated_on;
        assert!(fitted.iter().all(|row| !row.contains("TSSD")), "{fitted:?}");
    }
}

#[test]
fn a_path_works_wherever_a_name_does() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let text = Kind::Layout.find("page-mapped").unwrap().text;
    fs::write(path("mine.toml"), &text).unwrap();
    let (name, layout) = presets::layout(&path("mine.toml")).unwrap();
    assert_eq!((name.as_str(), layout), ("mine", presets::layout("page-mapped").unwrap().1));
    let wrong = text.replace("parity_data_pages", "parity_datapages");
    let line = 1 + wrong.lines().position(|line| line.starts_with("parity_data")).unwrap();
    fs::write(path("wrong.toml"), wrong).unwrap();
    let error = presets::layout(&path("wrong.toml")).unwrap_err().to_string();
    let expected = format!(
        "wrong.toml: line {line}: unknown key `parity_datapages`; the nearest known one is `parity_data_pages`"
    );
    assert!(error.ends_with(&expected), "{error}");
    let missing = presets::device(&path("none.toml")).unwrap_err().to_string();
    assert!(missing.contains("none.toml: No such file"), "{missing}");
}

#[test]
fn an_unknown_name_comes_with_the_nearest_one() {
    let error = presets::device("huawei-gen-3").unwrap_err().to_string();
    assert!(error.starts_with("no device is called `huawei-gen-3`"), "{error}");
    assert!(error.contains("`huawei-gen3`") && error.contains("a path to a TOML file"), "{error}");
    let error = presets::workload("random-read-8").unwrap_err().to_string();
    assert!(error.contains("`random-read-8k`"), "{error}");
    let error = Experiment::find("zzz").unwrap_err().to_string();
    assert!(error.starts_with("no experiment is called `zzz`; "), "{error}");
}
