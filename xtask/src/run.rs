//! Runs other programs.

use crate::Outcome;
use std::env;
use std::io::{BufRead, BufReader};
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

/// What all steps of the gate compile: one build of the whole workspace, in which the hunter can
/// plant bugs. Without the feature, the hunt for planted bugs would be a second build of nearly
/// everything.
pub const GATE_BUILD: [&str; 4] =
    ["--workspace", "--locked", "--features", "softflash-hunt/planted"];

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

/// Runs a command to completion, prints what it writes to its standard output, and hands on each
/// line. Returns whether it has succeeded.
pub fn run_with_lines(command: &mut Command, mut on_line: impl FnMut(&str)) -> Outcome<bool> {
    println!("$ {}", shown(command));
    let command_line = shown(command);
    let failed = |error: std::io::Error| format!("{command_line}: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(printed) = child.stdout.take() {
        for line in BufReader::new(printed).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
            println!("{line}");
            on_line(&line);
        }
    }
    Ok(child.wait().map_err(failed)?.success())
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
pub fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(name).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
