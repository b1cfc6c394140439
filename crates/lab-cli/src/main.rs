//! `softflash-lab`: the commands of the laboratory, in the words of `softflash`.

use clap::{Args, Parser, Subcommand};
use softflash_console::CliError;
use softflash_console::allocator::Allocator;
use softflash_console::log::Log;
use softflash_lab_cli::{lab, replay, sim, trace};
use std::process::ExitCode;

/// As in `softflash`, so that both programs have the same figures.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// The laboratory of SoftFlash alone: the commands of `softflash` that run in virtual time.
#[derive(Debug, Parser)]
#[command(name = "softflash-lab", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  softflash-lab lab run sdf-table4 --quick --out results
  softflash-lab bench sim --device mqsim-default --workload random-write-8k

The commands and their options are those of `softflash`, as are the examples in their help.")]
struct Arguments {
    #[command(flatten)]
    log: Log,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run experiments in virtual time: any device, layout and workload
    Lab(lab::Lab),
    /// Measure a simulated drive
    Bench(Bench),
    /// Replay a block trace on a simulated drive
    Replay(replay::Replay),
    /// Summarize or convert a block trace
    Trace(trace::Trace),
}

#[derive(Debug, Args)]
struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Any device, layout and workload, in virtual time
    Sim(Box<sim::Sim>),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    softflash_console::run(|| run(arguments).map(|()| ExitCode::SUCCESS))
}

fn run(arguments: Arguments) -> Result<(), CliError> {
    arguments.log.start();
    match arguments.command {
        Command::Lab(lab) => lab.run(),
        Command::Bench(Bench { what: What::Sim(sim) }) => sim.run(),
        Command::Replay(replay) => replay.run(),
        Command::Trace(trace) => trace.run(),
    }
}
