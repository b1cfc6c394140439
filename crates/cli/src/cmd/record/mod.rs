//! `softflash record`: records the requests of a running server's clients as a block trace.

mod events;
mod keys;
mod placement;
mod source;
mod tape;
mod volume;

use crate::client::{Access, Client, RespError, ServerAddress};
use clap::{Args, value_parser};
use events::Batch;
use keys::Keys;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output::{self, Form};
use softflash_console::plural::plural;
use softflash_console::values::parse_time;
use softflash_console::{host, interrupt};
use softflash_trace::Format;
use source::Source;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tape::{Counts, Tape};
use volume::Volume;

/// Pause between requests to a server that had few events. At 10 million requests per second the
/// server's default buffer is large enough for that.
const PAUSE: Duration = Duration::from_millis(5);

/// Arguments of `record`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash record requests.fio --duration 60s
  softflash record requests.csv.zst --connect 10.0.0.7:6379 \\
      --format alibaba --requests 1000000
  softflash record - --format mqsim | gzip > requests.trace.gz
  softflash record disk.csv.gz --volume disk --format msr

Ends after --duration or --requests, or at the first Ctrl-C: then the trace is complete and gets \
its name. A second Ctrl-C ends the program immediately and leaves no file. The name selects the \
compression: .gz, .zst or none. A file that exists is replaced with --force only.

Records the accesses to keys: each key gets a range of 4 KiB blocks for its value when it is first \
seen; reads, writes and deletions become reads, writes and trims of it. With --volume records the \
requests of NBD clients to a volume as they arrive.

Clients never wait for the recorder: if it is too slow, the server drops events and counts them, \
and the exit code is 1. Formats and their limits are described in docs/traces.md; `softflash \
replay` runs a trace on a simulated drive.")]
pub struct Record {
    /// Where to write the trace; `-` for standard output
    #[arg(value_name = "TRACE")]
    path: PathBuf,
    /// The server whose clients' requests are recorded
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379", value_parser = ServerAddress::parse)]
    connect: ServerAddress,
    #[command(flatten)]
    access: Access,
    /// Record the requests to this volume or snapshot (VOLUME@SNAPSHOT), instead of keys
    #[arg(long, value_name = "NAME")]
    volume: Option<String>,
    /// The format to write: msr, fio-v2, fio-v3, blkparse, vscsi, mqsim, alibaba or tencent
    #[arg(long, value_name = "FORMAT", default_value_t = Format::FioV3)]
    format: Format,
    /// Stop after this time, such as `90s` or `10m`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    duration: Option<Duration>,
    /// Stop after this many requests
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// Buffer of the server, in events
    #[arg(long, value_name = "N", default_value_t = 65_536, value_parser = value_parser!(u32).range(1..=262_144))]
    buffer: u32,
    /// Replace an existing file, once the new one is complete
    #[arg(long)]
    force: bool,
    /// Output format of the summary
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// The summary of a recording.
#[derive(Debug, Serialize)]
struct Tally<F: Serialize> {
    #[serde(flatten)]
    counts: Counts,
    #[serde(flatten)]
    figures: F,
    /// Events that the server dropped.
    dropped: u64,
}

/// A recording under way.
struct Recording<S, W: Write> {
    source: S,
    tape: Tape<W>,
    dropped: u64,
}

/// How a recording ended.
struct Ended<S> {
    source: S,
    counts: Counts,
    dropped: u64,
    /// The server has disconnected.
    lost: Option<RespError>,
}

impl<S: Source, W: Write> Recording<S, W> {
    fn write(&mut self, batch: &Batch<S::Event>) -> io::Result<()> {
        for event in &batch.events {
            if self.tape.is_full() {
                // Later events are not part of the trace, and neither are drops after them.
                return Ok(());
            }
            self.source.put(event, &mut self.tape)?;
        }
        self.dropped += if self.tape.is_full() { 0 } else { batch.dropped };
        Ok(())
    }
}

impl Record {
    /// Writes the trace.
    pub fn run(self) -> Result<(), CliError> {
        match self.volume.clone() {
            Some(volume) => self.run_of(Volume::new(volume)),
            None => self.run_of(Keys::default()),
        }
    }

    fn run_of<S: Source>(self, source: S) -> Result<(), CliError> {
        let mut new = NewFile::at(&self.path, Existing::by_force(self.force))?;
        if self.output == Form::Json {
            new.check_apart_from_results()?;
        }
        let stop = interrupt::flag(new.temporary().map(Path::to_owned))?;
        let (file, ended) = self.record(source, new.create()?, new.name(), &stop)?;
        let name = new.name().display().to_string();
        new.complete(&file)?;
        self.tell(ended, &name)
    }

    /// Records until the end; `name` is the output's name in messages.
    fn record<S: Source, W: Write>(
        &self,
        source: S,
        output: W,
        name: &Path,
        stop: &AtomicBool,
    ) -> Result<(W, Ended<S>), CliError> {
        let mut client = self.access.connect(&self.connect)?;
        events::start(&mut client, &source, self.buffer)?;
        let tape = Tape::begin(output, self.format, &self.path, self.requests)
            .map_err(CliError::file(name))?;
        let mut recording = Recording { source, tape, dropped: 0 };
        let lost = self.follow(&mut client, stop, &mut recording, name)?;
        let Recording { source, tape, dropped } = recording;
        let (output, counts) = tape.finish().map_err(CliError::file(name))?;
        Ok((output, Ended { source, counts, dropped, lost }))
    }

    /// Takes events and writes requests; returns the error with which the server disconnected, if
    /// it did.
    fn follow<S: Source, W: Write>(
        &self,
        client: &mut Client,
        stop: &AtomicBool,
        recording: &mut Recording<S, W>,
        name: &Path,
    ) -> Result<Option<RespError>, CliError> {
        let bar = output::progress(self.requests.unwrap_or(0), "requests");
        let began = host::now();
        loop {
            let is_over = self.duration.is_some_and(|duration| began.elapsed() >= duration);
            let is_last = is_over || stop.load(Ordering::Relaxed);
            let batch = match is_last {
                true => events::take_last::<S>(client, self.buffer),
                false => events::take::<S>(client, events::BATCH_EVENTS),
            };
            let batch = match batch {
                Ok(batch) => batch,
                Err(error) => return Ok(Some(error)),
            };
            recording.write(&batch).map_err(CliError::file(name))?;
            bar.set_position(recording.tape.requests());
            if is_last || recording.tape.is_full() {
                bar.finish_and_clear();
                return Ok(None);
            }
            if batch.events.len() < events::BATCH_EVENTS as usize {
                pause();
            }
        }
    }

    /// Prints the summary; fails if requests are missing.
    fn tell<S: Source>(&self, ended: Ended<S>, name: &str) -> Result<(), CliError> {
        let Ended { source, counts, dropped, lost } = ended;
        match self.output {
            Form::Json => output::json(&Tally { counts, figures: source.figures(), dropped })?,
            Form::Table => {
                let (of, more) = source.tell();
                for (left_out, kind) in
                    [(counts.left_out.trims, "trim"), (counts.left_out.flushes, "flush")]
                {
                    if left_out > 0 {
                        let (left_out, format) = (plural(left_out, kind), self.format);
                        output::say(&format!("left out, because {format} has none: {left_out}"));
                    }
                }
                more.iter().for_each(|line| output::say(line));
                let Counts { requests, reads, writes, trims, flushes, .. } = counts;
                let [requests, reads, writes, trims, flushes] = [
                    (requests, "request"),
                    (reads, "read"),
                    (writes, "write"),
                    (trims, "trim"),
                    (flushes, "flush"),
                ]
                .map(|(count, kind)| plural(count, kind));
                output::say(&format!(
                    "{name}: {requests} ({reads}, {writes}, {trims}, {flushes}) of {of}"
                ));
            }
        }
        if let Some(error) = lost {
            return Err(CliError::Failed(format!("{error}; the trace ends there")));
        }
        if dropped > 0 {
            return Err(CliError::Failed(format!(
                "the trace lacks {dropped} requests that the server dropped because the recorder was too slow: raise \
                 --buffer, write a plain file, or run the recorder on another machine"
            )));
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the command may block its own thread")]
fn pause() {
    std::thread::sleep(PAUSE);
}
