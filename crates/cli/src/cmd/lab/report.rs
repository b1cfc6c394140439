//! `softflash lab report`

use crate::error::CliError;
use crate::output;
use clap::Args;
use softflash_lab::{report, results};
use std::path::PathBuf;

/// Arguments of `lab report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab report results
  softflash lab report results --to sdf.html

Draws every experiment that has a result in the directory. The file is self-contained: no network, \
no scripts.")]
pub struct Report {
    /// The output directory of `lab run --out`
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Path of the report; by default DIR/report.html
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
}

impl Report {
    /// Draws and writes the report.
    pub fn run(self) -> Result<(), CliError> {
        let to = self.to.unwrap_or_else(|| self.directory.join("report.html"));
        let html = report::of_directory(&self.directory)?;
        results::write_atomically(&to, html.as_bytes())?;
        output::say(&format!("{}: written", to.display()));
        Ok(())
    }
}
