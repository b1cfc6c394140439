//! `cargo xtask loom`: what threads share, tried under every order of their steps.

use crate::Outcome;
use crate::run::{cargo, run as run_command};

/// Each hand-made piece that threads share: its crate, and the module of its models.
const MODELS: [(&str, &str); 3] = [
    ("softflash-runtime", "ready::model"),
    ("softflash-device", "file::settled::model"),
    ("softflash-protocol", "kill::model"),
];

/// Runs all models.
pub fn run() -> Outcome {
    for (package, module) in MODELS {
        let test = ["test", "--locked", "--package", package, "--features", "loom", "--lib", "--"];
        // A filter that fits nothing would pass.
        let listed = cargo().args(test).args([module, "--list"]).output();
        let listed = listed.map_err(|error| format!("{package}: {error}"))?;
        if !String::from_utf8_lossy(&listed.stdout).contains(": test") {
            let errors = String::from_utf8_lossy(&listed.stderr).into_owned();
            return Err(format!("{package} has no tests in {module}\n{errors}"));
        }
        run_command(cargo().args(test).arg(module))?;
    }
    Ok(())
}
