//! `cargo xtask hunt`: the command line of the hunter.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that prints its results")]
#![expect(clippy::disallowed_methods, reason = "a campaign may be limited in real time")]

use clap::{Parser, ValueEnum};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use softflash_hunt::campaign::{self, Campaign, Failure, Tally};
use softflash_hunt::exhaustive::{self, Sweep, Swept};
use softflash_hunt::profile::Profile;
use softflash_hunt::scenario::Scenario;
use softflash_hunt::size::Size;
use softflash_hunt::small_scenario::Step;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// A hunt creates and drops thousands of scenarios.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Hunts for lost and wrong data by deterministic simulation: draws scenarios from seeds, cuts
/// their power, and compares the recovered data with a reference.
#[derive(Parser)]
#[command(
    name = "cargo xtask hunt",
    after_help = "\
Examples:
  cargo xtask hunt --time 60s                 # fresh seeds for a minute, on all cores
  cargo xtask hunt --seed 7 --seeds 1         # one seed
  cargo xtask hunt --replay scenario.toml     # a scenario from a file
  cargo xtask hunt --time 10m -o json
  cargo xtask hunt --size full --time 10m     # scenarios with much work between the cuts
  cargo xtask hunt --profile dead --time 60s  # dies that fail: every loss must be reported
  cargo xtask hunt --exhaustive               # all small scenarios
  cargo xtask hunt --exhaustive --operations 2 --every 8
  cargo xtask hunt --planted all              # hunts for planted bugs (more: --planted all --help)

Exit code: 0 if nothing was found, 1 if something was, 2 for wrong usage. Ctrl-C ends the hunt and prints the results so far."
)]
struct Arguments {
    /// The first seed; without it, one derived from the time.
    #[arg(long)]
    seed: Option<u64>,
    /// Maximum number of seeds.
    #[arg(long)]
    seeds: Option<u64>,
    /// Time limit, as 60s, 10m or 2h; one minute if neither this nor --seeds is given.
    #[arg(long, value_parser = softflash_hunt::duration::parsed)]
    time: Option<Duration>,
    /// Threads; without it, one per core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Which faults are injected.
    #[arg(long, value_enum, default_value = "survived")]
    profile: Profile,
    /// Size of the scenarios.
    #[arg(long, value_enum, default_value = "mixed")]
    size: Size,
    /// Run the scenario in this file instead of drawing scenarios.
    #[arg(long, value_name = "FILE", value_parser = Scenario::read, conflicts_with_all = ["seed", "seeds", "time"])]
    replay: Option<Scenario>,
    /// Run all small scenarios instead: every workload of up to three operations, with a cut at
    /// each point, and at each point of the recovery.
    #[arg(long, conflicts_with_all = ["seed", "seeds", "time", "replay", "profile", "size"])]
    exhaustive: bool,
    /// Maximum number of operations in these workloads.
    #[arg(long, default_value_t = 3, requires = "exhaustive")]
    operations: usize,
    /// Test one in N cuts in a recovery.
    #[arg(long, default_value_t = 1, requires = "exhaustive")]
    every: usize,
    /// Run only this workload, as put-a,batch,clear.
    #[arg(long, requires = "exhaustive")]
    workload: Option<String>,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// The JSON output.
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
        Some(scenario) => replay(scenario),
        None if arguments.exhaustive => sweep(&arguments),
        None => hunt(&arguments),
    }
}

fn sweep(arguments: &Arguments) -> ExitCode {
    let began = Instant::now();
    let only = arguments.workload.as_deref().map(Step::parse).transpose();
    let (only, interrupted) = match (only, interruption()) {
        (Ok(only), Ok(interrupted)) => (only, interrupted),
        (Err(error), _) => return refuse(&error),
        (_, Err(error)) => return refuse(&format!("signal handlers cannot be installed: {error}")),
    };
    let swept = exhaustive::run(&Sweep {
        longest: arguments.operations,
        every: arguments.every.max(1),
        only,
        jobs: arguments.jobs.unwrap_or_else(cores),
        stop: &|| interrupted.load(Ordering::Relaxed),
    });
    if arguments.output == Form::Json {
        match serde_json::to_string_pretty(&swept) {
            Ok(json) => println!("{json}"),
            Err(error) => eprintln!("{error}"),
        }
    } else {
        let Swept { workloads, first_cuts, second_cuts, crash_points, failures, .. } = &swept;
        println!("workloads             {workloads}, of up to {} operations", arguments.operations);
        println!("first cuts            {first_cuts}");
        println!("cuts in recoveries    {second_cuts}, one in {}", arguments.every.max(1));
        println!("cuts with full check  {crash_points} in {:.1} s", began.elapsed().as_secs_f64());
        println!("failures              {}", failures.len());
        for failure in failures {
            println!("\n{}: {}\n{}", failure.workload, failure.what, failure.replay);
        }
    }
    if swept.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn refuse(what: &str) -> ExitCode {
    eprintln!("{what}");
    ExitCode::from(2)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn replay(scenario: &Scenario) -> ExitCode {
    match campaign::attempt(scenario) {
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
    // When the last line was written, and the failures that were told by then.
    let told = Mutex::new((began, 0));
    let on_progress = |tally: &Tally| {
        let Ok(mut told) = told.lock() else { return };
        // At once: a hunt may go on for hours.
        tally.failures[told.1..].iter().for_each(|failure| eprintln!("{}", shown(failure)));
        told.1 = tally.failures.len();
        if told.0.elapsed() > Duration::from_secs(5) {
            told.0 = Instant::now();
            let seconds = began.elapsed().as_secs();
            let Tally { seeds, crash_points, failures, .. } = tally;
            eprintln!(
                "{seconds} s: {seeds} seeds, {crash_points} cuts, {} failures",
                failures.len()
            );
        }
    };
    eprintln!("first seed {first}");
    let interrupted = match interruption() {
        Ok(interrupted) => interrupted,
        Err(error) => return refuse(&format!("signal handlers cannot be installed: {error}")),
    };
    let tally = campaign::run(&Campaign {
        first,
        seeds: arguments.seeds.unwrap_or(u64::MAX),
        profile: arguments.profile,
        size: arguments.size,
        jobs: arguments.jobs.unwrap_or_else(cores),
        stop: &|| {
            interrupted.load(Ordering::Relaxed) || time.is_some_and(|time| began.elapsed() >= time)
        },
        on_failure: &|seed, what| {
            eprintln!("seed {seed} fails, a smaller scenario is sought: {what}")
        },
        on_progress: &on_progress,
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

/// A flag that the first Ctrl-C sets; the second Ctrl-C ends the process.
fn interruption() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupted))?;
        flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

fn print(report: &Report<'_>, form: Form) {
    if form == Form::Json {
        match serde_json::to_string_pretty(report) {
            Ok(json) => println!("{json}"),
            Err(error) => eprintln!("{error}"),
        }
        return;
    }
    let Tally { seeds, crash_points, comparisons, deepest, .. } = report.tally;
    let Tally { simulated_seconds, losses_told, worn_out, failures, .. } = report.tally;
    println!("seeds                 {seeds}, from {}", report.first_seed);
    println!(
        "cuts with full check  {crash_points} ({:.0} a second), up to {deepest} before one recovery",
        report.crash_points_per_second
    );
    println!(
        "full checks           {comparisons}: after a cut or several in a row, and at the end"
    );
    println!(
        "simulated             {simulated_seconds:.1} s in {:.1} s ({:.1} times as fast)",
        report.wall_seconds, report.simulated_per_wall_second
    );
    if *losses_told > 0 {
        println!("losses reported       {losses_told}");
    }
    println!("sessions ended full   {}", report.tally.full_sessions);
    if *worn_out > 0 {
        println!("flash that wore out   {worn_out}");
    }
    println!("failures              {}", failures.len());
    failures.iter().for_each(|failure| println!("\n{}", shown(failure)));
}

fn shown(failure: &Failure) -> String {
    let Failure { seed, what, replay, shrunk } = failure;
    format!("seed {seed}: {what}\n{replay}\n{shrunk}")
}
