//! Runs other programs.

use crate::Outcome;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The workspace's root.
pub fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), PathBuf::from)
}

/// The cargo binary that runs this tool, in the workspace's root.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Cargo's target directory.
pub fn target_directory() -> Outcome<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or_else(|| "cargo metadata names no target directory".to_owned())
}

/// The output of `cargo metadata` for the workspace.
pub fn metadata(arguments: &[&str]) -> Outcome<serde_json::Value> {
    let mut command = cargo();
    command.args(["metadata", "--format-version", "1", "--locked"]).args(arguments);
    let json = output(&mut command)?;
    serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))
}

/// Runs a command to completion with inherited output.
pub fn run(command: &mut Command) -> Outcome {
    println!("$ {}", shown(command));
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {status}", shown(command))),
    }
}

/// The output of a command.
pub fn output(command: &mut Command) -> Outcome<String> {
    command.stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("{}: {error}", shown(command)))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{}: {}\n{}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Whether a command can be started and succeeds; its output is discarded.
pub fn works(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Parses a duration: `90`, `90s` or `2m`.
pub fn seconds(text: &str) -> Option<u64> {
    match text.strip_suffix('m') {
        Some(minutes) => minutes.parse::<u64>().ok()?.checked_mul(60),
        None => text.strip_suffix('s').unwrap_or(text).parse().ok(),
    }
}

/// The command line as text.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
