//! The command line: exit codes, and errors that name the object, the place and the remedy.

use crate::support::program::{
    Backend, binary, check_clean, fails, format, format_with, json, said, softflash,
};
use crate::support::server::Server;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

#[test]
fn wrong_arguments_are_refused_with_code_2() {
    fails(2, &["serve", "--colour", "red"], &["--colour"]);
    fails(2, &["fly"], &["fly"]);
    fails(2, &["serve", "--memory", "much"], &["much"]);
    fails(2, &["serve", "--memory", "1MiB"], &["memory", "the minimum is"]);
    fails(2, &["serve", "--durability", "soon"], &["soon", "flash"]);
    fails(2, &["serve", "--resp", "nowhere"], &["nowhere"]);
    fails(2, &["format", "x"], &["--size 8GiB"]);
    fails(2, &["format", "x", "--size", "0"], &["--size"]);
    fails(2, &["format", "x", "--backend", "model", "--preset", "qlc"], &["qlc", "sdf"]);
    fails(2, &["dump", "only-one"], &["directory", "file"]);
    fails(2, &["--log", "softflash_store=loud", "info", "x"], &["--log"]);
}

#[test]
fn a_closed_output_is_not_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let mut child = Command::new(binary())
        .args(["units".as_ref(), data.as_os_str()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

#[test]
fn help_has_examples() {
    for command in ["serve", "format", "info", "units", "check", "bench", "dump", "load", "volume"]
    {
        let output = softflash([command, "--help"]);
        assert!(output.status.success());
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:"), "{command} --help:\n{help}");
        assert!(help.contains(&format!("softflash {command}")), "{command} --help:\n{help}");
    }
    assert!(softflash(["--version"]).status.success());
}

#[test]
fn listening_to_others_needs_a_password() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let data = data.to_str().unwrap();
    let refused = ["127.0.0.1", "password", "--password-file"];
    fails(2, &["serve", "--data", data, "--resp", "0.0.0.0:0"], &refused);
    fails(2, &["serve", "--data", data, "--http", "0.0.0.0:0"], &["HTTP", "127.0.0.1"]);
    assert!(!Path::new(data).exists(), "nothing is made for a server that cannot start");
}

#[test]
fn a_directory_that_is_none_is_named_with_the_remedy() {
    let temp = tempfile::tempdir().unwrap();
    let missing = temp.path().join("missing");
    let missing = missing.to_str().unwrap();
    for command in ["info", "units", "check"] {
        fails(1, &[command, missing], &[missing, "softflash format"]);
    }
    let other = temp.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("photo.jpg"), "pixels").unwrap();
    let other = other.to_str().unwrap();
    for arguments in [&["info", other][..], &["check", other], &["serve", "--data", other]] {
        fails(1, arguments, &[other, "not a SoftFlash data directory", "softflash format"]);
    }
    fails(1, &["format", other, "--size", "1GiB", "--force"], &["photo.jpg", "empty"]);
    assert_eq!(fs::read_dir(other).unwrap().count(), 1, "others' files are left alone");
}

#[test]
fn a_size_that_is_too_small_is_refused_and_leaves_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    fails(2, &["format", data.to_str().unwrap(), "--size", "20MiB"], &["few", "at least"]);
    assert!(!data.exists());
    let huge = ["format", data.to_str().unwrap(), "--size", "4000TiB"];
    fails(1, &huge, &["no space"]);
    assert!(!data.exists());
}

#[test]
fn an_existing_directory_is_replaced_only_by_force() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let uuid = |data: &Path| {
        let output = softflash([OsStr::new("info"), data.as_os_str(), "-ojson".as_ref()]);
        json(&output)["device"]["uuid"].clone()
    };
    let before = uuid(&data);
    let again = ["format", data.to_str().unwrap(), "--size", "256MiB", "--units", "2"];
    fails(1, &again, &["already", "--force"]);
    assert_eq!(uuid(&data), before);
    format_with(&data, Backend::File, 256 * MIB, &["--units", "2", "--force"]);
    assert_ne!(uuid(&data), before);
}

#[test]
fn a_directory_in_use_is_busy_for_other_processes() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let data = data.to_str().unwrap();
    let pid = server.pid().to_string();
    fails(1, &["serve", "--data", data], &[data, "busy", &pid]);
    fails(1, &["units", data], &["busy", "FLASH.UNITS"]);
    fails(1, &["check", data], &["busy"]);
    fails(1, &["dump", data, "x.sfdump"], &["busy", "--resp"]);
    fails(1, &["format", data, "--size", "1GiB", "--force"], &["busy"]);
    assert!(softflash(["info", data]).status.success(), "info needs no lock");
    assert!(server.terminate().success());
    check_clean(Path::new(data));
}

#[test]
fn info_and_units_describe_both_backends() {
    let temp = tempfile::tempdir().unwrap();
    for (backend, more, units) in [
        (Backend::File, &["--units", "4", "--shards", "2", "--slices", "6"][..], 4),
        (Backend::Model, &["--units", "8", "--shards", "2", "--slices", "6"], 8),
    ] {
        let data = temp.path().join(backend.name());
        let more = [more, &["--compression", "lz4", "--slice-compression", "3=zstd"]].concat();
        format_with(&data, backend, 512 * MIB, &more);
        let path = data.to_str().unwrap();
        let info = json(&softflash(["info", path, "-o", "json"]));
        assert_eq!(info["device"]["backend"], backend.name());
        assert_eq!(info["device"]["units"], units);
        assert_eq!(info["store"]["shards"], 2);
        assert_eq!(info["store"]["compression"][3], "zstd");
        assert_eq!(info["store"]["compression"][5], "lz4");
        let bytes = info["device"]["bytes"].as_u64().unwrap();
        assert!((256 * MIB..=512 * MIB).contains(&bytes), "{bytes}");

        let list = json(&softflash(["units", path, "-o", "json"]));
        let list = list.as_array().unwrap();
        assert_eq!(list.len(), units);
        for (number, unit) in list.iter().enumerate() {
            assert_eq!(unit["unit"], number);
            assert_eq!(unit["state"], "online");
            assert!(unit["space"]["reclaimable"].as_u64().unwrap() > 0);
            assert!(unit["erase_count_max"].is_u64() && unit["bad_blocks"].is_u64());
        }
        let table = String::from_utf8(softflash(["units", path]).stdout).unwrap();
        assert_eq!(table.lines().count(), units + 1, "{table}");
        check_clean(&data);
    }
}

#[test]
fn slices_and_units_must_suit_the_shards() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    let path = data.to_str().unwrap();
    let format = |more: &[&'static str]| {
        [&["format", path, "--size", "1GiB", "--units", "4"][..], more].concat()
    };
    fails(2, &format(&["--shards", "5"]), &["4 units", "5 shards"]);
    fails(2, &format(&["--shards", "2", "--slices", "1"]), &["1 slices", "2 shards"]);
    let beyond = ["--shards", "2", "--slices", "8", "--slice-compression", "9=lz4"];
    fails(2, &format(&beyond), &["--slice-compression"]);
    assert!(!data.exists());
}

#[test]
fn benchmarks_measure_something() {
    let temp = tempfile::tempdir().unwrap();
    let here = temp.path().to_str().unwrap();
    for workload in ["fill", "overwrite", "get", "scan"] {
        let kv = json(&softflash([
            "bench",
            "kv",
            "--workload",
            workload,
            "--keys",
            "3000",
            "--operations",
            "500",
            "--threads",
            "2",
            "--size",
            "1GiB",
            "--directory",
            here,
            "-o",
            "json",
        ]));
        assert!(kv["operations"].as_u64().unwrap() >= 500, "{kv}");
        assert!(kv["operations_per_second"].as_f64().unwrap() > 0.0);
        assert!(kv["latency"]["p99_us"].as_f64().unwrap() > 0.0);
        assert_eq!(kv["write_amplification"].is_null(), ["get", "scan"].contains(&workload));
    }
    for pattern in ["read", "write"] {
        let device = json(&softflash([
            "bench",
            "device",
            "--pattern",
            pattern,
            "--operations",
            "40",
            "--units",
            "4",
            "--device-size",
            "512MiB",
            "--directory",
            here,
            "-o",
            "json",
        ]));
        assert_eq!(device["operations"], 40);
        assert!(device["megabytes_per_second"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(fs::read_dir(here).unwrap().count(), 0, "nothing is left behind");
}
