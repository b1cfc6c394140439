//! Runs every test with the real clients.

use crate::Outcome;
use crate::clients::Clients;
use crate::run::{GATE_BUILD, cargo, run_with_lines};
use std::env;
use std::num::NonZero;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::Instant;

/// Threads of a test binary.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs all tests; `arguments` are passed on to `cargo test`.
///
/// End-to-end tests use the program that is built with them, optimised and with all assertions, or
/// the one named by `SOFTFLASH_BIN`.
pub fn run(arguments: &[&str]) -> Outcome {
    let clients = Clients::find_or_install()?;
    clients.describe();
    let started = Instant::now();
    let mut command = cargo();
    command.args(["test", "--no-fail-fast"]).args(GATE_BUILD).args(arguments);
    clients.tell(&mut command);
    if env::var_os(THREADS).is_none() {
        // Many tests wait for servers and clients: one more than there are cores.
        let cores = available_parallelism().map_or(2, NonZero::get);
        command.env(THREADS, (cores + 1).to_string());
    }
    let (passed, totals, failures) = run_counting(&mut command)?;
    clients.describe();
    failures.print_again();
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

/// The reports of failed tests, which are printed again at the end: a log of the gate that is cut
/// in its middle still has them.
#[derive(Debug, Default)]
struct Failures {
    lines: Vec<String>,
    is_inside: bool,
}

/// The most lines of them.
const MOST_FAILURE_LINES: usize = 200;

impl Failures {
    /// Keeps the lines from `failures:` to the result of a test binary.
    fn add(&mut self, line: &str) {
        self.is_inside |= line == "failures:";
        self.is_inside &= !line.starts_with("test result: ");
        if self.is_inside && self.lines.len() < MOST_FAILURE_LINES {
            self.lines.push(line.to_owned());
        }
    }

    fn print_again(&self) {
        self.lines.iter().for_each(|line| println!("{line}"));
    }
}

/// Runs `cargo test`, prints its output and sums up the results.
fn run_counting(command: &mut Command) -> Outcome<(bool, Totals, Failures)> {
    let (mut totals, mut failures) = (Totals::default(), Failures::default());
    let passed = run_with_lines(command, |line| {
        totals.add(line);
        failures.add(line);
    })?;
    Ok((passed, totals, failures))
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

    #[test]
    fn reports_of_failed_tests_are_kept() {
        let mut failures = Failures::default();
        let lines = "test a ... FAILED\n\nfailures:\n\n---- a stdout ----\nleft: 1\n\nfailures:\n    a\n\ntest result: FAILED. 0 passed\nrunning 1 test";
        lines.lines().for_each(|line| failures.add(line));
        assert_eq!(failures.lines.first().map(String::as_str), Some("failures:"));
        assert_eq!(failures.lines.len(), 8);
        assert!(failures.lines.contains(&"left: 1".to_owned()));
    }
}
