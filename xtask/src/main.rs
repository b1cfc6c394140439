//! The project's own tools, run as `cargo xtask COMMAND`.
//!
//! The two important ones: `test` runs every test with the real Redis clients, and `ci` is the gate
//! that a change has to pass.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that prints its results")]
#![expect(clippy::disallowed_methods, reason = "measures how long its steps take")]

mod ci;
mod clients;
mod code_map;
mod coverage;
mod deny;
mod edges;
mod files;
mod filesystems;
mod findings;
mod first_day;
mod fuzz;
mod hunt;
mod kill9;
mod mutants;
mod program;
mod run;
mod scratch;
mod test;
mod test_binaries;
mod tidy;

use findings::Findings;
use std::process::ExitCode;

/// Result of a command: an explanation if it failed.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [ARGS]        every test: installs the real clients if it can, runs `cargo test --workspace`
                     (ARGS are passed on) and adds up the results
  ci [--except STEP] the gate: format, edges, tidy, clippy, docs, deny, hunt, filesystems,
                     first-day, test
  hunt [ARGS]        hunts for lost and wrong data by deterministic simulation (`hunt --help` has more)
  fuzz [ARGS]        fuzzers of all decoders, each for 10 s (`--time 3m`, or names of some)
  kill9 [ARGS]       kills the real server at random moments for 60 s (`--time 10m`)
  filesystems [ARGS] ext4 and xfs on a volume, with a compiler and databases, over kill -9 of the
                     server (`--help` has more)
  first-day [ARGS]   the commands in the code blocks of README and docs, as a reader runs them
                     (`--page README.md`: of one page)
  mutants [ARGS]     mutation testing of recovery, transactions, mapping and more (takes hours;
                     `-F recovery.rs`: one file; needs cargo-mutants)
  coverage           line coverage of nand, ftl and store, and uncovered lines (needs cargo-llvm-cov)
  edges              checks the crates' dependencies against docs/dependencies.md
  tidy               checks paths and links, file sizes, unfinished work, cycles of files, the maps
  code-map           writes docs/code-map.md from the first sentences of all sources
  clients            finds the real clients for the tests and installs missing ones";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test", rest @ ..] => test::run(rest),
        ["ci", rest @ ..] => ci::run(rest),
        ["hunt", rest @ ..] => return hunt::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["kill9", rest @ ..] => kill9::run(rest),
        ["filesystems", rest @ ..] => return filesystems::run(rest),
        ["first-day", rest @ ..] => first_day::run(rest),
        ["coverage"] => coverage::run(),
        ["mutants", rest @ ..] => mutants::run(rest),
        ["code-map"] => code_map::write(),
        ["edges"] => report(edges::check()),
        ["tidy"] => report(tidy::check()),
        ["clients"] => clients::Clients::find_or_install().map(|clients| clients.describe()),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the findings; any finding is a failure.
fn report(findings: Outcome<Findings>) -> Outcome {
    let findings = findings?;
    findings.print();
    findings.verdict()
}
