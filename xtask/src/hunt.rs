//! `cargo xtask hunt`: builds the hunter and lets it hunt; and the short form that the gate runs.

use crate::Outcome;
use crate::run::{cargo, run as run_command};
use std::process::{Command, ExitCode};

/// How the hunter is built and run: optimised.
const RUN: [&str; 7] =
    ["run", "--quiet", "--release", "--locked", "--package", "softflash-hunt", "--"];

/// Runs the hunter with the arguments given. Its exit code is this tool's.
pub fn run(arguments: &[&str]) -> ExitCode {
    match Command::new(env!("CARGO")).args(RUN).args(arguments).status() {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("the hunter cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Fresh seeds, and small worlds all over.
pub fn gate() -> Outcome {
    run_command(cargo().args(RUN).args(["--small", "--seeds", "10000"]))?;
    run_command(cargo().args(RUN).args(["--exhaustive", "--operations", "2", "--every", "16"]))
}
