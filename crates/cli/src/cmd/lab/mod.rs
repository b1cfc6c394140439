//! `softflash lab`

mod jobs;
mod list;
mod report;
mod run;

use crate::error::CliError;
use clap::{Args, Subcommand};

/// Arguments of `lab`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab list
  softflash lab run sdf-table4 --out results
  softflash lab run --all --quick --out results
  softflash lab report results             write results/report.html

Experiments, devices, layouts and workloads are TOML files; those of the project are in this program, and the path of a
file works wherever a name does. docs/laboratory.md says what stands in them.")]
pub struct Lab {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show experiments, devices, layouts and workloads
    List(list::List),
    /// Run experiments and put our figures beside the published ones
    Run(run::Run),
    /// Draw what was run, as one HTML file
    Report(report::Report),
}

impl Lab {
    /// Lists, runs or draws.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::List(list) => list.run(),
            What::Run(run) => run.run(),
            What::Report(report) => report.run(),
        }
    }
}
