//! `cargo xtask hunt`: builds and runs the hunter; also the short form for the gate.

use crate::Outcome;
use crate::run::{GATE_BUILD, cargo, run as run_command, run_with_lines, shown, target_directory};
use std::process::{Command, ExitCode};

/// The build profile for hunts.
const OPTIMISED: &str = "--profile=hunt";

/// Arguments to build and run the hunter, fully optimised.
const RUN: [&str; 9] = [
    "run",
    "--quiet",
    OPTIMISED,
    "--locked",
    "--package",
    "softflash-hunt",
    "--bin",
    "softflash-hunt",
    "--",
];

/// The same for planted bugs: a separate binary, so that it never replaces the normal hunter.
const RUN_PLANTED: [&str; 11] = [
    "run",
    "--quiet",
    OPTIMISED,
    "--locked",
    "--package",
    "softflash-hunt",
    "--features",
    "planted",
    "--bin",
    "softflash-hunt-planted",
    "--",
];

/// Allocator option: scenarios are created and dropped all the time, and returning their memory to
/// the system in between would cost 5 % of the time.
const KEEP_MEMORY: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "-1");

/// Runs the hunter with the given arguments and its exit code.
pub fn run(arguments: &[&str]) -> ExitCode {
    let planted = arguments.iter().any(|argument| argument.split('=').next() == Some("--planted"));
    let run = if planted { &RUN_PLANTED[..] } else { &RUN[..] };
    // Keeps the working directory, because file arguments are relative to it.
    let mut hunter = Command::new(env!("CARGO"));
    hunter.args(run).args(arguments).env(KEEP_MEMORY.0, KEEP_MEMORY.1);
    match hunter.status() {
        Ok(status) => {
            ExitCode::from(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
        }
        Err(error) => {
            eprintln!("the hunter cannot be run: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The gate's hunt: fresh seeds in small scenarios, and a few planted bugs chosen by a printed
/// seed. Built with the test profile, because another build would take longer than it saves; the
/// hunter itself is the build of the tests, which come next.
pub fn gate() -> Outcome {
    run_command(cargo().args(["test", "--no-run", "--test", "hunt"]).args(GATE_BUILD))?;
    let hunter = target_directory()?.join("debug/softflash-hunt");
    let hunt = |arguments: &[&str]| reporting(Command::new(&hunter).args(arguments));
    hunt(&["--size", "small", "--seeds", "3000"])?;
    hunt(&["--exhaustive", "--operations", "2", "--every", "48"])?;
    let hunter = hunter.with_file_name("softflash-hunt-planted");
    reporting(Command::new(hunter).args(["--planted", "3"]))
}

/// Runs a hunt. The error has its report, which the gate prints again at its end.
fn reporting(hunt: &mut Command) -> Outcome {
    let mut report = Report::default();
    let command_line = shown(hunt);
    match run_with_lines(hunt.env(KEEP_MEMORY.0, KEEP_MEMORY.1), |line| report.add(line))? {
        true => Ok(()),
        false => Err(format!("{command_line}: failed\n{}", report.0.join("\n"))),
    }
}

/// What a hunt has found: the lines from the number of failures on, with the first of them; all
/// lines of a hunt for planted bugs.
#[derive(Default)]
struct Report(Vec<String>);

/// The most lines of it: one failure has its message, its command and its scenario.
const MOST_REPORT_LINES: usize = 160;

impl Report {
    fn add(&mut self, line: &str) {
        if line.starts_with("failures ") {
            self.0.clear();
        }
        if self.0.len() < MOST_REPORT_LINES {
            self.0.push(line.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Report;

    #[test]
    fn a_report_begins_with_the_failures_and_has_an_end() {
        let mut report = Report::default();
        let printed = "seeds 3000, from 1\nfailures              1\n\nseed 7: a value is lost\n";
        printed.lines().chain(["scenario"; 200]).for_each(|line| report.add(line));
        assert_eq!(report.0.len(), 160);
        assert_eq!(report.0[..3], ["failures              1", "", "seed 7: a value is lost"]);
    }

    #[test]
    fn a_report_of_planted_bugs_is_whole() {
        let mut report = Report::default();
        let printed = ["bug found", "number-reused NO", "2 of 3 found"];
        printed.iter().for_each(|line| report.add(line));
        assert_eq!(report.0, printed);
    }
}
