//! `softflash volume import`: creates the volumes of an export, or applies an increment.

use super::copying::count;
use super::import_checks::{Checked, Checks};
use super::unfinished;
use crate::directories;
use crate::volume_export::{Beginning, Change, Described, ExportError, ExportReader};
use clap::Args;
use indicatif::ProgressBar;
use softflash_base::cast::index;
use softflash_console::new_file::is_standard;
use softflash_console::plural::plural;
use softflash_console::question::confirm;
use softflash_console::sizes::human_bytes;
use softflash_console::{CliError, input, interrupt, output};
use softflash_datadir::{DataDirError, Domains, OpenDir, with_domains};
use softflash_volume::{Domain, Setting, VolumeError};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `volume import`.
#[derive(Debug, Args)]
pub struct Import {
    /// The data directory
    directory: PathBuf,
    /// The export to read, `-` for standard input
    #[arg(required_unless_present = "undo")]
    file: Option<PathBuf>,
    /// Set a volume back to the snapshot of an increment: what was written since is lost
    #[arg(long, conflicts_with = "undo")]
    revert: bool,
    /// Undo an import that was killed
    #[arg(long, conflicts_with = "file")]
    undo: bool,
    /// Do not ask
    #[arg(long)]
    force: bool,
}

/// A file with an export.
pub type Input = BufReader<Box<dyn Read>>;

/// An export that is read.
pub struct Source<'a> {
    /// Its file.
    pub path: &'a Path,
    /// Behind its descriptions.
    pub reader: ExportReader<Input>,
    /// Shows how much was read.
    pub bar: ProgressBar,
    /// A signal has asked for the end.
    pub interrupted: Arc<AtomicBool>,
    /// Whether something else follows the export.
    pub has_more: bool,
}

impl Source<'_> {
    fn open(path: &Path) -> Result<Source<'_>, CliError> {
        let (file, bytes): (Box<dyn Read>, u64) = if is_standard(path) {
            (Box::new(input::standard("the export")?), 0)
        } else {
            let file = File::open(path).map_err(CliError::file(path))?;
            let bytes = file.metadata().map_err(CliError::file(path))?.len();
            (Box::new(file), bytes)
        };
        let reader = ExportReader::begin(BufReader::with_capacity(1 << 20, file));
        let reader = reader.map_err(ExportError::at(path))?;
        let (bar, interrupted) = (output::progress(bytes, "bytes"), interrupt::flag(None)?);
        Ok(Source { path, reader, bar, interrupted, has_more: false })
    }

    fn change(&mut self) -> Result<Option<Change>, CliError> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(CliError::Failed("interrupted".to_owned()));
        }
        let change = self.reader.change().map_err(ExportError::at(self.path))?;
        self.bar.set_position(self.reader.bytes_read());
        Ok(change)
    }

    fn end(&mut self) -> Result<u64, CliError> {
        let ended = if self.has_more { self.reader.end() } else { self.reader.finish() };
        Ok(ended.map_err(ExportError::at(self.path))?.data_bytes)
    }

    /// Reads past the export.
    pub fn pass(&mut self) -> Result<(), CliError> {
        while !self.reader.is_at_end() {
            self.change()?;
        }
        self.end().map(|_| ())
    }
}

impl Import {
    /// Imports, or undoes an import.
    pub fn run(self) -> Result<(), CliError> {
        match &self.file {
            Some(file) => self.import(file),
            None => self.undo(),
        }
    }

    fn import(&self, file: &Path) -> Result<(), CliError> {
        let mut source = Source::open(file)?;
        self.volumes().import(&self.open()?, &mut source)
    }

    fn volumes(&self) -> Imported<'_> {
        Imported { directory: &self.directory, revert: self.revert, force: self.force }
    }

    fn undo(&self) -> Result<(), CliError> {
        let directory = self.open()?;
        let failed = || DataDirError::volume(&directory.path);
        let names = with_domains(&directory, async |domains| {
            domains.check_all(&directory.path)?;
            let works = unfinished::find(domains).await.map_err(failed())?;
            let works = works.ok_or_else(|| {
                let path = directory.path.display();
                CliError::Failed(format!("{path}: no import was interrupted"))
            })?;
            let names: Vec<&str> = works.iter().map(unfinished::Work::name).collect();
            let names = names.join("`, `");
            if !works.is_empty() && !self.force {
                confirm(&format!("undo the import of `{names}`?"))?;
            }
            unfinished::undo(domains, &works).await.map_err(failed())?;
            Ok::<_, CliError>(names)
        })?;
        self.volumes().say(&format!("undid the import of `{names}`"));
        Ok(())
    }

    fn open(&self) -> Result<OpenDir, CliError> {
        let instead = "copy a volume to its server by NBD, as with `nbdcopy`";
        directories::or_instead(OpenDir::open(&self.directory), instead)
    }
}

/// The import of an export into a directory.
pub struct Imported<'a> {
    /// The data directory.
    pub directory: &'a Path,
    /// What was written since the snapshot of an increment may be lost.
    pub revert: bool,
    /// Nobody is asked.
    pub force: bool,
}

impl Imported<'_> {
    /// Imports the volumes, all or none of them, and tells what was done.
    pub fn import(&self, directory: &OpenDir, source: &mut Source<'_>) -> Result<(), CliError> {
        let volumes = source.reader.volumes().to_vec();
        let data_bytes = with_domains(directory, async |domains| {
            self.import_into(domains, source, &volumes).await
        })?;
        for volume in &volumes {
            self.say(&done(volume));
        }
        let (volumes, data) = (plural(count(volumes.len()), "volume"), human_bytes(data_bytes));
        output::say(&format!("{}: {volumes}, {data} of data imported", source.path.display()));
        Ok(())
    }

    /// Imports all, or undoes what was done. Returns the bytes of data.
    async fn import_into(
        &self,
        domains: &Domains,
        source: &mut Source<'_>,
        volumes: &[Described],
    ) -> Result<u64, CliError> {
        let path = self.directory;
        let checks = Checks { domains, path, may_revert: self.revert };
        let Checked { works, reverted } = checks.all(volumes).await?;
        if !reverted.is_empty() && !self.force {
            let names = reverted.join("`, `");
            confirm(&format!("lose what was written to `{names}` since the last snapshot?"))?;
        }
        let failed = || DataDirError::volume(path);
        let bar = source.bar.clone();
        if let Err(error) = unfinished::begin(domains, &works).await {
            // Without what it says, it is of no use; the first error is the cause.
            let _ = unfinished::end(domains).await;
            return Err(failed()(error).into());
        }
        let imported = async {
            for volume in volumes {
                self.volume(domains, volume, source).await?;
            }
            let data_bytes = source.end()?;
            unfinished::end(domains).await.map_err(failed())?;
            Ok::<_, CliError>(data_bytes)
        }
        .await;
        bar.finish_and_clear();
        let error = match imported {
            Ok(data_bytes) => return Ok(data_bytes),
            Err(error) => error,
        };
        Err(CliError::Failed(match unfinished::undo(domains, &works).await {
            Ok(()) => format!("{error}; nothing was imported"),
            Err(undoing) => format!(
                "{error}; what was imported could not be undone ({undoing}): {}",
                unfinished::about(path, &works)
            ),
        }))
    }

    /// Imports a volume: its snapshots one after the other, then its present state.
    async fn volume(
        &self,
        domains: &Domains,
        volume: &Described,
        source: &mut Source<'_>,
    ) -> Result<(), CliError> {
        let failed = || DataDirError::volume(self.directory);
        let name = &volume.name;
        let domain = begin(domains, volume).await.map_err(failed())?;
        let target = domain.volume(name).map_err(failed())?.without_limits();
        for image in 0..volume.images() {
            let bytes = volume.image_bytes(image);
            if target.size_bytes().map_err(failed())? != bytes {
                domain.shrink(name, bytes).await.map_err(failed())?;
            }
            while let Some(change) = source.change()? {
                let changed = match change {
                    Change::Data { offset, data } => target.write(offset, &data).await,
                    Change::Zeros { offset, bytes } => target.discard(offset, bytes).await,
                };
                changed.map_err(failed())?;
            }
            target.flush().await.map_err(failed())?;
            if let Some((snapshot, _)) = volume.snapshots.get(index(image)) {
                domain.snapshot(name, snapshot).await.map_err(failed())?;
            }
        }
        Ok(domain.set(name, &volume.settings.all()).await.map_err(failed())?)
    }

    fn say(&self, done: &str) {
        output::say(&format!("{}: {done}", self.directory.display()));
    }
}

/// Creates a volume, or prepares it for an increment. The hints hold for what is imported; limits
/// and quota come last.
async fn begin<'a>(domains: &'a Domains, volume: &Described) -> Result<&'a Domain, VolumeError> {
    let (name, lifetime) = (&volume.name, volume.settings.lifetime);
    let hints = [Setting::Temperature(lifetime.temperature), Setting::Stream(lifetime.stream)];
    match &volume.beginning {
        Beginning::Empty => {
            let domain = domains.most_free().ok_or(VolumeError::Stopped)?;
            domain.create_with(name, volume.image_bytes(0), &hints).await?;
            Ok(domain)
        }
        Beginning::Clone { volume: parent, snapshot } => {
            let domain = domains.holder(parent)?;
            domain.clone_snapshot(parent, snapshot, name).await?;
            domain.set(name, &hints).await?;
            Ok(domain)
        }
        Beginning::Base(base) => {
            let domain = domains.holder(name)?;
            unfinished::set_back(domain, name, &base.snapshot).await?;
            domain.set(name, &hints).await?;
            Ok(domain)
        }
    }
}

/// What was done to a volume.
fn done(volume: &Described) -> String {
    let name = &volume.name;
    let snapshots = plural(count(volume.snapshots.len()), "snapshot");
    match &volume.beginning {
        Beginning::Empty => format!("created volume `{name}` with {snapshots}"),
        Beginning::Clone { volume: parent, snapshot } => {
            format!("created volume `{name}`, a clone of `{parent}@{snapshot}`, with {snapshots}")
        }
        Beginning::Base(base) => {
            format!("volume `{name}` went on from snapshot `{}`: {snapshots} more", base.snapshot)
        }
    }
}
