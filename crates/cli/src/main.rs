//! Software-defined flash: format, serve, inspect and measure.

mod allocator;
mod capacity_text;
mod cleanup;
mod client;
mod cmd;
mod counted;
mod descriptors;
mod directories;
mod dump_file;
mod error;
#[cfg(test)]
mod help_tests;
mod host;
mod interrupt;
mod machine_memory;
mod new_file;
mod output;
mod password;
mod signals;
mod sizes;
mod supervisor;
mod tls;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use error::CliError;
use std::io::IsTerminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

const _: () = assert!(
    !softflash_base::planted::POSSIBLE,
    "softflash must not be built with planted bugs: remove the feature `planted`"
);

/// The server allocates and frees hundreds of thousands of values per second; see
/// `docs/benchmarks.md`.
#[global_allocator]
static ALLOCATOR: allocator::Allocator = allocator::Allocator;

/// Software-defined flash: a key-value server that owns its flash.
#[derive(Debug, Parser)]
#[command(name = "softflash", version, propagate_version = true, after_help = EXAMPLES)]
#[command(max_term_width = 100)]
struct Arguments {
    /// Log filter for standard error, as `warn` or `softflash_store=debug`; RUST_LOG does the same
    #[arg(long, global = true, value_name = "FILTER", display_order = 998, value_parser = parse_filter)]
    log: Option<String>,
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
    /// Describe a data directory
    Info(cmd::info::Info),
    /// Create, list and delete volumes of a data directory, and their snapshots
    Volume(cmd::volume::Volume),
    /// Show the state of every unit of flash
    Units(cmd::units::Units),
    /// Verify all data of a data directory
    Check(cmd::check::Check),
    /// Compare the clock of a store with this machine's, and set it back
    Clock(cmd::clock::Clock),
    /// Measure the store, the device or the flash model
    Bench(cmd::bench::Bench),
    /// Write all keys to a file
    Dump(cmd::dump::Dump),
    /// Read keys from a file that `dump` wrote
    Load(cmd::load::Load),
    /// Run experiments in virtual time: any device, layout and workload
    Lab(cmd::lab::Lab),
    /// Replay a block trace on a simulated drive
    Replay(cmd::replay::Replay),
    /// Record the reads and writes of a running server's clients as a block trace
    Record(cmd::record::Record),
    /// Summarize or convert a block trace
    Trace(cmd::trace::Trace),
}

fn main() -> ExitCode {
    allocator::set_up();
    match command_line().and_then(|(arguments, matches)| run(arguments, &matches)) {
        Ok(code) => code,
        Err(error) => {
            output::complain(&error);
            ExitCode::from(error.exit_code())
        }
    }
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
    start_logging(arguments.log.as_deref())?;
    match arguments.command {
        Command::Serve(serve) if serve.only_prints_settings() => {
            let serve = matches.subcommand_matches("serve").unwrap_or(matches);
            output::result(&cmd::serve::settings_text(&Arguments::command(), serve));
            Ok(())
        }
        Command::Serve(serve) => serve.run(),
        Command::Format(format) => format.run(),
        Command::Volume(volume) => volume.run(),
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

/// Checks a log filter, which is parsed again where it is used: it cannot be copied.
fn parse_filter(text: &str) -> Result<String, String> {
    EnvFilter::try_new(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn start_logging(filter: Option<&str>) -> Result<(), CliError> {
    let filter = match filter {
        Some(filter) => EnvFilter::try_new(filter)
            .map_err(|error| CliError::Usage(format!("--log {filter}: {error}")))?,
        None => EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn")),
    };
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let has_colours = std::io::stderr().is_terminal() && !is_plain;
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(has_colours);
    log.with_writer(std::io::stderr).init();
    Ok(())
}
