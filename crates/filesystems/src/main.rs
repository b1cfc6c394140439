//! `cargo xtask filesystems`: file systems of the kernel on a volume, with a compiler, SQLite and
//! PostgreSQL on them, through `nbdfuse` and a loop device. The server is killed meanwhile.
//!
//! It knows SoftFlash as an operator does: by its program and its sockets.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that prints its results")]
#![expect(clippy::disallowed_methods, reason = "programs of the kernel run in real time")]

mod attached;
mod checksums;
mod filesystem;
mod host;
mod interrupt;
mod machine;
mod options;
mod random;
mod record;
mod resizes;
mod resp;
mod round;
mod run;
mod server;
mod sets;
mod source_tree;
mod tool;
mod work;
mod workspace;

use filesystem::Filesystem;
use machine::Lack;
use options::Options;
use record::Recording;
use resizes::Tally;
use round::{Crash, Round, Row};
use serde_json::json;
use source_tree::SourceTree;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tempfile::TempDir;

/// A result, or an explanation of what failed.
type Outcome<T = ()> = Result<T, String>;

/// The time before the snapshot and that before the kill, in milliseconds.
const MOMENTS_MS: [(u64, u64); 2] = [(2000, 8000), (1000, 15_000)];
const QUICK_MOMENTS_MS: [(u64, u64); 2] = [(1500, 2500), (500, 2000)];

/// The result of a round.
struct Finished {
    filesystem: Filesystem,
    crash: Crash,
    seed: u64,
    rows: Vec<Row>,
    resizes: Option<Tally>,
    seconds: u64,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let options = match Options::parse(&arguments) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{}", options::HELP);
            return ExitCode::SUCCESS;
        }
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    match carry_out(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the rounds and prints their results.
fn carry_out(options: &Options) -> Outcome {
    if let Err(lack) = machine::prepare(&options.works) {
        return skip(options, "all file systems", &lack);
    }
    interrupt::catch()?;
    let program = workspace::program()?;
    let place = scratch("sources")?;
    let sources = SourceTree::prepare(place.path(), options.quick)?;
    if let Some(directory) = &options.record {
        return record_traces(options, directory, &program, &sources);
    }
    let campaign = Campaign { options, program: &program, sources: &sources };
    let mut finished = Vec::new();
    for round in rounds(options)? {
        finished.push(campaign.run(round)?);
    }
    match options.json {
        true => print_json(&finished),
        false => print_table(&finished),
    }
    Ok(())
}

/// Records the traces.
fn record_traces(
    options: &Options,
    directory: &Path,
    program: &Path,
    sources: &SourceTree,
) -> Outcome {
    for &subject in &options.subjects {
        let place = scratch(subject.name())?;
        let recording =
            Recording { program, sources, place: place.path(), subject, seed: options.seed };
        recording.run(directory).map_err(|error| format!("{}: {error}", subject.name()))?;
    }
    Ok(())
}

/// The rounds that this machine can run: file system, crash and seed.
fn rounds(options: &Options) -> Outcome<Vec<(Filesystem, Crash, u64)>> {
    let mut rounds = Vec::new();
    for &filesystem in &options.filesystems {
        if !knows(options, filesystem, filesystem.name())? {
            continue;
        }
        for (crash, seed) in options.rounds(filesystem) {
            let is_possible =
                crash == Crash::Kill || knows(options, Filesystem::Xfs, "crashes of the host")?;
            rounds.push((filesystem, if is_possible { crash } else { Crash::Kill }, seed));
        }
    }
    Ok(rounds)
}

/// Whether the kernel has a file system; else `what` is skipped, if it may be.
fn knows(options: &Options, filesystem: Filesystem, what: &str) -> Outcome<bool> {
    let is_known = machine::knows(filesystem)?;
    if !is_known {
        let lack = Lack::Kernel(format!("the kernel has no {}", filesystem.name()));
        skip(options, what, &lack)?;
    }
    Ok(is_known)
}

/// What all rounds share.
struct Campaign<'a> {
    options: &'a Options,
    program: &'a Path,
    sources: &'a SourceTree,
}

impl Campaign<'_> {
    fn run(&self, (filesystem, crash, seed): (Filesystem, Crash, u64)) -> Outcome<Finished> {
        let started = Instant::now();
        let (name, quick) = (filesystem.name(), self.options.quick);
        let mut place = scratch(&format!("{name}-{}-{seed}", crash.name()))?;
        let round = Round {
            program: self.program,
            sources: self.sources,
            place: place.path(),
            filesystem,
            works: &self.options.works,
            crash,
            copies: self.options.copies,
            resize: self.options.resize,
            seed,
            moments_ms: if quick { QUICK_MOMENTS_MS } else { MOMENTS_MS },
        };
        let done = round.run();
        // What Ctrl-C has left behind is no evidence.
        interrupt::check()?;
        let (rows, resizes) = done.map_err(|error| {
            place.disable_cleanup(true);
            let (kept, crash) = (place.path().display(), crash.name());
            let again = self.options.shown();
            format!(
                "{name}, {crash}, seed {seed}: {error}\n{kept} is kept; again: cargo xtask \
                 filesystems --fs {name} --crash {crash} --seed {seed}{again}"
            )
        })?;
        let seconds = started.elapsed().as_secs();
        Ok(Finished { filesystem, crash, seed, rows, resizes, seconds })
    }
}

/// A temporary directory. PostgreSQL, which refuses to run as root, must get into it.
fn scratch(name: &str) -> Outcome<TempDir> {
    let mut directory = tempfile::Builder::new();
    let prefix = format!("softflash-{name}-");
    let made = directory.prefix(&prefix).permissions(Permissions::from_mode(0o755)).tempdir();
    made.map_err(|error| format!("a temporary directory: {error}"))
}

/// The short form may leave out what this machine cannot do; but in CI only for want of a feature
/// of the kernel.
fn skip(options: &Options, what: &str, lack: &Lack) -> Outcome {
    let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    let may_skip = match lack {
        Lack::Kernel(_) => options.quick,
        Lack::Setup(_) => options.quick && !ci,
    };
    if !may_skip {
        return Err(format!("{what} cannot be tested: {}", lack.reason()));
    }
    eprintln!("{}", "=".repeat(80));
    eprintln!("SKIPPING the tests of {what}: {}", lack.reason());
    eprintln!("{}", "=".repeat(80));
    Ok(())
}

fn print_table(finished: &[Finished]) {
    println!(
        "{:<5} {:<5} {:>6}  {:<11} {:<15} {:>12} {:>8}",
        "fs", "crash", "seed", "what", "unit", "acknowledged", "found"
    );
    for Finished { filesystem, crash, seed, rows, resizes, seconds } in finished {
        let round = format!("{:<5} {:<5} {seed:>6}", filesystem.name(), crash.name());
        for Row { what, unit, acknowledged, found } in rows {
            println!("{round}  {what:<11} {unit:<15} {acknowledged:>12} {found:>8}");
        }
        if let Some(Tally { completed, interrupted, refused }) = resizes {
            let count: u64 = refused.values().sum();
            println!(
                "{round}  resizes: {completed} completed, {interrupted} interrupted by the crash, \
                 {count} refused"
            );
            for (reason, times) in refused {
                println!("{round}    {times} times refused: {reason}");
            }
        }
        println!("{round}  fsck clean, all checks passed, {seconds} s");
    }
}

fn print_json(finished: &[Finished]) {
    let row = |row: &Row| {
        json!({
            "what": row.what,
            "unit": row.unit,
            "acknowledged": row.acknowledged,
            "found": row.found,
        })
    };
    let resizes = |tally: &Tally| {
        json!({
            "completed": tally.completed,
            "interrupted": tally.interrupted,
            "refused": tally.refused,
        })
    };
    let round = |round: &Finished| {
        json!({
            "filesystem": round.filesystem.name(),
            "crash": round.crash.name(),
            "seed": round.seed,
            "seconds": round.seconds,
            "resizes": round.resizes.as_ref().map(resizes),
            "results": round.rows.iter().map(row).collect::<Vec<_>>(),
        })
    };
    println!("{:#}", finished.iter().map(round).collect::<serde_json::Value>());
}
