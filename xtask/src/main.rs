//! The project's own tools, run as `cargo xtask COMMAND`.
//!
//! Only two of them matter to most people: `test` runs every test, against the real Redis clients,
//! and `ci` is the gate that a change has to pass.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to its user")]
#![expect(clippy::disallowed_methods, reason = "measures how long its steps take")]

mod ci;
mod clients;
mod coverage;
mod deny;
mod edges;
mod files;
mod findings;
mod fuzz;
mod hunt;
mod kill9;
mod loom;
mod mutants;
mod run;
mod test;
mod tidy;

use findings::Findings;
use std::process::ExitCode;

/// What a step of the tool comes to: an explanation where it failed.
type Outcome<T = ()> = Result<T, String>;

const USAGE: &str = "\
usage: cargo xtask COMMAND

  test [ARGS]        every test: installs the real clients if it can, runs `cargo test --workspace`
                     (ARGS are passed on) and adds up the results
  ci [--except STEP] the gate: format, edges, tidy, clippy, docs, deny, loom, hunt, test
  hunt [ARGS]        hunts for lost and wrong data in simulated worlds (`hunt --help` has more)
  fuzz [ARGS]        fuzzers of all decoders, each for 10 s (`--time 3m`, or names of some)
  loom               what threads share, under every order of their steps
  kill9 [ARGS]       kills the real server at any moment, again and again, for 60 s (`--time 10m`)
  mutants [ARGS]     changes recovery, transactions, mapping and more in small ways: does a test notice? (for hours;
                     `-F recovery.rs`: one file; needs cargo-mutants)
  coverage           lines of nand, ftl and store that no test runs, and their share (needs cargo-llvm-cov)
  edges              do the crates depend on each other as ARCHITECTURE.md says?
  tidy               do named paths and links exist, are files small and finished?
  clients            find the real clients that the tests drive, install those that are missing";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["test", rest @ ..] => test::run(rest),
        ["ci", rest @ ..] => ci::run(rest),
        ["hunt", rest @ ..] => return hunt::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["loom"] => loom::run(),
        ["kill9", rest @ ..] => kill9::run(rest),
        ["coverage"] => coverage::run(),
        ["mutants", rest @ ..] => mutants::run(rest),
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

/// Prints what was found; anything found is a failure.
fn report(findings: Outcome<Findings>) -> Outcome {
    let findings = findings?;
    findings.print();
    findings.verdict()
}
