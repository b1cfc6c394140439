//! `softflash trace convert`: converts a trace to another format, with changes.

use super::{Source, remarks};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output::{self, Form};
use softflash_console::plural::plural;
use softflash_console::sizes::parse_size;
use softflash_trace::adapt::{AdaptError, Item};
use softflash_trace::{Compression, Format, LeftOut, Tally, TraceError, TraceExt, Writer};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash trace convert disk.csv.gz disk.fio --to fio-v3
  softflash trace convert disk.csv.gz half.csv.zst --to alibaba --speed 2 \\
      --wrap 64GiB
  softflash trace convert disk.csv four.trace --to mqsim --copies 4 \\
      --copy-offset 32GiB
  blkparse sda | softflash trace convert - - --from blkparse --to msr \\
      | gzip > sda.csv.gz

Changes apply in this order: speed, copies, wrap, device size. The name of the output selects the \
compression: .gz, .zst or none. The file gets its name only when it is complete; one that exists \
is replaced with --force only. docs/traces.md describes what each format cannot represent.")]
pub struct Convert {
    #[command(flatten)]
    source: Source,
    /// Where to write it; `-` for standard output
    #[arg(value_name = "OUTPUT")]
    to_path: PathBuf,
    /// Format to write
    #[arg(long, value_name = "FORMAT")]
    to: Format,
    /// Speed factor: 2 halves all times, 0.5 doubles them
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    speed: f64,
    /// Write every request this many times, each copy at an offset of --copy-offset
    #[arg(long, value_name = "N", default_value_t = 1, requires = "copy_offset")]
    copies: u32,
    /// Distance of the addresses of two copies
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    copy_offset: Option<u64>,
    /// Fold addresses onto a device of this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    wrap: Option<u64>,
    /// Fail at a request that ends beyond a device of this size
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    device_size: Option<u64>,
    /// Replace an existing file, once the new one is complete
    #[arg(long)]
    force: bool,
    /// Output format of the summary
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Report {
    from: Format,
    to: Format,
    requests_written: u64,
    left_out: LeftOut,
    tally: Tally,
}

impl Convert {
    /// Writes the trace.
    pub fn run(self) -> Result<(), CliError> {
        let existing = Existing::by_force(self.force);
        let mut new = NewFile::removed_on_signal(&self.to_path, existing)?;
        if self.output == Form::Json {
            new.check_apart_from_results()?;
        }
        let (file, report) = self.convert(new.create()?, new.name())?;
        new.complete(&file)?;
        self.tell(&report)
    }

    /// Reads, changes and writes the trace; `name` is the output's name in messages.
    fn convert<W: Write>(&self, output: W, name: &Path) -> Result<(W, Report), CliError> {
        let (mut reader, bar) = self.source.open()?;
        let compression = Compression::of_name(&self.to_path);
        let tick_ns = self.source.vscsi_tick.ns();
        let mut writer = Writer::with_vscsi_tick(output, self.to, compression, tick_ns)
            .map_err(CliError::file(name))?;
        let mut requests = 0_u64;
        for request in self.changed(reader.by_ref()).map_err(TraceError::from)? {
            writer.write(&request?).map_err(CliError::file(name))?;
            requests += 1;
        }
        let (output, left_out) = writer.finish().map_err(CliError::file(name))?;
        bar.finish_and_clear();
        let report = Report {
            from: reader.format(),
            to: self.to,
            requests_written: requests - left_out.trims - left_out.flushes,
            left_out,
            tally: reader.tally().clone(),
        };
        Ok((output, report))
    }

    /// The trace with the requested changes.
    fn changed<'a>(
        &self,
        trace: impl Iterator<Item = Item> + 'a,
    ) -> Result<Box<dyn Iterator<Item = Item> + 'a>, AdaptError> {
        let mut changed: Box<dyn Iterator<Item = Item> + 'a> =
            Box::new(trace.speed(self.speed)?.copies(self.copies, self.copy_offset.unwrap_or(0))?);
        if let Some(device_bytes) = self.wrap {
            changed = Box::new(changed.wrap(device_bytes)?);
        }
        if let Some(device_bytes) = self.device_size {
            changed = Box::new(changed.within(device_bytes));
        }
        Ok(changed)
    }

    fn tell(&self, report: &Report) -> Result<(), CliError> {
        if self.output == Form::Json {
            return output::json(report);
        }
        remarks(&report.tally).iter().for_each(|remark| output::say(remark));
        let LeftOut { trims, flushes } = report.left_out;
        if trims > 0 || flushes > 0 {
            let to = report.to;
            let (trims, flushes) = (plural(trims, "trim"), plural(flushes, "flush"));
            output::say(&format!("left out, because {to} has none: {trims}, {flushes}"));
        }
        let path = self.to_path.display();
        let requests = plural(report.requests_written, "request");
        output::say(&format!("{path}: {requests}, {} to {}", report.from, report.to));
        Ok(())
    }
}
