//! `softflash lab report`: draws results as one HTML file.

use clap::Args;
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output;
use softflash_lab::report;
use std::path::PathBuf;

/// Arguments of `lab report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab report results
  softflash lab report results --to sdf.html
  softflash lab report before after --to compared.html

Draws every experiment that has a result in the directory. Several directories stand side by side: \
figures with their ratios to those of the first, lines in one plot. The file is self-contained: no \
network, no scripts.")]
pub struct Report {
    /// Output directories of `lab run --out`
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Path of the report, or `-` for standard output; by default DIR/report.html, required with
    /// several directories
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Replace an existing file of --to; DIR/report.html is always replaced
    #[arg(long, requires = "to")]
    force: bool,
}

impl Report {
    /// Draws and writes the report.
    pub fn run(self) -> Result<(), CliError> {
        let (to, existing) = match (self.to, self.directories.as_slice()) {
            (Some(to), _) => (to, Existing::by_force(self.force)),
            (None, [directory]) => (directory.join("report.html"), Existing::Replaced),
            (None, _) => {
                let problem = "several directories: name the report's file, as --to compared.html";
                return Err(CliError::Usage(problem.to_owned()));
            }
        };
        // Before the work of drawing it. A pipe is opened once: its reader takes the end for that
        // of the report.
        let new = NewFile::at(&to, existing)?;
        let html = report::of_directories(&self.directories)?;
        new.fill(html.as_bytes())?;
        output::say(&format!("{}: written", to.display()));
        Ok(())
    }
}
