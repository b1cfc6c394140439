//! The options of `lab run` and `lab search`: how cells run, and where their results go.

use clap::Args;
use softflash_console::host;
use softflash_console::output::Form;
use softflash_lab::Form as Size;
use std::path::PathBuf;

/// How cells run, and where their results go.
#[derive(Debug, Args)]
pub struct Way {
    /// Output directory
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// The short form of experiments: fewer or shorter cells
    #[arg(long)]
    quick: bool,
    /// Seed of all random numbers; by default that of each experiment
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Number of threads; by default one per core
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Output format of the results
    #[arg(short, long, value_enum, default_value_t)]
    pub output: Form,
}

impl Way {
    /// Form and seed of the experiments.
    pub fn size(&self) -> Size {
        Size { quick: self.quick, seed: self.seed }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        usize::from(self.jobs.unwrap_or_else(host::cores))
    }
}
