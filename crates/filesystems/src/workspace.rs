//! The workspace: the program that is tested, and the sources that cargo has downloaded for it.

use crate::Outcome;
use crate::run::{output, run};
use serde_json::Value;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program to test, instead of a build of this workspace.
const CHOSEN: &str = "SOFTFLASH_BIN";

/// The program that is tested: [`CHOSEN`], or a build of this workspace.
pub fn program() -> Outcome<PathBuf> {
    if let Some(chosen) = env::var_os(CHOSEN) {
        let chosen = PathBuf::from(chosen);
        return match chosen.is_file() {
            true => Ok(chosen),
            false => Err(format!("{CHOSEN}: there is no program {}", chosen.display())),
        };
    }
    run(cargo().args(["build", "--package", "softflash", "--locked"]))?;
    let metadata = metadata()?;
    let target = metadata["target_directory"].as_str();
    let target = target.ok_or("cargo metadata names no target directory")?;
    Ok(Path::new(target).join("debug/softflash"))
}

/// The directory of a package that the workspace depends on.
pub fn package(name: &str) -> Outcome<PathBuf> {
    let metadata = metadata()?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == name);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let directory = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(directory.ok_or_else(|| format!("cargo metadata has no package {name}"))?.to_owned())
}

fn metadata() -> Outcome<Value> {
    let json = output(cargo().args(["metadata", "--format-version", "1", "--locked"]))?;
    serde_json::from_str(&json).map_err(|error| format!("cargo metadata: {error}"))
}

/// The cargo that runs this program, in the workspace.
fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command
}
