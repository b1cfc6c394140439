//! `softflash load`: reads keys from a file that `dump` wrote.

use crate::client::{Client, Reply, RespError};
use crate::cmd::dump::{End, Place};
use crate::cmd::volume::import::{Imported, Input, Source as VolumeSource};
use crate::directories;
use crate::dump_file::{DumpError, DumpReader, Record};
use crate::volume_export::{ExportError, ExportReader, MAGIC};
use clap::Args;
use futures_util::stream::{FuturesUnordered, StreamExt};
use indicatif::ProgressBar;
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::input;
use softflash_console::interrupt;
use softflash_console::new_file::is_standard;
use softflash_console::output;
use softflash_console::plural::plural;
use softflash_datadir::{DataDirError, OpenDir};
use softflash_store::clock::{NOTABLE_LEAD_MS, span};
use softflash_store::value::MAX_VALUE_BYTES;
use softflash_store::{CommitToken, Entry, Store, StoreError, StoreOptions};
use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash load ./softflash-data keys.sfdump
  softflash load --resp 127.0.0.1:6379 keys.sfdump
  softflash load ./softflash-data all.sfdump --volumes
  ssh old softflash dump ./softflash-data - | softflash load ./softflash-data -

The file is `-` for standard input. It may hold several dumps, one behind the other. Existing keys are overwritten, other keys stay. Keys that have expired since the dump are left \
out, by the clock of the store. Loading a file twice has the same result as loading it once; after an interruption (Ctrl-C, \
a damaged file), run it again, or continue with --skip and the number that was shown. Volumes whose \
names exist are refused before anything changes; once the volumes are loaded, continue without \
--volumes.")]
pub struct Load {
    #[command(flatten)]
    place: Place,
    /// Create the volumes of a dump with volumes as well, before the keys; all of them or none
    #[arg(long, conflicts_with = "resp")]
    volumes: bool,
    /// Number of records to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip: u64,
}

/// Bytes in flight to a server or store.
const WINDOW_BYTES: usize = 4 << 20;
/// Records in flight.
const WINDOW_RECORDS: usize = 256;

type Reader = DumpReader<Input>;

/// The clock by which the keys of the store expire.
struct StoreClock {
    shown_ms: u64,
    at: Instant,
}

impl StoreClock {
    /// A clock that shows this time now.
    fn showing(shown_ms: u64) -> StoreClock {
        let lead_ms = shown_ms.saturating_sub(host::wall_ms());
        if lead_ms >= NOTABLE_LEAD_MS {
            output::say(&format!(
                "the store's clock is {} ahead of this machine's, and keys expire by it (`softflash \
                 clock` shows both)",
                span(lead_ms)
            ));
        }
        StoreClock { shown_ms, at: host::now() }
    }

    fn now_ms(&self) -> u64 {
        let passed_ms = self.at.elapsed().as_millis();
        self.shown_ms.saturating_add(u64::try_from(passed_ms).unwrap_or(u64::MAX))
    }
}

/// The remaining records of a file.
struct Source<'a> {
    path: &'a Path,
    reader: Reader,
    bar: ProgressBar,
    clock: StoreClock,
    loaded: u64,
    expired: u64,
    /// Set by a signal.
    interrupted: Arc<AtomicBool>,
    /// Why there is no next record, if the file does not end.
    failed: Option<CliError>,
}

impl Source<'_> {
    /// The records after the first `skip` of a dump that begins at this offset.
    fn open(
        (path, input, at): (&Path, Input, u64),
        bar: ProgressBar,
        skip: u64,
    ) -> Result<Source<'_>, CliError> {
        let reader = DumpReader::begin(input, at).map_err(DumpError::at(path))?;
        let clock = StoreClock::showing(host::wall_ms());
        let interrupted = interrupt::flag(None)?;
        let (loaded, expired, failed) = (0, 0, None);
        let mut source = Source { path, reader, bar, clock, loaded, expired, interrupted, failed };
        for skipped in 0..skip {
            if source.read()?.is_none() {
                return Err(CliError::Failed(format!(
                    "{}: --skip {skip} is beyond its end: it has {}",
                    path.display(),
                    plural(skipped, "record")
                )));
            }
        }
        Ok(source)
    }

    fn read(&mut self) -> Result<Option<Record>, CliError> {
        Ok(self.reader.read().map_err(DumpError::at(self.path))?)
    }

    /// The next record that has not expired; none at the end of the file, at a failure, and after a
    /// signal.
    fn next(&mut self) -> Option<Record> {
        self.bar.set_position(self.reader.bytes_read());
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                self.failed = Some(CliError::Failed("interrupted".to_owned()));
                return None;
            }
            let record = match self.read() {
                Ok(record) => record?,
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            };
            if record.expires_at_ms == 0 || record.expires_at_ms > self.clock.now_ms() {
                self.loaded += 1;
                return Some(record);
            }
            self.expired += 1;
        }
    }

    /// After the last record: the failure that has ended them.
    fn ended(&mut self) -> Result<(), CliError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl Load {
    /// Reads the file into the store.
    pub fn run(self) -> Result<(), CliError> {
        let (to, path) = self.place.resolve()?;
        let opened = match to {
            End::Directory(directory) => {
                let instead = "load through it with --resp HOST:PORT";
                Some(directories::or_instead(OpenDir::open(directory), instead)?)
            }
            End::Server(_) => None,
        };
        let (input, at, bar) = self.volumes(path, opened.as_ref())?;
        let has_volumes = self.volumes;
        let mut source = Source::open((path, input, at), bar, self.skip)?;
        // Records count only once they are known to be durable.
        let mut safe = self.skip;
        let loaded = match to {
            End::Directory(_) => opened.as_ref().map_or(Ok(()), |directory| {
                let safe = &mut safe;
                directory.with_store(
                    &StoreOptions { max_value_bytes: MAX_VALUE_BYTES, ..StoreOptions::default() },
                    |store| async { load_store(store, &directory.path, &mut source, safe).await },
                )
            }),
            End::Server(address) => {
                let client = self.place.access.connect(address)?;
                load_server(client, &mut source, &mut safe)
            }
        };
        source.bar.finish_and_clear();
        match loaded {
            Ok(()) => {
                let expired = match source.expired {
                    0 => String::new(),
                    count => format!(", {count} had expired"),
                };
                let loaded = plural(source.loaded, "key");
                output::say(&format!("{}: {loaded} loaded{expired}", path.display()));
                Ok(())
            }
            Err(error) => {
                let again = match has_volumes {
                    true => ", and all volumes: run it again without --volumes",
                    false => ": run it again",
                };
                Err(CliError::Failed(format!(
                    "{error}; {safe} records are loaded{again}, or continue with --skip {safe}"
                )))
            }
        }
    }

    /// Loads the volumes of a file, or passes them; returns the keys behind them, and where they
    /// begin.
    fn volumes(
        &self,
        path: &Path,
        directory: Option<&OpenDir>,
    ) -> Result<(Input, u64, ProgressBar), CliError> {
        let (input, bytes, has_volumes) = open(path)?;
        let bar = || output::progress(bytes, "bytes");
        if !has_volumes && self.volumes {
            return Err(CliError::Failed(format!(
                "{}: it has no volumes: it was not written with `softflash dump --volumes`; leave \
                 --volumes out, or import an export with `softflash volume import`",
                path.display()
            )));
        }
        if !has_volumes {
            return Ok((input, 0, bar()));
        }
        let reader = ExportReader::begin(input).map_err(ExportError::at(path))?;
        let (volumes, interrupted) = (reader.volumes().len(), interrupt::flag(None)?);
        let mut source = VolumeSource { path, reader, bar: bar(), interrupted, has_more: true };
        match directory.filter(|_| self.volumes && volumes > 0) {
            Some(directory) => {
                let into = Imported { directory: &directory.path, revert: false, force: false };
                into.import(directory, &mut source)?;
            }
            None => {
                source.pass()?;
                if volumes > 0 {
                    let volumes = plural(u64::try_from(volumes).unwrap_or(u64::MAX), "volume");
                    output::say(&format!(
                        "{}: {volumes} left out; --volumes loads them into a data directory",
                        path.display()
                    ));
                }
            }
        }
        source.bar.finish_and_clear();
        let (input, at) = source.reader.into_rest();
        Ok((input, at, bar()))
    }
}

/// Opens a file; returns it with its length, and whether volumes come before the keys.
fn open(path: &Path) -> Result<(Input, u64, bool), CliError> {
    let (mut file, bytes): (Box<dyn Read>, u64) = if is_standard(path) {
        (Box::new(input::standard("the dump")?), 0)
    } else {
        let file = File::open(path).map_err(CliError::file(path))?;
        let bytes = file.metadata().map_err(CliError::file(path))?.len();
        (Box::new(file), bytes)
    };
    let mut first = Vec::new();
    let read = (&mut file).take(MAGIC.len() as u64).read_to_end(&mut first);
    read.map_err(CliError::file(path))?;
    let has_volumes = first == MAGIC;
    let whole: Box<dyn Read> = Box::new(Cursor::new(first).chain(file));
    Ok((BufReader::with_capacity(1 << 20, whole), bytes, has_volumes))
}

async fn load_store(
    store: Store,
    path: &Path,
    source: &mut Source<'_>,
    safe: &mut u64,
) -> Result<(), CliError> {
    let failed = |error| DataDirError::store(path)(error);
    // What a server would use: the wall clock, or the recorded one if that is later.
    let lead_ms = store.stats().await.map_err(failed)?.clock_lead_ms;
    source.clock = StoreClock::showing(host::wall_ms() + lead_ms);
    let mut next = source.next();
    loop {
        let mut writes = FuturesUnordered::new();
        // Concurrent writes have no order, so a window must not contain a key twice.
        let mut keys = HashSet::new();
        let mut bytes = 0;
        while bytes < WINDOW_BYTES && writes.len() < WINDOW_RECORDS {
            match next.take_if(|record| keys.insert(record.key.clone())) {
                Some(record) => {
                    bytes += record.key.len() + record.value.len();
                    writes.push(put(&store, record));
                    next = source.next();
                }
                None => break,
            }
        }
        if writes.is_empty() {
            return source.ended();
        }
        let mut token = CommitToken::default();
        while let Some(written) = writes.next().await {
            token.merge(&written.map_err(failed)?);
        }
        store.durable(&token).await.map_err(failed)?;
        *safe = source.reader.records() - u64::from(next.is_some());
    }
}

async fn put(store: &Store, record: Record) -> Result<CommitToken, StoreError> {
    let mut transaction = store.begin();
    let entry = Entry { expires_at_ms: record.expires_at_ms, ..Entry::new(record.value) };
    transaction.put(record.key, entry)?;
    store.commit(transaction).await
}

fn load_server(
    mut client: Client,
    source: &mut Source<'_>,
    safe: &mut u64,
) -> Result<(), CliError> {
    source.clock = StoreClock::showing(server_ms(&mut client)?);
    loop {
        let mut sent = 0;
        while client.queued_bytes() < WINDOW_BYTES && sent < WINDOW_RECORDS {
            let Some(Record { key, value, expires_at_ms }) = source.next() else { break };
            match expires_at_ms {
                0 => client.queue(&[b"SET", &key, &value]),
                at => client.queue(&[b"SET", &key, &value, b"PXAT", at.to_string().as_bytes()]),
            }
            sent += 1;
        }
        if sent == 0 {
            return source.ended();
        }
        client.send()?;
        for _ in 0..sent {
            match client.receive()? {
                Reply::Status(_) => {}
                _ => return Err(client.unexpected("SET").into()),
            }
        }
        *safe = source.reader.records();
    }
}

/// What the server's clock shows; that of this machine where the user may not ask.
fn server_ms(client: &mut Client) -> Result<u64, CliError> {
    let time = match client.ask(&[b"TIME"]) {
        Err(RespError::Refused { .. }) => return Ok(host::wall_ms()),
        time => time?,
    };
    time_ms(&time).ok_or_else(|| client.unexpected("TIME").into())
}

/// Seconds and microseconds as milliseconds.
fn time_ms(time: &Reply) -> Option<u64> {
    let Reply::Array(parts) = time else { return None };
    let [Reply::Bulk(Some(seconds)), Reply::Bulk(Some(micros))] = parts.as_slice() else {
        return None;
    };
    let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u64>().ok();
    Some(number(seconds)?.checked_mul(1000)? + number(micros)? / 1000)
}
