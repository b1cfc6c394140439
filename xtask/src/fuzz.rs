//! `cargo xtask fuzz`: builds the fuzzers of `fuzz` and runs each for a while.
//!
//! Equivalent to `cargo fuzz run TARGET -s none`, without that tool: libFuzzer's feedback comes
//! from flags of the stable compiler.

use crate::Outcome;
use crate::run::{self, cargo, output, root, run as run_command, target_directory};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

const USAGE: &str = "\
usage: cargo xtask fuzz [--time 10s] [TARGET...]   runs these fuzzers, or all, each for this time
       cargo xtask fuzz --seed-corpus              writes the seeds from the crates' tests";

/// Edge and comparison feedback, and `cfg(fuzzing)`, as in cargo-fuzz.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Crates whose tests have the seeds.
const CRATES: [&str; 7] = ["device", "ftl", "store", "protocol", "nbd", "trace", "lab"];

/// Runs fuzzers, or writes their seeds.
pub fn run(arguments: &[&str]) -> Outcome {
    if arguments == ["--seed-corpus"] {
        return write_seeds();
    }
    let (seconds, targets) = parse(arguments)?;
    let binaries = build()?;
    println!("{} fuzzers, {seconds} s each", targets.len());
    let left = Mutex::new(targets.iter());
    let failures = Mutex::new(Vec::new());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let work = || {
        while let Some(target) = next() {
            match fuzz(target, &binaries, seconds) {
                Ok(found) => println!("{target:<14} {found}"),
                Err(message) => {
                    eprintln!("{message}");
                    failures.lock().into_iter().for_each(|mut all| all.push(target.clone()));
                }
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    match failures.into_inner() {
        Ok(failures) if failures.is_empty() => Ok(()),
        Ok(failures) => Err(format!("fuzz: failed: {}", failures.join(", "))),
        Err(error) => Err(error.to_string()),
    }
}

fn write_seeds() -> Outcome {
    let mut command = cargo();
    command.args(["test", "--quiet", "--locked", "--lib"]);
    for name in CRATES {
        command.args(["-p", &format!("softflash-{name}")]);
    }
    run_command(command.arg("fuzzing").env("SOFTFLASH_WRITE_SEEDS", "1"))
}

/// Duration in seconds, and targets.
fn parse(arguments: &[&str]) -> Outcome<(u64, Vec<String>)> {
    let known = targets()?;
    let (mut seconds, mut wanted) = (10, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if *argument == "--time" {
            seconds = rest.next().and_then(|text| run::seconds(text)).ok_or(USAGE)?;
        } else if known.iter().any(|name| name == argument) {
            wanted.push((*argument).to_owned());
        } else {
            return Err(format!("no fuzzer `{argument}`; there are {}\n{USAGE}", known.join(", ")));
        }
    }
    Ok((seconds, if wanted.is_empty() { known } else { wanted }))
}

/// The names of all fuzzers.
fn targets() -> Outcome<Vec<String>> {
    let directory = root().join("fuzz/fuzz_targets");
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut names: Vec<String> = fs::read_dir(&directory)
        .map_err(failed)?
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Builds all fuzzers; returns their directory.
fn build() -> Outcome<PathBuf> {
    let version = output(cargo().args(["--version", "--verbose"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("cargo --version --verbose names no host")?;
    let target = target_directory()?.join("fuzz");
    // With an explicit target, build scripts and macros are built without instrumentation, with
    // which they would not link.
    run_command(
        cargo()
            .args(["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
            .args(["--target", host, "--target-dir"])
            .arg(&target)
            .env("RUSTFLAGS", FLAGS),
    )?;
    Ok(target.join(host).join("release"))
}

/// Runs one fuzzer; returns a summary.
fn fuzz(target: &str, binaries: &Path, seconds: u64) -> Outcome<String> {
    let fuzz = root().join("fuzz");
    let (work, artifacts) = (fuzz.join("work").join(target), fuzz.join("artifacts").join(target));
    for directory in [&work, &artifacts] {
        let failed = |error| format!("{}: {error}", directory.display());
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let mut command = Command::new(binaries.join(target));
    command.current_dir(&fuzz).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    command.args(["-max_len=16384", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    // New inputs go to the first directory; the committed corpus is only read.
    command.arg(&work).arg(fuzz.join("corpus").join(target));
    let ran = command.output().map_err(|error| format!("{target}: {error}"))?;
    let said = String::from_utf8_lossy(&ran.stderr);
    if ran.status.success() {
        return Ok(summary(&said));
    }
    let lines: Vec<&str> = said.lines().collect();
    let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default().join("\n");
    Err(format!(
        "{last}\n{target} failed. Fix the bug, and keep the input as fuzz/corpus/{target}/found-..."
    ))
}

/// The statistics in a fuzzer's output.
fn summary(said: &str) -> String {
    let stat = |name: &str| {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.map_or("?", str::trim)
    };
    let edges = said.lines().rev().find_map(|line| line.split_once("cov: ")?.1.split(' ').next());
    format!(
        "{} inputs, {} edges, {} MB at most",
        stat("stat::number_of_executed_units:"),
        edges.unwrap_or("?"),
        stat("stat::peak_rss_mb:")
    )
}
