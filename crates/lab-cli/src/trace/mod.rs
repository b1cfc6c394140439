//! `softflash trace`: summarizes or converts a block trace.

mod convert;
mod summary;

use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressBarIter};
use softflash_console::CliError;
use softflash_console::input;
use softflash_console::new_file::is_standard;
use softflash_console::output;
use softflash_trace::{Format, Jump, ReadOptions, Reader, Tally};
use std::fs::File;
use std::io::Read;
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
    /// Summarize a trace: sizes, rates, footprint, reuse
    Summary(summary::Summarize),
    /// Convert a trace to another format, with changes
    Convert(convert::Convert),
}

impl Trace {
    /// Reads the trace and prints or writes the result.
    pub fn run(self) -> Result<(), CliError> {
        match self.what {
            What::Summary(summary) => summary.run(),
            What::Convert(convert) => convert.run(),
        }
    }
}

/// The input trace.
#[derive(Debug, Args)]
struct Source {
    /// The trace, plain, gzip or zstd; `-` for standard input
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// Format of the trace; by default detected from its first lines
    #[arg(long, value_name = "FORMAT", visible_alias = "format")]
    from: Option<Format>,
    /// Fail at the first malformed line, instead of counting such lines
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

/// A trace's bytes, with a progress bar.
pub type Input = ProgressBarIter<Box<dyn Read>>;

impl Source {
    /// Opens the trace.
    fn open(&self) -> Result<(Reader<Input>, ProgressBar), CliError> {
        let options = ReadOptions {
            format: self.from,
            lenient: !self.strict,
            vscsi_tick_ns: self.vscsi_tick.ns(),
        };
        open(&self.path, options)
    }
}

/// Opens a trace, with a progress bar of the file's bytes.
pub fn open(path: &Path, options: ReadOptions) -> Result<(Reader<Input>, ProgressBar), CliError> {
    let (input, bytes): (Box<dyn Read>, u64) = if is_standard(path) {
        (Box::new(input::standard("the trace")?), 0)
    } else {
        let file = File::open(path).map_err(CliError::file(path))?;
        let metadata = file.metadata().map_err(CliError::file(path))?;
        // A pipe or a device has no known length.
        (Box::new(file), if metadata.is_file() { metadata.len() } else { 0 })
    };
    let bar = output::progress(bytes, "bytes");
    let name = path.display().to_string();
    let reader = Reader::open(bar.wrap_read(input), &name, options)?;
    Ok((reader, bar))
}

/// A reader's warnings about the trace.
pub fn remarks(tally: &Tally) -> Vec<String> {
    let mut remarks = Vec::new();
    if tally.malformed > 0 {
        remarks.push(format!("{} malformed lines were left out; the first:", tally.malformed));
        remarks.extend(tally.first_malformed.iter().map(|malformed| format!("  {malformed}")));
    }
    if let Some(Jump { line, ns }) = tally.first_jump {
        let days = ns / 86_400_000_000_000;
        remarks.push(format!(
            "{} requests come more than 30 days after the one before; the first at line {line}, after {days} days",
            tally.jumps
        ));
    }
    if tally.out_of_order > 0 {
        remarks.push(format!(
            "{} requests had a time before the previous request and were given its time",
            tally.out_of_order
        ));
    }
    remarks
}
