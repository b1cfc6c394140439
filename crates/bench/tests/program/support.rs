//! Runs the program.

use serde_json::Value;
use std::ffi::OsStr;
use std::process::{Command, Output};

/// Runs a command.
pub fn bench<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Output {
    let program = env!("CARGO_BIN_EXE_softflash-bench");
    Command::new(program).args(arguments).output().expect("the program can be started")
}

/// Standard output and standard error of a command, for messages of failed tests.
pub fn said(output: &Output) -> String {
    let [out, errors] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{}\n{out}{errors}", output.status)
}

/// Runs the program and expects it to fail with `code` and an error that contains all of `parts`.
pub fn fails(code: i32, arguments: &[&str], parts: &[&str]) {
    let output = bench(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
    let errors = String::from_utf8_lossy(&output.stderr);
    for part in parts {
        assert!(errors.contains(part), "{arguments:?}: `{part}` is missing in: {errors}");
    }
}

/// The JSON output of a command.
pub fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}
