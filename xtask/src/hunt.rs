//! `cargo xtask hunt`: builds the hunter and lets it hunt.

use std::process::{Command, ExitCode};

/// Runs the hunter, optimised, with the arguments given. Its exit code is this tool's.
pub fn run(arguments: &[&str]) -> ExitCode {
    let hunt = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--release", "--locked", "--package", "softflash-hunt", "--"])
        .args(arguments)
        .status();
    match hunt {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("the hunter cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}
