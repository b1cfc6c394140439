//! `softflash dump`: writes all keys to a file.

use super::repair::{FOUND, lines, on_device, unproven_shards};
use super::volume::export::{Buffered, Exported};
use crate::client::{Access, Client, Reply, ServerAddress};
use crate::directories::{self, block_on};
use crate::dump_file::{DumpError, DumpWriter, Record};
use crate::volume_export::{ExportError, ExportWriter};
use bytes::Bytes;
use clap::Args;
use indicatif::ProgressBar;
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output;
use softflash_console::plural::plural;
use softflash_datadir::{DataDirError, OpenDir, with_domains};
use softflash_runtime::RuntimeHandle;
use softflash_store::repair::{self, OnLogLoss};
use softflash_store::{Entry, Export, StoreError};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Source or destination of keys: a data directory that no server has open, or a running server.
#[derive(Debug, Args)]
pub struct Place {
    /// A running server instead of a data directory
    #[arg(long, value_name = "HOST:PORT", value_parser = ServerAddress::parse)]
    pub resp: Option<ServerAddress>,
    #[command(flatten)]
    pub access: Access,
    /// The data directory (not with --resp), then the dump file, `-` for standard input or output
    #[arg(value_name = "[DIR] FILE", required = true, num_args = 1..=2)]
    pub paths: Vec<PathBuf>,
}

/// The two kinds of a place.
pub enum End<'a> {
    /// A data directory.
    Directory(&'a Path),
    /// A server.
    Server(&'a ServerAddress),
}

impl Place {
    /// The place and the file, or an error that shows the correct usage.
    pub fn resolve(&self) -> Result<(End<'_>, &Path), CliError> {
        match (&self.resp, self.paths.as_slice()) {
            (Some(address), [file]) => Ok((End::Server(address), file)),
            (None, _) if self.access.is_given() => Err(CliError::Usage(
                "--tls and --password-file are for a running server: give --resp HOST:PORT"
                    .to_owned(),
            )),
            (None, [directory, file]) => Ok((End::Directory(directory), file)),
            (Some(_), _) => Err(CliError::Usage(
                "with --resp HOST:PORT give only the file, not a directory".to_owned(),
            )),
            (None, _) => Err(CliError::Usage(
                "give a data directory and a file, or --resp HOST:PORT and a file".to_owned(),
            )),
        }
    }
}

/// Arguments of `dump`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash dump ./softflash-data keys.sfdump
  softflash dump --resp 127.0.0.1:6379 keys.sfdump --force
  softflash dump ./softflash-data - | zstd > keys.sfdump.zst
  softflash dump ./softflash-data all.sfdump --volumes
  softflash dump /mnt/failing/data keys.sfdump --salvage

Reads the data directory and changes nothing in it, so that it may be on a read-only file system. \
The file gets its name only when it is complete. The format is described in docs/dump-format.md. \
The dump of a running server is not a snapshot: keys written meanwhile have their old or new \
state. --volumes needs a stopped server; of a running one, copy snapshots of volumes by NBD.")]
pub struct Dump {
    #[command(flatten)]
    place: Place,
    /// Write the volumes of a data directory as well, with snapshots and clones, before the keys
    #[arg(long, conflicts_with_all = ["resp", "salvage"])]
    volumes: bool,
    /// Replace an existing file, once the new one is complete
    #[arg(long)]
    force: bool,
    /// Of a damaged data directory, leave out what is lost, and name it; exit code 1 if keys are
    #[arg(long, conflicts_with = "resp")]
    salvage: bool,
}

/// Keys per page of a scan.
const PAGE: usize = 512;

type Output = DumpWriter<Buffered>;

impl Dump {
    /// Writes the dump.
    pub fn run(self) -> Result<(), CliError> {
        let (from, path) = self.place.resolve()?;
        let mut new = NewFile::removed_on_signal(path, Existing::by_force(self.force))?;
        let mut has_loss = false;
        let (file, records, volumes) = self.write(&from, &mut new, &mut has_loss)?;
        let name = new.name().display().to_string();
        new.complete(&file)?;
        let keys = plural(records, "key");
        if has_loss {
            let problem = "what is named above is lost, or may be";
            return Err(CliError::Failed(format!(
                "{name}: {keys}, all that can be read; {problem}"
            )));
        }
        let volumes = volumes.map(|volumes| format!(", {}", plural(volumes, "volume")));
        output::say(&format!("{name}: {keys}{}", volumes.unwrap_or_default()));
        Ok(())
    }

    fn write(
        &self,
        from: &End<'_>,
        new: &mut NewFile,
        has_loss: &mut bool,
    ) -> Result<(File, u64, Option<u64>), CliError> {
        let path = new.name().to_owned();
        let begin = |file: Buffered| -> Result<Output, CliError> {
            Ok(DumpWriter::begin(file, host::wall_ms()).map_err(DumpError::at(&path))?)
        };
        let mut volumes = None;
        let sink = |out: &mut Output, record: &Record| {
            Ok(out.write(record).map_err(DumpError::at(&path))?)
        };
        let out = match from {
            End::Directory(directory) => {
                let instead = "dump from the server with --resp HOST:PORT";
                let directory = match self.salvage || self.volumes {
                    true => directories::or_instead(OpenDir::open_to_try(directory), instead)?,
                    false => directories::or_instead(OpenDir::open_to_look(directory), instead)?,
                };
                *has_loss = self.salvage && salvage(&directory)?;
                let file = match self.volumes {
                    true => {
                        let (file, of_volumes) = write_volumes(&directory, new)?;
                        volumes = Some(of_volumes);
                        file
                    }
                    false => buffered(new.create()?),
                };
                let mut out = begin(file)?;
                let to = &mut out;
                block_on(|runtime| async move {
                    dump_store(&directory, &runtime, &mut |record| sink(to, record)).await
                })?;
                out
            }
            End::Server(address) => {
                let client = self.place.access.connect(address)?;
                let mut out = begin(buffered(new.create()?))?;
                dump_server(client, &mut |record| sink(&mut out, record))?;
                out
            }
        };
        let (buffered, records) = out.finish().map_err(DumpError::at(&path))?;
        let file = buffered
            .into_inner()
            .map_err(|error| CliError::File { path, source: error.into_error() })?;
        Ok((file, records, volumes))
    }
}

fn buffered(file: File) -> Buffered {
    BufWriter::with_capacity(1 << 20, file)
}

/// Writes all volumes, before the keys; returns how many.
fn write_volumes(directory: &OpenDir, new: &mut NewFile) -> Result<(Buffered, u64), CliError> {
    if directory.domains.is_empty() {
        let path = new.name().to_owned();
        let none = ExportWriter::begin(buffered(new.create()?), &[]).and_then(ExportWriter::finish);
        let (file, _) = none.map_err(ExportError::at(&path))?;
        return Ok((file, 0));
    }
    let path = &directory.path;
    let all =
        Exported { directory: path, names: &[], from: None, is_quick: false, may_be_none: true };
    let (file, totals) = with_domains(directory, async |domains| all.write(domains, new).await)?;
    Ok((file, totals.volumes))
}

type Sink<'a> = dyn FnMut(&Record) -> Result<(), CliError> + 'a;

/// An error of the store, or of the file.
enum Failed {
    Store(StoreError),
    File(CliError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Failed {
        Failed::Store(error)
    }
}

/// Repairs the store in memory, gives up what is lost, and names it. Returns whether anything is,
/// or may be: of a shard that a cut of the device took, nothing may be left that tells.
fn salvage(directory: &OpenDir) -> Result<bool, CliError> {
    let cut = softflash_device::cut_of(&directory.device_path())?;
    let unproven = cut.iter().flat_map(|cut| unproven_shards(directory, &cut.units));
    let unproven: Vec<String> = unproven.collect();
    let of_device = cut.iter().map(|cut| &cut.remark).chain(&unproven);
    of_device.for_each(|problem| output::say(&format!("{FOUND}: {problem}")));
    let plan = on_device(directory, async |device, layout, runtime| {
        repair::plan(device, layout, runtime, OnLogLoss::Accept).await
    })?;
    let found = lines(&plan.report, FOUND);
    found.iter().for_each(|line| output::say(line));
    let done = on_device(directory, async |device, layout, runtime| {
        repair::carry_out(&plan, device, layout, runtime).await
    })?;
    match done.failures.first() {
        Some(failure) => Err(CliError::Failed(format!("{}: {failure}", directory.path.display()))),
        None => Ok(!unproven.is_empty() || plan.report.has_loss() || done.has_loss()),
    }
}

/// Slice by slice, in key order.
async fn dump_store(
    directory: &OpenDir,
    runtime: &RuntimeHandle,
    sink: &mut Sink<'_>,
) -> Result<(), CliError> {
    let OpenDir { path, device, layout, .. } = directory;
    let export = Export::begin(device, layout, runtime).await.map_err(DataDirError::store(path))?;
    let bar = output::progress(export.keys(), "keys");
    let mut write = |key, entry: Entry| {
        let (value, expires_at_ms) = (entry.value.to_bytes(), entry.expires_at_ms);
        sink(&Record { key, value, expires_at_ms }).map_err(Failed::File)?;
        bar.inc(1);
        Ok(())
    };
    let dumped = export.each(&mut write).await;
    bar.finish_and_clear();
    dumped.map_err(|failed| match failed {
        Failed::File(error) => error,
        Failed::Store(error) => DataDirError::store(path)(error).into(),
    })
}

/// SCAN, and one pipeline of values and expiries for each page.
fn dump_server(mut client: Client, sink: &mut Sink<'_>) -> Result<(), CliError> {
    let total = match client.ask(&[b"DBSIZE"])? {
        Reply::Integer(count) => u64::try_from(count).unwrap_or(0),
        _ => return Err(client.unexpected("DBSIZE").into()),
    };
    let bar = output::progress(total, "keys");
    let mut cursor = Bytes::from_static(b"0");
    loop {
        let page = client.ask(&[b"SCAN", &cursor, b"COUNT", PAGE.to_string().as_bytes()])?;
        let (next, keys) = scan_page(page).ok_or_else(|| client.unexpected("SCAN"))?;
        // Values may be large: a few at a time.
        for keys in keys.chunks(16) {
            dump_keys(&mut client, keys, &bar, sink)?;
        }
        if next == b"0"[..] {
            break;
        }
        cursor = next;
    }
    bar.finish_and_clear();
    Ok(())
}

fn dump_keys(
    client: &mut Client,
    keys: &[Bytes],
    bar: &ProgressBar,
    sink: &mut Sink<'_>,
) -> Result<(), CliError> {
    for key in keys {
        client.queue(&[b"PEXPIRETIME", key]);
        client.queue(&[b"GET", key]);
    }
    client.send()?;
    for key in keys {
        let (expiry, value) = (client.receive()?, client.receive()?);
        match (expiry, value) {
            // Deleted or expired since the scan.
            (Reply::Integer(_), Reply::Bulk(None)) => {}
            (Reply::Integer(expiry), Reply::Bulk(Some(value))) => {
                let expires_at_ms = u64::try_from(expiry).unwrap_or(0);
                sink(&Record { key: key.clone(), value, expires_at_ms })?;
                bar.inc(1);
            }
            _ => return Err(client.unexpected("GET").into()),
        }
    }
    Ok(())
}

/// The next cursor and the keys.
fn scan_page(reply: Reply) -> Option<(Bytes, Vec<Bytes>)> {
    let Reply::Array(parts) = reply else { return None };
    let [Reply::Bulk(Some(cursor)), Reply::Array(keys)] = parts.as_slice() else { return None };
    let key = |reply: &Reply| match reply {
        Reply::Bulk(key) => key.clone(),
        _ => None,
    };
    Some((cursor.clone(), keys.iter().map(key).collect::<Option<_>>()?))
}
