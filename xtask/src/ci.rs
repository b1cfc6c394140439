//! The gate: the checks that a change has to pass. `.ci/run` runs the same steps.

use crate::run::{GATE_BUILD, cargo, run as run_command};
use crate::{Outcome, deny, edges, filesystems, first_day, hunt, report, test, tidy};
use std::time::Instant;

/// A step: name and function.
type Step = (&'static str, fn() -> Outcome);

/// Fast steps that fail often come first.
const STEPS: [Step; 10] = [
    ("format", || run_command(cargo().args(["fmt", "--all", "--check"]))),
    ("edges", || report(edges::check())),
    ("tidy", || report(tidy::check())),
    ("clippy", clippy),
    ("docs", docs),
    ("deny", deny::check),
    ("hunt", hunt::gate),
    ("filesystems", filesystems::gate),
    ("first-day", first_day::gate),
    ("test", || test::run(&[])),
];

/// Runs all steps except those named with `--except`, even after a failure. The summary and the
/// errors of failed steps, with their reports, come last: a log that is cut in its middle has them.
pub fn run(arguments: &[&str]) -> Outcome {
    let except = excepted(arguments)?;
    let mut failures = Vec::new();
    let mut summary = Vec::new();
    for (name, step) in STEPS.iter().filter(|(name, _)| !except.contains(name)) {
        println!("\n== {name}");
        let started = Instant::now();
        let outcome = step();
        let verdict = if outcome.is_ok() { "ok" } else { "FAILED" };
        summary.push(format!("{name:<11} {verdict:<7} {:>4} s", started.elapsed().as_secs()));
        if let Err(message) = outcome {
            println!("{}", message.lines().next().unwrap_or_default());
            failures.push((*name, message));
        }
    }
    println!("\n{}", summary.join("\n"));
    for (name, message) in &failures {
        println!("\n== {name} FAILED\n{message}");
    }
    let names: Vec<&str> = failures.iter().map(|(name, _)| *name).collect();
    match names.len() {
        0 => Ok(()),
        _ => Err(format!("ci: failed: {}", names.join(", "))),
    }
}

/// The steps to skip.
fn excepted<'a>(arguments: &[&'a str]) -> Outcome<Vec<&'a str>> {
    let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    let mut except = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match (*argument, rest.next()) {
            ("--except", Some(name)) if names.contains(name) => except.push(*name),
            _ => {
                return Err(format!(
                    "usage: cargo xtask ci [--except STEP] (of {})",
                    names.join(", ")
                ));
            }
        }
    }
    Ok(except)
}

fn clippy() -> Outcome {
    let strict = ["--all-targets", "--", "-D", "warnings"];
    run_command(cargo().arg("clippy").args(GATE_BUILD).args(strict))
}

fn docs() -> Outcome {
    let mut command = cargo();
    command.args(["doc", "--workspace", "--no-deps", "--locked"]);
    run_command(command.env("RUSTDOCFLAGS", "-D warnings"))
}
