//! `softflash trace`: summaries and conversions with the real program.

use crate::support::program::{binary, said, softflash};
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A hundred requests of 4 KiB to two volumes, microseconds apart.
fn alibaba() -> String {
    let line = |index: u64| {
        let kind = if index.is_multiple_of(4) { 'R' } else { 'W' };
        format!(
            "{},{kind},{},4096,{}\n",
            index % 2,
            (index % 50) << 20,
            1_577_808_000_000_000 + index * 1000
        )
    };
    (0..100).map(line).collect()
}

fn trace(arguments: &[&str]) -> Output {
    softflash([&["trace"], arguments].concat())
}

fn succeeds(arguments: &[&str]) -> Output {
    let output = trace(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", said(&output));
    output
}

fn fails(code: i32, arguments: &[&str], parts: &[&str]) {
    let output = trace(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.is_empty(), "{arguments:?}: errors go to standard error");
    assert!(parts.iter().all(|part| errors.contains(part)), "{arguments:?}: {parts:?}: {errors}");
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// A directory with a trace, and paths in it.
fn directory() -> (tempfile::TempDir, impl Fn(&str) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_owned();
    fs::write(path.join("disk.csv"), alibaba()).unwrap();
    (directory, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(binary());
    command.arg("trace").args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_summary_is_a_table_or_json() {
    let (_directory, path) = directory();
    let summary = json(&succeeds(&["summary", &path("disk.csv"), "-o", "json"]));
    assert_eq!(summary["format"], "alibaba");
    assert_eq!((&summary["requests"], &summary["mix"]["reads"]), (&100.into(), &25.into()));
    assert_eq!(summary["blocks"]["touched_bytes"], 50 * 4096);
    assert_eq!(summary["devices"][1]["requests"], 50);
    let table = succeeds(&["summary", &path("disk.csv")]);
    let table = String::from_utf8(table.stdout).unwrap();
    for part in ["alibaba", "footprint", "200.0 KiB", "hot set", "p99 4.0 KiB", "device"] {
        assert!(table.contains(part), "`{part}` is missing in:\n{table}");
    }
}

#[test]
fn a_trace_goes_through_all_formats_and_packings() {
    let (_directory, path) = directory();
    let expected = json(&succeeds(&["summary", &path("disk.csv"), "-o", "json"]));
    let mut from = path("disk.csv");
    let chain = [
        ("a.fio", "fio-v3"),
        ("b.gz", "msr"),
        ("c.zst", "blkparse"),
        ("d", "mqsim"),
        ("e.gz", "alibaba"),
        ("f", "fio-v2"),
        ("g", "tencent"),
    ];
    for (name, format) in chain {
        let to = path(name);
        let report = json(&succeeds(&["convert", &from, &to, "--to", format, "-o", "json"]));
        assert_eq!((&report["requests_written"], &report["to"]), (&100.into(), &format.into()));
        let summary = json(&succeeds(&["summary", &to, "-o", "json"]));
        assert_eq!(summary["format"], format);
        assert_eq!(
            (&summary["mix"], &summary["blocks"]["touched_bytes"]),
            (&expected["mix"], &expected["blocks"]["touched_bytes"])
        );
        from = to;
    }
    let packed = |name| fs::read(path(name)).unwrap()[..2].to_vec();
    assert_eq!((packed("b.gz"), packed("c.zst")), (vec![0x1f, 0x8b], vec![0x28, 0xb5]));
}

#[test]
fn changes_are_made_on_the_way() {
    let (_directory, path) = directory();
    let (from, to) = (path("disk.csv"), path("out"));
    let changes = ["--speed", "2", "--copies", "3", "--copy-offset", "64MiB", "--wrap", "16MiB"];
    let arguments = [&["convert", &from, &to, "--to", "mqsim"], &changes[..]].concat();
    succeeds(&[&arguments[..], &["--device-size", "16MiB"]].concat());
    let summary = json(&succeeds(&["summary", &to, "-o", "json"]));
    assert_eq!(summary["requests"], 300);
    assert_eq!(summary["rate"]["duration_ns"], 99 * 500_000);
    assert!(summary["devices"][0]["end_bytes"].as_u64().unwrap() <= 16 << 20);
}

#[test]
fn standard_input_and_output_are_files_too() {
    let mut child = start(&["convert", "-", "-", "--to", "tencent"]);
    child.stdin.take().unwrap().write_all(alibaba().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 100);
    assert!(text.starts_with("0,0,8,0,0\n0,2048,8,1,1\n"), "{text}");
    fails(2, &["convert", "-", "-", "--to", "msr", "-o", "json"], &["standard output"]);
}

#[test]
fn errors_are_reported_and_leave_no_file() {
    let (directory, path) = directory();
    let (disk, out) = (path("disk.csv"), path("out.csv"));
    fs::write(path("bad.csv"), alibaba() + "0,X,0,4096,1\n" + &alibaba()).unwrap();
    fs::write(path("other"), "hello\n").unwrap();
    let to = ["--to", "msr"];
    let convert = |from: &str, more: &[&str], code: i32, parts: &[&str]| {
        fails(code, &[&["convert", from, &out], &to[..], more].concat(), parts);
    };
    convert(&path("bad.csv"), &["--strict"], 1, &["bad.csv: line 101: opcode", "--strict"]);
    convert(&path("other"), &[], 1, &["no known format", "blkparse"]);
    convert(&path("none"), &[], 1, &["none: No such file"]);
    convert(&disk, &["--device-size", "1MiB"], 1, &["beyond the device", "--wrap"]);
    convert(&disk, &["--speed", "0"], 2, &["speed 0"]);
    convert(&disk, &["--copies", "2"], 2, &["--copy-offset"]);
    convert(&disk, &["--from", "csv"], 2, &["csv", "tencent"]);
    convert(&disk, &["--wrap", "0"], 2, &["0 bytes"]);
    assert_eq!(names(directory.path()), ["bad.csv", "disk.csv", "other"]);
    let lenient = json(&succeeds(&["summary", &path("bad.csv"), "-o", "json"]));
    assert_eq!((&lenient["requests"], &lenient["tally"]["malformed"]), (&200.into(), &1.into()));
    assert_eq!(lenient["tally"]["out_of_order"], 99);
    let remarks = succeeds(&["convert", &path("bad.csv"), &out, "--to", "msr"]);
    assert!(
        String::from_utf8_lossy(&remarks.stderr).contains("line 101: opcode"),
        "{}",
        said(&remarks)
    );
}

#[test]
fn a_signal_leaves_no_half_file() {
    let (directory, path) = directory();
    let mut child = start(&["convert", "-", &path("out.csv"), "--to", "msr"]);
    let mut input = child.stdin.take().unwrap();
    let lines = alibaba().repeat(100);
    // Enough for the trace to be started, without an end.
    (0..20).for_each(|_| input.write_all(lines.as_bytes()).unwrap());
    while names(directory.path()).len() < 2 {
        std::thread::yield_now();
    }
    // SAFETY: a signal to a child that has not been waited for.
    #[expect(unsafe_code, reason = "the standard library sends no SIGINT")]
    let sent = unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    assert_eq!(sent, 0);
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("unfinished files were removed"), "{said}");
    assert_eq!(names(directory.path()), ["disk.csv"]);
}

#[test]
fn help_has_examples() {
    for command in ["summary", "convert"] {
        let help = String::from_utf8(succeeds(&[command, "--help"]).stdout).unwrap();
        assert!(help.contains("Examples:"), "{help}");
        assert!(help.contains(&format!("softflash trace {command}")), "{help}");
    }
}
