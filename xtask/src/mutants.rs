//! `cargo xtask mutants`: mutation testing of recovery, journal, mapping, transactions and
//! compaction. The files are listed in `.cargo/mutants.toml`, the results in
//! `docs/results/mutants.md`.

use crate::Outcome;
use crate::run::{cargo, output, run as run_command};

/// The crates of these files. Only their own tests run.
const PACKAGES: [&str; 4] = ["--package", "softflash-ftl", "--package", "softflash-store"];

/// A mutant is built once and runs for seconds, so the build time matters.
const FAST: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_TEST_DEBUG", "0"),
];

/// Runs cargo-mutants with the given arguments.
pub fn run(arguments: &[&str]) -> Outcome {
    output(cargo().args(["mutants", "--version"])).map_err(|error| {
        format!("{error}\ncargo-mutants is needed: cargo install --locked cargo-mutants")
    })?;
    let mut command = cargo();
    command.arg("mutants").args(PACKAGES).args(["--minimum-test-timeout", "120"]);
    run_command(command.args(arguments).envs(FAST))
}
