//! Runs every test with the real clients.
//!
//! Test binaries run two at a time: most of the end-to-end tests wait for servers, clients and
//! clocks, and one binary after the other left half of the machine idle.

use crate::Outcome;
use crate::clients::Clients;
use crate::run::{GATE_BUILD, cargo, shown};
use crate::test_binaries::TestBinary;
use std::collections::VecDeque;
use std::env;
use std::num::NonZero;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{available_parallelism, scope};
use std::time::Instant;

/// Threads of a test binary.
const THREADS: &str = "RUST_TEST_THREADS";

/// Test binaries that run at a time.
const TOGETHER: usize = 2;

/// Runs all tests; `arguments` are passed on to `cargo test`, and those behind `--` to the tests.
///
/// End-to-end tests use the program that is built with them, optimised and with all assertions, or
/// the one named by `SOFTFLASH_BIN`.
pub fn run(arguments: &[&str]) -> Outcome {
    let clients = Clients::find_or_install()?;
    clients.describe();
    let started = Instant::now();
    let split = arguments.iter().position(|it| *it == "--").unwrap_or(arguments.len());
    let (of_cargo, of_tests) = arguments.split_at(split);
    let of_tests = of_tests.get(1..).unwrap_or_default();
    let (targets, filters) = targets_and_filters(of_cargo);
    let of_tests: Vec<&str> = filters.iter().chain(of_tests).copied().collect();
    let binaries = TestBinary::build(&targets)?;
    println!("test: {} binaries after {} s", binaries.len(), started.elapsed().as_secs());
    let mut commands: Vec<Command> = binaries.iter().map(|it| it.command(&of_tests)).collect();
    if targets.is_empty() {
        let mut examples = cargo();
        examples.args(["test", "--doc", "--no-fail-fast"]).args(GATE_BUILD);
        commands.push(with_arguments(examples, &of_tests));
    }
    // Many tests wait for servers and clients: as many of each binary as there are cores.
    let threads = available_parallelism().map_or(2, NonZero::get).to_string();
    for command in &mut commands {
        clients.tell(command);
        if env::var_os(THREADS).is_none() {
            command.env(THREADS, &threads);
        }
    }
    let (passed, totals, failures) = run_counting(commands);
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

/// Splits arguments of `cargo test` into those that choose targets, and names of tests.
fn targets_and_filters<'a>(arguments: &[&'a str]) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut targets, mut filters) = (Vec::new(), Vec::new());
    let mut rest = arguments.iter().copied();
    while let Some(argument) = rest.next() {
        match argument {
            "-p" | "--package" | "--test" | "--bin" | "--example" | "--exclude" => {
                targets.extend([Some(argument), rest.next()].into_iter().flatten());
            }
            _ if argument.starts_with('-') => targets.push(argument),
            _ => filters.push(argument),
        }
    }
    (targets, filters)
}

fn with_arguments(mut command: Command, of_tests: &[&str]) -> Command {
    if !of_tests.is_empty() {
        command.arg("--").args(of_tests);
    }
    command
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

/// Runs commands in their order, some at a time, prints the output of each when it ends, and sums
/// up the results. Returns whether all have succeeded.
fn run_counting(commands: Vec<Command>) -> (bool, Totals, Failures) {
    let waiting = Mutex::new(VecDeque::from(commands));
    let ended = Mutex::new((true, Totals::default(), Failures::default()));
    let in_turn = || {
        // Not in the loop's head: the queue would be locked as long as the command runs.
        let next = || locked(&waiting).pop_front();
        while let Some(mut command) = next() {
            println!("$ {}", shown(&command));
            let started = Instant::now();
            let output = command.stdin(Stdio::null()).output();
            let (passed, totals, failures) = &mut *locked(&ended);
            *passed &= output.as_ref().is_ok_and(|output| output.status.success());
            println!("\n$ {} ({} s)", shown(&command), started.elapsed().as_secs());
            match output {
                Ok(output) => print_and_add(&output, totals, failures),
                Err(error) => println!("cannot be run: {error}"),
            }
        }
    };
    scope(|scope| (0..TOGETHER).for_each(|_| drop(scope.spawn(in_turn))));
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print_and_add(output: &Output, totals: &mut Totals, failures: &mut Failures) {
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        println!("{line}");
        totals.add(line);
        failures.add(line);
    }
    print!("{}", String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        println!("{}", output.status);
    }
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
    fn names_of_tests_are_no_targets() {
        let split = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let (targets, filters) = targets_and_filters(&words);
            (targets.join(" "), filters.join(" "))
        };
        let expected = ("-p softflash --test program".to_owned(), "grow pairs".to_owned());
        assert_eq!(split("-p softflash grow --test program pairs"), expected);
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
