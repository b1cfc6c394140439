//! `cargo xtask kill9`: the long form of the test that kills the server at random moments.

use crate::Outcome;
use crate::run::{cargo, run as run_command, seconds};

const USAGE: &str = "usage: cargo xtask kill9 [--time 60s] [--seed SEED]";

/// Runs `crates/cli/tests/program/kills.rs` for a while.
pub fn run(arguments: &[&str]) -> Outcome {
    let mut command = cargo();
    command.args(["test", "--locked", "--package", "softflash", "--test", "program", "--"]);
    command.args(["--nocapture", "acknowledged_writes_survive_kills_at_any_moment"]);
    let (mut time, mut rest) = (60, arguments.iter());
    while let Some(argument) = rest.next() {
        match (*argument, rest.next()) {
            ("--time", Some(text)) => time = seconds(text).ok_or(USAGE)?,
            ("--seed", Some(seed)) => {
                command.env("SOFTFLASH_TEST_SEED", seed);
            }
            _ => return Err(USAGE.to_owned()),
        }
    }
    run_command(command.env("SOFTFLASH_KILL_SECONDS", time.to_string()))
}
