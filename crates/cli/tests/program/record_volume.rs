//! `softflash record --volume`: a trace of the requests of NBD clients to a volume.

use crate::nbd::{change, serve, with_volume_units};
use crate::nbd_clients::all_exist;
use crate::record_command::{interrupt, json, recorder, summary};
use crate::support::nbd::{CACHE, FUA, NO_HOLE, NbdClient, TRIM, WRITE, WRITE_ZEROES};
use crate::support::program::{said, softflash};
use crate::support::server::Server;
use crate::support::{has_unfinished, noise};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

fn connect(server: &Server, export: &str) -> NbdClient {
    NbdClient::connect(server.address_of("nbd"), export)
}

/// Ends a recording with Ctrl-C; its summary.
fn end(child: Child) -> serde_json::Value {
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    json(&output)
}

/// The requests of a trace of fio without their times.
fn requests(trace: &str) -> Vec<String> {
    let text = fs::read_to_string(trace).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("fio version 3 iolog"));
    let request = |line: &str| line.split_once(" /softflash/0 ").unwrap().1.to_owned();
    let all = lines.map(request);
    all.filter(|it| !["add", "open", "close"].contains(&it.as_str())).collect()
}

#[test]
fn each_request_to_a_volume_is_a_line_of_the_trace() {
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    change(&server, &["CREATE", "other", "64MiB"]);
    let [mut client, mut again, mut other] =
        ["disk", "disk", "other"].map(|export| connect(&server, export));
    assert_eq!(client.write(0, &noise(1, 4096)), 0, "before the recording");
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &["--volume", "disk"]);
    assert_eq!(client.write(8192, &noise(2, 5000)), 0);
    assert_eq!(client.read(8193, 100).unwrap().len(), 100);
    assert_eq!(other.write(4096, &noise(3, 4096)), 0, "to another volume");
    assert_eq!(again.write(0, &noise(4, 1 << 20)), 0, "of another connection");
    assert_eq!(client.flush(), 0);
    assert_eq!(client.call(TRIM, 0, 65_536, 8192), 0);
    assert_eq!(client.call(WRITE_ZEROES, 0, 131_072, 4096), 0);
    assert_eq!(client.call(WRITE_ZEROES, NO_HOLE, 262_144, 512), 0);
    assert_eq!(client.call(CACHE, 0, 0, 4096), 0, "has no effect");
    assert_eq!(client.try_call(WRITE, FUA, 12_288, 4096, &noise(5, 4096)).unwrap(), 0);
    assert!(client.read(64 << 20, 1).is_err(), "beyond the end");
    let report = end(child);
    let expected = [
        "write 8192 5000",
        "read 8193 100",
        "write 0 1048576",
        "sync 0 0",
        "trim 65536 8192",
        "trim 131072 4096",
        "write 262144 512",
        "write 12288 4096",
        "sync 0 0",
    ];
    assert_eq!(requests(&trace), expected);
    let counts = ["requests", "reads", "writes", "trims", "flushes", "dropped"];
    let counts = counts.map(|name| report[name].as_u64().unwrap());
    assert_eq!((counts, &report["volume"]), ([9, 1, 4, 2, 2, 0], &"disk".into()), "{report}");
    let flush = &report["flush_latency_ns"];
    assert!(flush["max"].as_u64() > Some(1000), "a flush of a file takes more than 1 µs: {report}");

    let drive = ["--device", "tlc-modern", "-o", "json"];
    let replayed = softflash([&["replay", &trace], &drive[..]].concat());
    assert!(replayed.status.success(), "{}", said(&replayed));
    let replayed = json(&replayed);
    assert_eq!(replayed["completed"], 7, "{replayed}");
    assert_eq!(replayed["flushes_passed_over"], 2, "{replayed}");
    assert!(server.terminate().success());
}

#[test]
fn msr_has_the_latencies_and_a_snapshot_is_recorded_alone() {
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    change(&server, &["SNAPSHOT", "disk", "monday"]);
    let trace = temp.path().join("trace.csv").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &["--volume", "disk@monday", "--format", "msr"]);
    let [mut disk, mut snapshot] = ["disk", "disk@monday"].map(|export| connect(&server, export));
    for place in 0..10 {
        assert_eq!(disk.write(place * 4096, &noise(place, 4096)), 0);
        assert_eq!(snapshot.read(place * 4096, 4096).unwrap(), vec![0; 4096]);
    }
    assert_eq!(disk.flush(), 0);
    let report = end(child);
    assert_eq!((&report["reads"], &report["requests"]), (&10.into(), &10.into()), "{report}");
    let text = fs::read_to_string(&trace).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    for (place, row) in rows.iter().enumerate() {
        assert_eq!(row[3..6], ["Read", &(place * 4096).to_string(), "4096"], "{text}");
    }
    let longest = rows.iter().map(|row| row[6].parse::<u64>().unwrap() * 100).max();
    let reported = report["read_latency_ns"]["max"].as_u64().map(|ns| ns / 100 * 100);
    assert_eq!(longest, reported, "{report}");
    assert_eq!(summary(&trace)["requests"], 10);
    assert!(server.terminate().success());
}

#[test]
fn what_qemu_io_writes_is_recorded_and_replayed() {
    if !all_exist(&["qemu-io"]) {
        return;
    }
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let trace = temp.path().join("trace.gz").to_str().unwrap().to_owned();
    let plain = temp.path().join("trace").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &["--volume", "disk"]);
    let uri = format!("nbd://{}/disk", server.address_of("nbd"));
    let commands = ["write -P 0xaa 0 8M", "write -P 0xbb 1536 512", "discard 1M 64k", "flush"];
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let output = Command::new("qemu-io")
        .args(["-f", "raw", "-t", "writeback"])
        .args(commands)
        .arg(&uri)
        .output();
    assert!(output.as_ref().unwrap().status.success(), "{}", said(&output.unwrap()));
    let report = end(child);
    assert_eq!((&report["writes"], &report["dropped"]), (&2.into(), &0.into()), "{report}");
    let converted = softflash(["trace", "convert", &trace, &plain, "--to", "fio-v3"]);
    assert!(converted.status.success(), "{}", said(&converted));
    // qemu-io may also read when it opens the export, and flush when it closes it.
    let changes: Vec<String> =
        requests(&plain).into_iter().filter(|it| !it.starts_with("read")).collect();
    let expected = ["write 0 8388608", "write 1536 512", "trim 1048576 65536", "sync 0 0"];
    assert_eq!(changes[..4], expected, "{changes:?}");
    assert!(changes[4..].iter().all(|it| it == "sync 0 0"), "{changes:?}");
    let replayed = softflash(["replay", &trace, "--device", "huawei-gen3", "-o", "json"]);
    assert!(replayed.status.success(), "{}", said(&replayed));
    assert!(json(&replayed)["bytes_written"].as_u64() >= Some(8 << 20));
    assert!(server.terminate().success());
}

#[test]
fn a_recorder_of_a_volume_that_is_too_slow_loses_requests_and_says_so() {
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &["--volume", "disk", "--buffer", "10"]);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let mut client = connect(&server, "disk");
    for place in 0..1000 {
        assert_eq!(client.write(place * 4096, &noise(place, 4096)), 0);
    }
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report = json(&output);
    let [kept, dropped] = ["requests", "dropped"].map(|name| report[name].as_u64().unwrap());
    assert_eq!(kept + dropped, 1000, "{report}");
    assert!(dropped >= 900, "{report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("raise --buffer"));
    assert_eq!(summary(&trace)["requests"], kept);
    assert!(server.terminate().success());
}

#[test]
fn a_volume_that_does_not_exist_is_not_recorded() {
    let (temp, data) = with_volume_units();
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "1MiB"]);
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let address = server.address().to_string();
    for name in ["dis", "disk@monday"] {
        let output = softflash(["record", &trace, "--connect", &address, "--volume", name]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(&format!("there is no volume or snapshot `{name}`")), "{error}");
        assert!(!Path::new(&trace).exists() && !has_unfinished(temp.path()));
    }
    assert!(server.terminate().success());
}
