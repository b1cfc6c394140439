//! `cargo xtask hunt`: builds and runs the hunter; also the short form for the gate.

use crate::Outcome;
use crate::run::{cargo, run as run_command, target_directory};
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
/// seed. Built with the test profile, because another build would take longer than it saves; the
/// hunter itself is the build of the tests, which come next.
pub fn gate() -> Outcome {
    run_command(cargo().args(["test", "--workspace", "--no-run", "--test", "hunt", "--locked"]))?;
    let hunter = target_directory()?.join("debug/softflash-hunt");
    let hunt = |arguments: &[&str]| {
        run_command(Command::new(&hunter).args(arguments).env(KEEP_MEMORY.0, KEEP_MEMORY.1))
    };
    hunt(&["--size", "small", "--seeds", "3000"])?;
    hunt(&["--exhaustive", "--operations", "2", "--every", "48"])?;
    let planted = RUN_PLANTED.iter().filter(|argument| **argument != OPTIMISED);
    let mut command = cargo();
    command.args(planted).args(["--planted", "3"]).env(KEEP_MEMORY.0, KEEP_MEMORY.1);
    run_command(&mut command)
}
