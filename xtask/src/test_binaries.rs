//! The test binaries of the workspace, built by cargo.

use crate::Outcome;
use crate::run::{GATE_BUILD, cargo, shown};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Tests of this package run the whole program and mostly wait: they begin first.
const END_TO_END: &str = "crates/cli";

/// A test binary.
pub struct TestBinary {
    executable: PathBuf,
    /// The folder of its package, in which cargo would run it.
    package: PathBuf,
}

impl TestBinary {
    /// Builds the binaries that `cargo test` would run with these arguments; the longest first.
    pub fn build(arguments: &[&str]) -> Outcome<Vec<TestBinary>> {
        let mut command = cargo();
        command.args(["test", "--no-run", "--message-format=json-render-diagnostics"]);
        command.args(GATE_BUILD).args(arguments).stderr(Stdio::inherit());
        if arguments.is_empty() {
            // Not the examples, which have no tests: clippy compiles them.
            command.arg("--tests");
        }
        println!("$ {}", shown(&command));
        let output = command.output().map_err(|error| format!("cargo test: {error}"))?;
        if !output.status.success() {
            return Err(format!("test: the build failed: {}", output.status));
        }
        let messages = String::from_utf8_lossy(&output.stdout);
        let mut found: Vec<TestBinary> = messages.lines().filter_map(TestBinary::of).collect();
        found.sort_by_key(|binary| !binary.package.ends_with(END_TO_END));
        Ok(found)
    }

    /// The binary that a message of cargo names, if it does.
    fn of(message: &str) -> Option<TestBinary> {
        let message: Value = serde_json::from_str(message).ok()?;
        let is_test =
            message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let package = Path::new(message["manifest_path"].as_str()?).parent()?;
        Some(TestBinary { executable: executable.into(), package: package.into() })
    }

    /// Runs it, with arguments for the tests.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.executable);
        command.current_dir(&self.package).env("CARGO_MANIFEST_DIR", &self.package);
        command.args(arguments);
        command
    }
}
