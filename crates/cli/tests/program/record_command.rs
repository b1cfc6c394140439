//! `softflash record`: a trace of the requests of a real server's clients.

use crate::support::has_unfinished;
use crate::support::mute::Mute;
use crate::support::program::{Backend, binary, format_with, said, softflash};
use crate::support::resp::Client;
use crate::support::server::Server;
use crate::support::signals;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// A server of two shards, so that events come from two threads.
fn server(directory: &Path) -> Server {
    let data = directory.join("data");
    format_with(&data, Backend::File, 512 << 20, &["--units", "4", "--shards", "2"]);
    Server::start(&data, &["--memory", "32MiB", "--durability", "1s"])
}

/// A recorder that has received its first reply, and prints its summary as JSON.
pub fn recorder(server: &Server, trace: &str, more: &[&str]) -> Child {
    connected(server, &[&[trace, "-o", "json"], more].concat())
}

/// A recorder that has received its first reply.
fn connected(server: &Server, arguments: &[&str]) -> Child {
    let address = server.address().to_string();
    let mut command = Command::new(binary());
    command.args(["record", "--connect", &address]).args(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = server.client();
    let started = Instant::now();
    while !client.call(&[b"CLIENT", b"LIST"]).text().contains("cmd=flash.record|read") {
        assert!(started.elapsed() < PATIENCE, "the recorder does not connect");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

pub fn interrupt(child: &Child) {
    signals::send(child, libc::SIGINT);
}

pub fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

pub fn summary(trace: &str) -> serde_json::Value {
    let output = softflash(["trace", "summary", trace, "-o", "json"]);
    assert!(output.status.success(), "{}", said(&output));
    json(&output)
}

/// Writes ten keys of 1 to 10 KiB, reads them twice, and removes half of them.
fn work(client: &mut Client) {
    let value = vec![b'x'; 10 << 10];
    for key in 0..10_u8 {
        assert!(client.set(&[key], &value[..(usize::from(key) + 1) << 10]).is_ok());
    }
    for key in (0..10_u8).chain(0..10) {
        assert!(client.get(&[key]).is_some());
    }
    assert!(client.get(b"none").is_none());
    for key in 0..5_u8 {
        assert_eq!(client.call(&[b"DEL", &[key]]).integer(), 1);
    }
}

#[test]
fn requests_of_clients_become_a_trace() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(temp.path());
    for (name, format, trims) in [("a.fio", "fio-v3", 5), ("b.csv.zst", "msr", 0)] {
        let trace = temp.path().join(name).to_str().unwrap().to_owned();
        // msr has no trims, so its recording continues after the 30th request.
        let limit = if trims > 0 { "35" } else { "1000" };
        let child = recorder(&server, &trace, &["--format", format, "--requests", limit]);
        assert!(!Path::new(&trace).exists(), "not before it is whole");
        work(&mut server.client());
        if trims == 0 {
            interrupt(&child);
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let report = json(&output);
        assert_eq!((&report["reads"], &report["writes"]), (&20.into(), &10.into()), "{report}");
        assert_eq!((&report["misses"], &report["dropped"]), (&1.into(), &0.into()), "{report}");
        assert_eq!((&report["trims"], &report["keys"]), (&trims.into(), &5.into()), "{report}");
        let summary = summary(&trace);
        assert_eq!(summary["format"], format);
        assert_eq!(summary["requests"], 30 + trims);
        assert_eq!((&summary["mix"]["reads"], &summary["mix"]["writes"]), (&20.into(), &10.into()));
        // 4 keys of one block, 4 of two, 2 of three.
        assert_eq!(summary["blocks"]["touched_bytes"], (4 + 8 + 6) * 4096);
        assert!(!has_unfinished(temp.path()));
    }
    assert!(server.terminate().success());
}

#[test]
fn an_interrupted_recording_is_a_whole_trace() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(temp.path());
    let trace = temp.path().join("trace.gz").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &[]);
    work(&mut server.client());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    // Complete: the events buffered when the signal came are included.
    assert_eq!(
        (&json(&output)["requests"], &summary(&trace)["requests"]),
        (&35.into(), &35.into())
    );

    let trace = temp.path().join("short").to_str().unwrap().to_owned();
    let output = recorder(&server, &trace, &["--duration", "100ms"]).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(json(&output)["requests"], 0);
}

/// The summary goes to standard error, as the trace has standard output.
#[test]
fn a_recording_goes_through_a_link_to_standard_output() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(temp.path());
    let link = temp.path().join("out");
    std::os::unix::fs::symlink("/proc/self/fd/1", &link).unwrap();
    let child = connected(&server, &[link.to_str().unwrap()]);
    work(&mut server.client());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let summary_of_it = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(summary_of_it.contains("35 requests"), "{summary_of_it}");
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    fs::write(&trace, &output.stdout).unwrap();
    assert_eq!(summary(&trace)["requests"], 35);
}

#[test]
fn a_second_ctrl_c_leaves_no_file() {
    let temp = tempfile::tempdir().unwrap();
    // It starts the recording, and never answers the first request for events.
    let server = Mute::start(&[b"+OK\r\n"]);
    let (trace, address) = (temp.path().join("trace"), server.address.to_string());
    let mut child = Command::new(binary())
        .args(["record", trace.to_str().unwrap(), "--connect", &address])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _connection = server.await_silence();
    assert!(has_unfinished(temp.path()), "it records");
    interrupt(&child);
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "the first one waits for the last events");
    // On a busy machine two signals may arrive as one.
    let ended = loop {
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(100));
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
    };
    assert_eq!(ended.code(), Some(1));
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0);
}

#[test]
fn a_recorder_that_is_too_slow_loses_requests_and_says_so() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(temp.path());
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &["--buffer", "1", "--format", "mqsim"]);
    // Events are not taken while the recorder is stopped, and still every client is served.
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-STOP", &pid]).status().unwrap().success());
    let mut client = server.client();
    for key in 0..2000_u32 {
        assert!(client.set(&key.to_be_bytes(), b"value").is_ok());
    }
    assert!(Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let report = json(&output);
    let (kept, dropped) =
        (report["requests"].as_u64().unwrap(), report["dropped"].as_u64().unwrap());
    assert_eq!(kept + dropped, 2000, "{report}");
    assert!(dropped >= 1900, "{report}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("raise --buffer"));
    assert_eq!(summary(&trace)["requests"], kept);
}

#[test]
fn a_recording_outlives_the_server() {
    let temp = tempfile::tempdir().unwrap();
    let server = server(temp.path());
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let child = recorder(&server, &trace, &[]);
    work(&mut server.client());
    std::thread::sleep(Duration::from_millis(500));
    server.kill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the trace ends there"));
    assert_eq!(summary(&trace)["requests"], 35);
}

#[test]
fn errors_are_reported_and_leave_no_file() {
    let temp = tempfile::tempdir().unwrap();
    let trace = temp.path().join("trace").to_str().unwrap().to_owned();
    let fails = |code: i32, arguments: &[&str], part: &str| {
        let output = softflash([&["record", &trace], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(part), "{arguments:?}: `{part}` is missing in {errors}");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "{arguments:?}");
    };
    fails(1, &["--connect", "127.0.0.1:1"], "is a server running there?");
    fails(2, &["--format", "tape"], "there is no trace format `tape`");
    fails(2, &["--duration", "soon"], "is not a time");
    fails(2, &["--requests", "0"], "0 is not in 1..");
    fails(2, &["--buffer", "262145"], "262145 is not in 1..=262144");
    let output = softflash(["record", "-", "-o", "json"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}
