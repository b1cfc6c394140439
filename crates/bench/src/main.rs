//! `softflash-bench`: all benchmarks but those of simulated drives, and pages of their results
//! beside other systems.

mod array;
mod recovery;
mod report;

use clap::{Parser, Subcommand};
use softflash_bench::{device, ftl, kv};
use softflash_console::CliError;
use softflash_console::allocator::Allocator;
use softflash_console::log::Log;
use std::process::ExitCode;

/// As in `softflash`, so that both programs have the same figures.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Benchmarks of SoftFlash, and pages that compare their results with those of other systems.
#[derive(Debug, Parser)]
#[command(name = "softflash-bench", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "\
Examples:
  softflash-bench kv --workload fill --keys 1000000 --value-size 1KiB
  softflash-bench array -o json
  softflash-bench recovery --capacity 16GiB
  softflash-bench report rocksdb.json --out kv.html")]
struct Arguments {
    #[command(flatten)]
    log: Log,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The store, embedded in this process, without sockets
    Kv(Box<kv::Kv>),
    /// The device through the flash translation layer
    Device(device::DeviceBench),
    /// The mapped translation layer of volumes, on a device that costs nothing
    Ftl(ftl::FtlBench),
    /// The model of a flash array, in virtual time
    Array(array::ArrayBench),
    /// Start-up time of a store after a clean shutdown and after a power cut, in virtual time
    Recovery(recovery::Recovery),
    /// Draw results of `kv` and of the scripts in bench/ as one HTML file
    Report(report::BenchReport),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    softflash_console::run(|| run(arguments).map(|()| ExitCode::SUCCESS))
}

fn run(arguments: Arguments) -> Result<(), CliError> {
    arguments.log.start();
    match arguments.what {
        What::Kv(kv) => kv.run(),
        What::Device(device) => device.run(),
        What::Ftl(ftl) => ftl.run(),
        What::Array(array) => array.run(),
        What::Recovery(recovery) => recovery.run(),
        What::Report(report) => report.run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_examples_in_the_help_are_accepted() {
        let program = Arguments::command();
        let mut examples = 0;
        for command in program.get_subcommands().chain([&program]) {
            let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let text = text.replace("\\\n      ", "");
            for example in
                text.lines().map(str::trim).filter(|line| line.starts_with("softflash-bench "))
            {
                examples += 1;
                if let Err(error) = Arguments::try_parse_from(example.split_whitespace()) {
                    panic!("{example}\n{error}");
                }
            }
        }
        assert!(examples > 8, "{examples} examples");
    }
}
