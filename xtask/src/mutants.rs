//! `cargo xtask mutants`: changes recovery, journal, mapping, transactions and compaction in small ways, one after the other, and asks
//! whether a test notices. `.cargo/mutants.toml` has the files, `docs/results/mutants.md` the results.

use crate::Outcome;
use crate::run::{cargo, output, run as run_command};

/// The crates that the files are in. Only their own tests are asked.
const PACKAGES: [&str; 4] = ["--package", "softflash-ftl", "--package", "softflash-store"];

/// A mutant is built once and run for seconds: what costs is building.
const FAST: [(&str, &str); 3] = [
    ("CARGO_INCREMENTAL", "1"),
    ("CARGO_PROFILE_DEV_DEBUG", "0"),
    ("CARGO_PROFILE_TEST_DEBUG", "0"),
];

/// Runs cargo-mutants with the arguments given.
pub fn run(arguments: &[&str]) -> Outcome {
    output(cargo().args(["mutants", "--version"])).map_err(|error| {
        format!("{error}\ncargo-mutants is needed: cargo install --locked cargo-mutants")
    })?;
    let mut command = cargo();
    command.arg("mutants").args(PACKAGES).args(["--minimum-test-timeout", "120"]);
    run_command(command.args(arguments).envs(FAST))
}
