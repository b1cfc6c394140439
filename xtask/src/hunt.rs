//! `cargo xtask hunt`: builds and runs the hunter; also the short form for the gate.

use crate::Outcome;
use crate::run::{cargo, run as run_command};
use std::process::{Command, ExitCode};

/// The build profile for hunts.
const OPTIMISED: &str = "--profile=hunt";

/// Arguments to build and run the hunter, fully optimised.
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

/// The same for planted bugs: a separate binary, so that it never replaces the normal hunter.
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

/// Allocator option: scenarios are created and dropped all the time, and returning their memory to
/// the system in between would cost 5 % of the time.
const KEEP_MEMORY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "-1");

/// Runs the hunter with the given arguments and its exit code.
pub fn run(arguments: &[&str]) -> ExitCode {
    let planted = arguments.iter().any(|argument| argument.split('=').next() == Some("--planted"));
    let run = if planted { &RUN_PLANTED[..] } else { &RUN[..] };
    // Keeps the working directory, because file arguments are relative to it.
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

/// The gate's hunt: fresh seeds in small scenarios, and a few planted bugs chosen by a printed
/// seed. Built with the test profile, because another build would take longer than it saves.
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
