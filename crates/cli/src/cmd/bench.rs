//! `softflash bench`: measures the store, the device or the flash model.

use clap::{Args, Subcommand};
use softflash_bench::{device, ftl, kv};
use softflash_console::CliError;
use softflash_lab_cli::sim;

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench kv --workload fill --keys 1000000 --value-size 1KiB
  softflash bench device --pattern read --size 4KiB --depth 32
  softflash bench ftl --size 8GiB --spare 7 -o json
  softflash bench sim --device mqsim-default --workload random-write-8k

The program softflash-bench has further benchmarks, and draws their results.")]
pub struct Bench {
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
    /// Any device, layout and workload, in virtual time
    Sim(Box<sim::Sim>),
}

impl Bench {
    /// Runs a benchmark and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Kv(kv) => kv.run(),
            What::Device(device) => device.run(),
            What::Ftl(ftl) => ftl.run(),
            What::Sim(sim) => sim.run(),
        }
    }
}
