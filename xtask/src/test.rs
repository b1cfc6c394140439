//! Runs every test with the real clients.

use crate::Outcome;
use crate::clients::Clients;
use crate::run::cargo;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs all tests; `arguments` are passed on to `cargo test`.
///
/// End-to-end tests use the program that is built with them, optimised and with all assertions, or
/// the one named by `SOFTFLASH_BIN`.
pub fn run(arguments: &[&str]) -> Outcome {
    let clients = Clients::find_or_install()?;
    clients.describe();
    let started = Instant::now();
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--no-fail-fast"]).args(arguments);
    clients.tell(&mut command);
    let (passed, totals) = run_counting(&mut command)?;
    clients.describe();
    println!(
        "test: {} passed, {} failed, {} ignored in {} binaries, {} s",
        totals.passed,
        totals.failed,
        totals.ignored,
        totals.binaries,
        started.elapsed().as_secs()
    );
    match passed {
        _ if totals.passed == 0 => Err("test: no test ran".to_owned()),
        true => Ok(()),
        false => Err("test: failed".to_owned()),
    }
}

/// Totals over all test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Totals {
    binaries: u32,
    passed: u32,
    failed: u32,
    ignored: u32,
}

impl Totals {
    /// Adds a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; ...`; ignores other
    /// lines.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.binaries += 1;
        let counts = result.split(['.', ';']).filter_map(|part| part.trim().split_once(' '));
        for (count, what) in counts {
            let count: u32 = count.parse().unwrap_or(0);
            match what {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                "ignored" => self.ignored += count,
                _ => {}
            }
        }
    }
}

/// Runs `cargo test`, prints its output and sums up the results.
fn run_counting(command: &mut Command) -> Outcome<(bool, Totals)> {
    println!("$ cargo test --workspace");
    let failed = |error: std::io::Error| format!("cargo test: {error}");
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let mut totals = Totals::default();
    if let Some(printed) = child.stdout.take() {
        for line in BufReader::new(printed).split(b'\n') {
            let line = String::from_utf8_lossy(&line.map_err(failed)?).into_owned();
            println!("{line}");
            totals.add(&line);
        }
    }
    Ok((child.wait().map_err(failed)?.success(), totals))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_add_up() {
        let mut totals = Totals::default();
        for line in [
            "running 4 tests",
            "test a ... ok",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            "test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 7 filtered out; finished in 1.00s",
        ] {
            totals.add(line);
        }
        assert_eq!(totals, Totals { binaries: 2, passed: 8, failed: 2, ignored: 1 });
    }
}
