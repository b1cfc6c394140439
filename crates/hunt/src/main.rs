//! `cargo xtask hunt`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that talks to its user")]
#![expect(clippy::disallowed_methods, reason = "a campaign may be limited in real time")]

use clap::{Parser, ValueEnum};
use serde::Serialize;
use softflash_hunt::campaign::{self, Campaign, Tally};
use softflash_hunt::world::{Profile, World};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

/// Hunts for lost and wrong data: draws worlds from seeds, cuts their power, and compares what comes back.
#[derive(Parser)]
#[command(
    name = "cargo xtask hunt",
    after_help = "\
Examples:
  cargo xtask hunt --time 60s                 # fresh seeds for a minute, on all cores
  cargo xtask hunt --seed 7 --seeds 1         # one seed, again
  cargo xtask hunt --replay world.toml        # a world from a file
  cargo xtask hunt --time 10m -o json

Exit code: 0 if nothing was found, 1 if something was, 2 for wrong usage."
)]
struct Arguments {
    /// The first seed; one that follows from the time if left out.
    #[arg(long)]
    seed: Option<u64>,
    /// How many seeds at most.
    #[arg(long)]
    seeds: Option<u64>,
    /// How long at most, as 60s, 10m or 2h; a minute if neither this nor --seeds is given.
    #[arg(long, value_parser = duration)]
    time: Option<Duration>,
    /// Threads; all cores if left out.
    #[arg(long)]
    jobs: Option<usize>,
    /// What goes wrong: `survived` is what the store survives; `decaying` adds pages that are cut off and decay later,
    /// `paired` the loss of older pages of the word line.
    #[arg(long, value_enum, default_value = "survived")]
    profile: ProfileName,
    /// Runs the world of this file instead of drawing any.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "time"])]
    replay: Option<PathBuf>,
    /// What is printed.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum ProfileName {
    Survived,
    Decaying,
    Paired,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    first_seed: u64,
    #[serde(flatten)]
    tally: &'a Tally,
    wall_seconds: f64,
    crash_points_per_second: f64,
    simulated_per_wall_second: f64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    campaign::keep_panics();
    match &arguments.replay {
        Some(path) => replay(path),
        None => hunt(&arguments),
    }
}

fn replay(path: &std::path::Path) -> ExitCode {
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let world: World = match read
        .and_then(|text| toml::from_str(&text).map_err(|error: toml::de::Error| error.to_string()))
    {
        Ok(world) => world,
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            return ExitCode::from(2);
        }
    };
    match campaign::attempt(&world) {
        Ok(record) => {
            println!("nothing found: {record:?}");
            ExitCode::SUCCESS
        }
        Err(what) => {
            println!("{what}");
            ExitCode::FAILURE
        }
    }
}

fn hunt(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = arguments.seed.unwrap_or(now.as_secs().wrapping_mul(1_000_003) % (1 << 40));
    let minute = arguments.seeds.is_none().then_some(Duration::from_secs(60));
    let time = arguments.time.or(minute);
    let last_word = Mutex::new(began);
    let told = |tally: &Tally| {
        let Ok(mut last) = last_word.lock() else { return };
        if last.elapsed() > Duration::from_secs(5) {
            *last = Instant::now();
            let seconds = began.elapsed().as_secs();
            let Tally { seeds, crash_points, failures, .. } = tally;
            eprintln!(
                "{seconds} s: {seeds} seeds, {crash_points} cuts, {} failures",
                failures.len()
            );
        }
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    eprintln!("first seed {first}");
    let tally = campaign::run(&Campaign {
        first,
        seeds: arguments.seeds.unwrap_or(u64::MAX),
        profile: match arguments.profile {
            ProfileName::Survived => Profile::Survived,
            ProfileName::Decaying => Profile::Decaying,
            ProfileName::Paired => Profile::Paired,
        },
        jobs: arguments.jobs.unwrap_or(cores),
        stop: &|| time.is_some_and(|time| began.elapsed() >= time),
        told: &told,
    });
    let wall_seconds = began.elapsed().as_secs_f64();
    let report = Report {
        first_seed: first,
        wall_seconds,
        crash_points_per_second: tally.crash_points as f64 / wall_seconds,
        simulated_per_wall_second: tally.simulated_seconds / wall_seconds,
        tally: &tally,
    };
    print(&report, arguments.output);
    if tally.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(report: &Report<'_>, form: Form) {
    if form == Form::Json {
        match serde_json::to_string_pretty(report) {
            Ok(json) => println!("{json}"),
            Err(error) => eprintln!("{error}"),
        }
        return;
    }
    let Tally { seeds, crash_points, deepest, simulated_seconds, failures } = report.tally;
    println!("seeds                 {seeds}, from {}", report.first_seed);
    println!(
        "cuts with full check  {crash_points} ({:.0} a second), up to {deepest} before one recovery",
        report.crash_points_per_second
    );
    println!(
        "simulated             {simulated_seconds:.1} s in {:.1} s ({:.1} times as fast)",
        report.wall_seconds, report.simulated_per_wall_second
    );
    println!("failures              {}", failures.len());
    for failure in failures {
        println!(
            "\nseed {}: {}\n{}\n{}",
            failure.seed, failure.what, failure.replay, failure.shrunk
        );
    }
}

/// As 60s, 10m or 2h.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration; write 60s, 10m or 2h");
    let (number, unit) = text.split_at(text.len().saturating_sub(1));
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}
