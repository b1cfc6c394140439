//! `cargo xtask hunt --planted`: the command line of hunts for planted bugs.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a tool that prints its results")]
#![expect(clippy::disallowed_methods, reason = "a hunt is limited in real time")]

use clap::{Parser, ValueEnum};
use serde::Serialize;
use softflash_base::planted::Bug;
use softflash_base::random::Rng;
use softflash_hunt::campaign;
use softflash_hunt::planted::{Hunt, Outcome, is_rare};
use softflash_hunt::profile::Profile;
use softflash_hunt::scenario::Scenario;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// A hunt creates and drops thousands of scenarios.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Plants known bugs one by one and hunts for each: measures what the hunter can find.
#[derive(Parser)]
#[command(
    name = "cargo xtask hunt",
    after_help = "\
Examples:
  cargo xtask hunt --planted all                      # every bug, ten minutes each at most
  cargo xtask hunt --planted number-reused --seed 7   # one bug
  cargo xtask hunt --planted 5 --time 60s             # five bugs that the seed chooses, none rare

Exit code: 0 if all were found, 1 if one was not, 2 for wrong usage."
)]
struct Arguments {
    /// The name of a bug, `all`, or a number of bugs that the seed chooses among those that mostly
    /// show within 250 scenarios.
    #[arg(long, value_parser = chosen, required = true)]
    planted: Choice,
    /// The first seed; without it, one derived from the time.
    #[arg(long)]
    seed: Option<u64>,
    /// A scenario file as `--replay` takes it: hunt in copies of it that differ in the seed only,
    /// to see whether such scenarios show the bugs.
    #[arg(long, value_name = "FILE", value_parser = Scenario::read)]
    like: Option<Scenario>,
    /// Which faults are injected; without it, those of the profile that hunts for the bug.
    #[arg(long, value_enum, conflicts_with = "like")]
    profile: Option<Profile>,
    /// Time limit for each bug, in seconds or as 60s, 10m or 2h.
    #[arg(long, value_parser = softflash_hunt::duration::parsed, default_value = "10m")]
    time: Duration,
    /// Threads; without it, one per core.
    #[arg(long)]
    jobs: Option<usize>,
    /// Output format.
    #[arg(short, long, value_enum, default_value = "table")]
    output: Form,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Form {
    Table,
    Json,
}

/// Selected bugs.
#[derive(Debug, Clone, Copy)]
enum Choice {
    All,
    One(Bug),
    Some(usize),
}

/// The JSON output.
#[derive(Serialize)]
struct Report<'a> {
    first_seed: u64,
    bugs: &'a [Outcome],
    found: usize,
    missed: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    campaign::keep_panics();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let first = arguments.seed.unwrap_or(now.as_secs().wrapping_mul(1_000_003) % (1 << 40));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bugs = bugs(arguments.planted, first);
    eprintln!("first seed {first}");
    let table = arguments.output == Form::Table;
    if table {
        println!(
            "{:<25} {:<5} {:>7} {:>6}  {:<13} how",
            "bug", "found", "seconds", "seeds", "seed"
        );
    }
    let hunted = bugs.into_iter().map(|bug| {
        let began = Instant::now();
        let hunt = Hunt {
            first,
            like: arguments.like.as_ref(),
            profile: arguments.profile,
            jobs: arguments.jobs.unwrap_or(cores),
            stop: &|| began.elapsed() >= arguments.time,
        };
        let outcome = hunt.hunt(bug, &|| began.elapsed().as_secs_f64());
        if table {
            print_row(&outcome);
        }
        outcome
    });
    let outcomes: Vec<Outcome> = hunted.collect();
    let found = outcomes.iter().filter(|outcome| outcome.found).count();
    let missed = outcomes.len() - found;
    match arguments.output {
        Form::Table => println!("{found} of {} found", outcomes.len()),
        Form::Json => {
            let report = Report { first_seed: first, bugs: &outcomes, found, missed };
            match serde_json::to_string_pretty(&report) {
                Ok(json) => println!("{json}"),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print_row(outcome: &Outcome) {
    println!(
        "{:<25} {:<5} {:>7.1} {:>6}  {:<13} {}",
        outcome.name,
        if outcome.found { "yes" } else { "NO" },
        outcome.seconds,
        outcome.seeds,
        outcome.seed.map(|seed| seed.to_string()).unwrap_or_default(),
        outcome.kind.as_deref().unwrap_or_default(),
    );
    for seed in &outcome.others {
        eprintln!("seed {seed} fails without the bug as well");
    }
}

fn chosen(text: &str) -> Result<Choice, String> {
    if text == "all" {
        return Ok(Choice::All);
    }
    if let Ok(number) = text.parse() {
        return Ok(Choice::Some(number));
    }
    let named = Bug::ALL.iter().find(|bug| bug.name() == text);
    named.copied().map(Choice::One).ok_or_else(|| {
        let names: Vec<String> = Bug::ALL.iter().map(|bug| bug.name()).collect();
        format!("unknown bug `{text}`; write `all`, a number, or one of {}", names.join(", "))
    })
}

fn bugs(choice: Choice, seed: u64) -> Vec<Bug> {
    match choice {
        Choice::All => Bug::ALL.to_vec(),
        Choice::One(bug) => vec![bug],
        Choice::Some(number) => {
            let mut all: Vec<Bug> = Bug::ALL.iter().copied().filter(|bug| !is_rare(*bug)).collect();
            let number = number.min(all.len());
            let mut rng = Rng::seeded(seed).fork("planted");
            let draw = |_| all.swap_remove(rng.below(all.len() as u64) as usize);
            (0..number).map(draw).collect()
        }
    }
}
