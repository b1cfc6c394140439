//! `softflash bench`: measures the store, the device or the flash model.

mod array;
mod device;
mod ftl;
mod kv;
pub mod measure;
mod recovery;
mod report;
mod sim;

use crate::error::CliError;
use clap::{Args, Subcommand};

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash bench kv --workload fill --keys 1000000 --value-size 1KiB
  softflash bench device --pattern read --size 4KiB --depth 32
  softflash bench array -o json
  softflash bench ftl --size 8GiB --spare 7 -o json
  softflash bench recovery --capacity 16GiB
  softflash bench sim --device mqsim-default --workload random-write-8k
  softflash bench report rocksdb.json --out kv.html")]
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
    /// The model of a flash array, in virtual time
    Array(array::ArrayBench),
    /// Start-up time of a store after a clean shutdown and after a power cut, in virtual time
    Recovery(recovery::Recovery),
    /// Any device, layout and workload, in virtual time
    Sim(Box<sim::Sim>),
    /// Draw results of `bench kv` and of the scripts in bench/ as one HTML file
    Report(report::BenchReport),
}

impl Bench {
    /// Runs a benchmark and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Kv(kv) => kv.run(),
            What::Device(device) => device.run(),
            What::Ftl(ftl) => ftl.run(),
            What::Array(array) => array.run(),
            What::Recovery(recovery) => recovery.run(),
            What::Sim(sim) => sim.run(),
            What::Report(report) => report.run(),
        }
    }
}
