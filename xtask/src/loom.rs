//! `cargo xtask loom`: checks lock-free and locked state shared by threads under every
//! interleaving.

use crate::Outcome;
use crate::run::{cargo, run as run_command};

/// The modules with loom models, and their crates.
const MODELS: [(&str, &str); 3] = [
    ("softflash-runtime", "ready::model"),
    ("softflash-device", "file::settled::model"),
    ("softflash-protocol", "kill::model"),
];

/// Runs all models.
pub fn run() -> Outcome {
    for (package, module) in MODELS {
        let test = ["test", "--locked", "--package", package, "--features", "loom", "--lib", "--"];
        // A filter without matches would pass.
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
