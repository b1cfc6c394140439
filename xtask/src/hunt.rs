//! `cargo xtask hunt`: builds the hunter and lets it hunt; and the short form that the gate runs.

use crate::Outcome;
use crate::run::{cargo, run as run_command};
use std::process::{Command, ExitCode};

/// The profile for hunts.
const OPTIMISED: &str = "--profile=hunt";

/// How the hunter is built and run: optimised as a whole.
const RUN: [&str; 9] = [
    "run",
    "--quiet",
    OPTIMISED,
    "--locked",
    "--package",
    "softflash-hunt",
    "--bin",
    "softflash-hunt",
    "--",
];

/// How the one is that hunts for planted bugs: a program of its own, so that it never stands where the other is looked
/// for.
const RUN_PLANTED: [&str; 11] = [
    "run",
    "--quiet",
    OPTIMISED,
    "--locked",
    "--package",
    "softflash-hunt",
    "--features",
    "planted",
    "--bin",
    "softflash-hunt-planted",
    "--",
];

/// Worlds are made and thrown away all the time: giving their memory back to the system in between costs a twentieth.
const KEEP_MEMORY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "-1");

/// Runs the hunter with the arguments given. Its exit code is this tool's.
pub fn run(arguments: &[&str]) -> ExitCode {
    let planted = arguments.iter().any(|argument| argument.split('=').next() == Some("--planted"));
    let run = if planted { &RUN_PLANTED[..] } else { &RUN[..] };
    // Not in the root of the workspace: files are named from where the user is.
    let mut hunter = Command::new(env!("CARGO"));
    hunter.args(run).args(arguments).env(KEEP_MEMORY.0, KEEP_MEMORY.1);
    match hunter.status() {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("the hunter cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Fresh seeds, small worlds all over, and a few planted bugs, which a printed seed chooses. Built as the tests are:
/// another build would take longer than it saves.
pub fn gate() -> Outcome {
    let as_tests = |run: &[&'static str]| -> Vec<&'static str> {
        run.iter().copied().filter(|argument| *argument != OPTIMISED).collect()
    };
    let hunt = |hunter: &[&'static str], arguments: &[&str]| {
        run_command(
            cargo().args(as_tests(hunter)).args(arguments).env(KEEP_MEMORY.0, KEEP_MEMORY.1),
        )
    };
    hunt(&RUN, &["--size", "small", "--seeds", "3000"])?;
    hunt(&RUN, &["--exhaustive", "--operations", "2", "--every", "48"])?;
    hunt(&RUN_PLANTED, &["--planted", "3"])
}
