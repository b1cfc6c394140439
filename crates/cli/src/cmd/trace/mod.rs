//! `softflash trace`

mod convert;
mod summary;

use crate::error::CliError;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressBarIter};
use softflash_trace::{Format, ReadOptions, Reader, Tally};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Arguments of `trace`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash trace summary disk.csv.gz
  softflash trace convert disk.csv.gz disk.fio --to fio-v3 --wrap 64GiB

Formats: msr, fio-v2, fio-v3, blkparse, vscsi, mqsim, alibaba, tencent; see docs/traces.md.")]
pub struct Trace {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Say what a trace asks of a device: sizes, rates, footprint, reuse
    Summary(summary::Summarize),
    /// Write a trace in another format, and change it on the way
    Convert(convert::Convert),
}

impl Trace {
    /// Reads the trace and prints or writes.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Summary(summary) => summary.run(),
            What::Convert(convert) => convert.run(),
        }
    }
}

/// The trace that is read.
#[derive(Debug, Args)]
struct Source {
    /// The trace, plain, gzip or zstd; `-` for standard input
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Its format; known by its first lines unless said
    #[arg(long, value_name = "FORMAT", visible_alias = "format")]
    from: Option<Format>,
    /// Fail at the first malformed line, instead of counting and going on
    #[arg(long)]
    strict: bool,
    /// Unit of the times of vscsi
    #[arg(long, value_enum, value_name = "UNIT", default_value_t)]
    vscsi_tick: Tick,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Tick {
    /// Seconds
    #[default]
    S,
    /// Milliseconds
    Ms,
    /// Microseconds
    Us,
    /// Nanoseconds
    Ns,
}

impl Tick {
    /// Its length.
    pub fn ns(self) -> u64 {
        match self {
            Tick::S => 1_000_000_000,
            Tick::Ms => 1_000_000,
            Tick::Us => 1000,
            Tick::Ns => 1,
        }
    }
}

/// A trace's bytes, on their way past a progress bar.
pub type Input = ProgressBarIter<Box<dyn Read>>;

impl Source {
    /// Begins to read it.
    fn open(&self) -> Result<(Reader<Input>, ProgressBar), CliError> {
        let options = ReadOptions {
            format: self.from,
            lenient: !self.strict,
            vscsi_tick_ns: self.vscsi_tick.ns(),
        };
        open(&self.path, options)
    }
}

/// Begins to read a trace, under a progress bar that goes by bytes of the file.
pub fn open(path: &Path, options: ReadOptions) -> Result<(Reader<Input>, ProgressBar), CliError> {
    let (input, bytes): (Box<dyn Read>, u64) = if is_standard(path) {
        (Box::new(io::stdin()), 0)
    } else {
        let file = File::open(path).map_err(CliError::file(path))?;
        let metadata = file.metadata().map_err(CliError::file(path))?;
        // A pipe or a device has no length to go by.
        (Box::new(file), if metadata.is_file() { metadata.len() } else { 0 })
    };
    let bar = output::progress(bytes, "bytes");
    let name = path.display().to_string();
    let reader = Reader::open(bar.wrap_read(input), &name, options)?;
    Ok((reader, bar))
}

/// Whether a path stands for standard input or output.
fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What a reader has to say of a trace that is not quite right.
pub fn remarks(tally: &Tally) -> Vec<String> {
    let mut remarks = Vec::new();
    if tally.malformed > 0 {
        remarks.push(format!("{} malformed lines were left out; the first:", tally.malformed));
        remarks.extend(tally.first_malformed.iter().map(|malformed| format!("  {malformed}")));
    }
    if tally.out_of_order > 0 {
        remarks.push(format!(
            "{} requests ran back in time and were given the time of the one before",
            tally.out_of_order
        ));
    }
    remarks
}
