//! The program that tools run.

use crate::Outcome;
use crate::run::{cargo, run, target_directory};
use std::path::PathBuf;

/// The program: `SOFTFLASH_BIN`, or that of this source. In the gate it is the build of the tests,
/// which come next.
pub fn program(in_gate: bool) -> Outcome<PathBuf> {
    if let Some(chosen) = std::env::var_os("SOFTFLASH_BIN") {
        return Ok(chosen.into());
    }
    let build: &[&str] = match in_gate {
        true => &["test", "--workspace", "--no-run", "--test", "program"],
        false => &["build", "--package", "softflash"],
    };
    run(cargo().args(build).arg("--locked"))?;
    Ok(target_directory()?.join("debug/softflash"))
}
