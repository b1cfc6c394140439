//! The program that tools run.

use crate::Outcome;
use crate::run::{GATE_BUILD, cargo, run, target_directory};
use std::path::PathBuf;

/// The program: `SOFTFLASH_BIN`, or that of this source. In the gate it is the build of the tests,
/// which come next.
pub fn program(in_gate: bool) -> Outcome<PathBuf> {
    if let Some(chosen) = std::env::var_os("SOFTFLASH_BIN") {
        return Ok(chosen.into());
    }
    let mut build = cargo();
    match in_gate {
        true => build.args(["test", "--no-run", "--test", "program"]).args(GATE_BUILD),
        false => build.args(["build", "--package", "softflash", "--locked"]),
    };
    run(&mut build)?;
    Ok(target_directory()?.join("debug/softflash"))
}
