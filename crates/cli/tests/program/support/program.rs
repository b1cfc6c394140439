//! Runs the program's commands to completion.

use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program under test: the one named by `SOFTFLASH_BIN`, or the one built with the tests.
pub fn binary() -> PathBuf {
    match std::env::var_os("SOFTFLASH_BIN") {
        Some(path) => path.into(),
        None => env!("CARGO_BIN_EXE_softflash").into(),
    }
}

/// Runs a command.
pub fn softflash<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    Command::new(binary()).args(arguments).output().expect("the program can be started")
}

/// Standard output and standard error of a command, for messages of failed tests.
pub fn said(output: &Output) -> String {
    format!(
        "{}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs the program and expects it to fail with `code` and one line that contains all of `parts`.
pub fn fails<S: AsRef<OsStr>>(code: i32, arguments: &[S], parts: &[&str]) {
    let output = softflash(arguments);
    let shown: Vec<_> = arguments.iter().map(|argument| argument.as_ref()).collect();
    assert_eq!(output.status.code(), Some(code), "{shown:?}: {}", said(&output));
    let errors = String::from_utf8(output.stderr.clone()).unwrap();
    let line = errors.lines().find(|line| line.contains("error")).unwrap_or_default();
    for part in parts {
        assert!(errors.contains(part), "{shown:?}: `{part}` is missing in: {errors}");
    }
    assert!(!line.is_empty(), "{shown:?}: no error in: {errors}");
    assert!(output.stdout.is_empty(), "{shown:?}: errors go to standard error");
}

/// The JSON output of a command.
pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The kind of device for a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A preallocated file.
    File,
    /// A simulated flash array in a file, at the speed of real flash.
    Model,
}

impl Backend {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Backend::File => "file",
            Backend::Model => "model",
        }
    }
}

/// Creates a data directory of `bytes`, with some superblocks in every unit.
pub fn format(directory: &Path, backend: Backend, bytes: u64) {
    let units = (bytes >> 27).clamp(2, 8).to_string();
    format_with(directory, backend, bytes, &["--units", &units]);
}

/// As [`format`], with further arguments.
pub fn format_with(directory: &Path, backend: Backend, bytes: u64, more: &[&str]) {
    let size = bytes.to_string();
    let mut arguments = vec![OsStr::new("format"), directory.as_os_str()];
    arguments.extend(["--backend", backend.name(), "--size", &size].map(OsStr::new));
    arguments.extend(more.iter().map(OsStr::new));
    let output = softflash(arguments);
    assert!(output.status.success(), "format: {}", said(&output));
}

/// Result of `check DIR -o json`.
pub struct Checked {
    /// The field `ok`; the exit status agrees.
    pub ok: bool,
    /// The whole report.
    pub report: Value,
}

/// Checks a data directory that no server has open.
pub fn check(directory: &Path) -> Checked {
    let output =
        softflash([OsStr::new("check"), directory.as_os_str(), "-o".as_ref(), "json".as_ref()]);
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("check prints JSON ({error}): {}", said(&output)));
    let ok = report["ok"].as_bool().unwrap_or_else(|| panic!("check says ok: {}", said(&output)));
    assert_eq!(output.status.code(), Some(i32::from(!ok)), "check: {}", said(&output));
    Checked { ok, report }
}

/// Checks a data directory and expects no findings.
pub fn check_clean(directory: &Path) {
    let checked = check(directory);
    assert!(checked.ok, "check found: {:#}", checked.report);
}
