//! `softflash lab`: runs experiments in virtual time.

mod import;
mod jobs;
mod keys;
mod list;
mod report;
mod run;
mod search;
mod show;
mod way;

use clap::{Args, Subcommand};
use softflash_console::CliError;

/// Arguments of `lab`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab list
  softflash lab show mqsim-default > mine.toml
  softflash lab keys device                every key of a device file
  softflash lab import mqsim ssdconfig.xml --out mine
  softflash lab run sdf-table4 --out results
  softflash lab run --all --quick --out results
  softflash lab search op-for-latency --key op_percent \\
      --until 'p999_us < 2000 and kept_up'
  softflash lab report results             write results/report.html

Experiments, devices, layouts and workloads are TOML files. The program contains those of the \
project; the path of a file can be used in place of a name. docs/laboratory.md explains them, \
docs/keys.md lists their keys.")]
pub struct Lab {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Show experiments, devices, layouts and workloads
    List(list::List),
    /// Print a preset or an experiment as a file
    Show(show::Show),
    /// List the keys of a kind of file, with type, unit, range, default and meaning
    Keys(keys::Keys),
    /// Make files of a configuration of another simulator
    Import(import::Import),
    /// Run experiments and compare their figures with published ones
    Run(run::Run),
    /// Find the smallest or largest value of a key for which a condition holds
    Search(Box<search::Search>),
    /// Draw the results as one HTML file
    Report(report::Report),
}

impl Lab {
    /// Lists, shows, runs, searches or draws.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::List(list) => list.run(),
            What::Show(show) => show.run(),
            What::Keys(keys) => keys.run(),
            What::Import(import) => import.run(),
            What::Run(run) => run.run(),
            What::Search(search) => search.run(),
            What::Report(report) => report.run(),
        }
    }
}
