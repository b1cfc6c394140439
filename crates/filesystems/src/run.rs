//! Other programs, run to their end.

use crate::Outcome;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Runs a command that says what it does. Standard output is for results, so its text goes to
/// standard error.
pub fn run(command: &mut Command) -> Outcome {
    eprintln!("$ {}", shown(command));
    command.stdin(Stdio::null()).stdout(std::io::stderr());
    let status = command.status().map_err(|error| format!("{}: {error}", shown(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{}: {status}", shown(command))),
    }
}

/// The command line as text.
fn shown(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name();
    let words = name.into_iter().chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
