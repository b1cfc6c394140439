//! `cargo xtask filesystems`: builds and runs the campaign of file systems on a volume; also the
//! short form for the gate.

use crate::Outcome;
use crate::program::program;
use crate::run::{GATE_BUILD, cargo, run as run_command, target_directory};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const RUN: [&str; 6] = ["run", "--quiet", "--locked", "--package", "softflash-filesystems", "--"];

/// The second part of the gate: a pair under a compilation, whose sets give up units.
const PAIR: [&str; 9] =
    ["--fs", "ext4", "--work", "compile", "--crash", "kill", "--copies", "2", "--resize"];

/// Runs the campaign with the given arguments and its exit code.
pub fn run(arguments: &[&str]) -> ExitCode {
    // In place of this process: Ctrl-C is for the campaign, which has mounts to undo.
    let error = Command::new(env!("CARGO")).args(RUN).args(arguments).exec();
    eprintln!("the campaign of file systems cannot be run: {error}");
    ExitCode::FAILURE
}

/// The form of the gate, with the builds of the tests, which come next.
pub fn gate() -> Outcome {
    let program = program(true)?;
    run_command(cargo().args(["test", "--no-run", "--test", "filesystems"]).args(GATE_BUILD))?;
    let campaign = target_directory()?.join("debug/softflash-filesystems");
    for options in [&[][..], &PAIR] {
        let mut campaign = Command::new(&campaign);
        run_command(campaign.arg("--quick").args(options).env("SOFTFLASH_BIN", &program))?;
    }
    Ok(())
}
