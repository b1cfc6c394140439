//! Software-defined flash: format, serve, inspect and measure.

mod capacity_text;
mod client;
mod cmd;
mod descriptors;
mod directories;
mod dump_file;
#[cfg(test)]
mod help_tests;
mod machine_memory;
mod password;
mod supervisor;
mod tls;
mod volume_export;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use softflash_console::allocator::Allocator;
use softflash_console::log::Log;
use softflash_console::{CliError, output};
use softflash_lab_cli::{lab, replay, trace};
use std::process::ExitCode;

const _: () = assert!(
    !softflash_base::planted::POSSIBLE || cfg!(debug_assertions),
    "a release of softflash must not be built with planted bugs: remove the feature `planted`"
);

/// The server allocates and frees hundreds of thousands of values per second; see
/// `docs/benchmarks.md`.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Software-defined flash: a key-value server that owns its flash.
#[derive(Debug, Parser)]
#[command(name = "softflash", version, propagate_version = true, after_help = EXAMPLES)]
#[command(max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    log: Log,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  softflash serve                      serve ./softflash-data on 127.0.0.1:6379
  redis-cli set greeting hello         use it with any Redis client
  softflash units ./softflash-data     look at the flash, server stopped

Exit codes: 0 success, 1 failure, 2 wrong usage.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve a data directory to Redis clients
    Serve(Box<cmd::serve::Serve>),
    /// Create a data directory
    Format(cmd::format::Format),
    /// Enlarge the device of a data directory
    Grow(cmd::grow::Grow),
    /// Describe a data directory
    Info(cmd::info::Info),
    /// Create, list and delete volumes of a data directory, and their snapshots
    Volume(cmd::volume::Volume),
    /// List and change the sets of units of a data directory
    Set(cmd::set::Set),
    /// Show the state of every unit of flash
    Units(cmd::units::Units),
    /// Verify all data of a data directory
    Check(cmd::check::Check),
    /// Compare the clock of a store with this machine's, and set it back
    Clock(cmd::clock::Clock),
    /// Measure the store, the device, or a simulated drive
    Bench(cmd::bench::Bench),
    /// Write all keys to a file
    Dump(cmd::dump::Dump),
    /// Read keys from a file that `dump` wrote
    Load(cmd::load::Load),
    /// Run experiments in virtual time: any device, layout and workload
    Lab(lab::Lab),
    /// Replay a block trace on a simulated drive
    Replay(replay::Replay),
    /// Record the reads and writes of a running server's clients as a block trace
    Record(cmd::record::Record),
    /// Summarize or convert a block trace
    Trace(trace::Trace),
}

fn main() -> ExitCode {
    softflash_console::run(|| {
        command_line().and_then(|(arguments, matches)| run(arguments, &matches))
    })
}

/// The arguments, with those of a settings file; ends the program where they are wrong.
fn command_line() -> Result<(Arguments, ArgMatches), CliError> {
    let program = Arguments::command();
    let words = cmd::serve::with_settings(&program, std::env::args_os().collect())?;
    let matches = program.get_matches_from(words);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    Ok((arguments, matches))
}

fn run(arguments: Arguments, matches: &ArgMatches) -> Result<ExitCode, CliError> {
    arguments.log.start();
    match arguments.command {
        Command::Serve(serve) if serve.only_prints_settings() => {
            let serve = matches.subcommand_matches("serve").unwrap_or(matches);
            output::result(&cmd::serve::settings_text(&Arguments::command(), serve));
            Ok(())
        }
        Command::Serve(serve) => serve.run(),
        Command::Format(format) => format.run(),
        Command::Volume(volume) => volume.run(),
        Command::Set(set) => set.run(),
        Command::Grow(grow) => grow.run(),
        Command::Units(units) => units.run(),
        Command::Info(info) => return info.run(),
        Command::Check(check) => return check.run(),
        Command::Clock(clock) => clock.run(),
        Command::Bench(bench) => bench.run(),
        Command::Dump(dump) => dump.run(),
        Command::Load(load) => load.run(),
        Command::Lab(lab) => lab.run(),
        Command::Replay(replay) => replay.run(),
        Command::Record(record) => record.run(),
        Command::Trace(trace) => trace.run(),
    }?;
    Ok(ExitCode::SUCCESS)
}
