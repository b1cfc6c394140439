//! `softflash volume export`: writes volumes, with their snapshots, to a file or a pipe.

use super::copying::{digest, read};
use super::unfinished;
use crate::directories;
use crate::volume_export::{
    Base, Beginning, Described, ExportError, ExportWriter, MOST_DATA_BYTES, Totals,
};
use clap::Args;
use indicatif::ProgressBar;
use softflash_base::cast::index;
use softflash_console::CliError;
use softflash_console::new_file::{Existing, NewFile};
use softflash_console::output;
use softflash_console::plural::plural;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDirError, Domains, OpenDir, with_domains};
use softflash_volume::{Changed, Domain, Volume, VolumeError, VolumeInfo, parents_first};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

/// Arguments of `volume export`.
#[derive(Debug, Args)]
pub struct Export {
    /// The data directory
    directory: PathBuf,
    /// The file to write, `-` for standard output
    file: PathBuf,
    /// The volumes; all of them without a name
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Only what has changed since this snapshot of each volume
    #[arg(long, value_name = "SNAP")]
    from: Option<String>,
    /// With --from: do not read that snapshot, which proves to `import` that it has the same
    #[arg(long, requires = "from")]
    quick: bool,
    /// Replace an existing file, once the new one is complete
    #[arg(long)]
    force: bool,
}

/// A volume to export.
struct Selected<'a> {
    domain: &'a Domain,
    info: VolumeInfo,
}

/// The image that the first exported one differs from, and the description.
struct Planned<'a> {
    domain: &'a Domain,
    described: Described,
    before: Option<Volume>,
}

type Output = ExportWriter<Buffered>;

impl Export {
    /// Writes the export.
    pub fn run(self) -> Result<(), CliError> {
        let mut new = NewFile::removed_on_signal(&self.file, Existing::by_force(self.force))?;
        // A mount writes, so it works on a copy in memory.
        let instead = "copy a volume from its server by NBD, as with `nbdcopy`";
        let directory = directories::or_instead(OpenDir::open_to_try(&self.directory), instead)?;
        let volumes = self.volumes();
        let (buffered, totals) =
            with_domains(&directory, async |domains| volumes.write(domains, &mut new).await)?;
        let file = buffered.into_inner().map_err(|error| {
            let path = new.name().to_owned();
            CliError::File { path, source: error.into_error() }
        })?;
        let name = new.name().display().to_string();
        new.complete(&file)?;
        let Totals { volumes, images, data_bytes, .. } = totals;
        output::say(&format!(
            "{name}: {}, {}, {} of data",
            plural(volumes, "volume"),
            plural(images - volumes, "snapshot"),
            human_bytes(data_bytes)
        ));
        Ok(())
    }

    fn volumes(&self) -> Exported<'_> {
        let Export { directory, names, from, quick, .. } = self;
        Exported { directory, names, from: from.as_deref(), is_quick: *quick, may_be_none: false }
    }
}

/// The volumes that are written.
pub struct Exported<'a> {
    /// The data directory.
    pub directory: &'a Path,
    /// Their names; all of them without one.
    pub names: &'a [String],
    /// Only what has changed since this snapshot.
    pub from: Option<&'a str>,
    /// Nothing is read to prove that `import` has the same snapshot.
    pub is_quick: bool,
    /// Whether there may be none.
    pub may_be_none: bool,
}

/// A file that something else may be added to.
pub type Buffered = BufWriter<File>;

impl Exported<'_> {
    /// Writes the export to a new file, to which something may be added.
    pub async fn write(
        &self,
        domains: &Domains,
        new: &mut NewFile,
    ) -> Result<(Buffered, Totals), CliError> {
        unfinished::refuse(domains, self.directory).await?;
        let selected = self.select(domains)?;
        // Of an increment nobody knows the length before.
        let used = selected.iter().map(|volume| volume.info.used_bytes).sum();
        let mut plan = Vec::new();
        let all: BTreeSet<String> = selected.iter().map(|one| one.info.name.clone()).collect();
        for volume in selected {
            plan.push(self.plan(volume, &all).await?);
        }
        let path = new.name().to_owned();
        let at = || ExportError::at(&path);
        let volumes: Vec<Described> = plan.iter().map(|one| one.described.clone()).collect();
        let file = BufWriter::with_capacity(1 << 20, new.create()?);
        let mut out = ExportWriter::begin(file, &volumes).map_err(at())?;
        let bar = output::progress(if self.from.is_none() { used } else { 0 }, "bytes");
        for volume in plan {
            self.write_volume(volume, &mut out, &path, &bar).await?;
        }
        bar.finish_and_clear();
        Ok(out.finish().map_err(at())?)
    }

    /// The volumes by name, but clones behind their parents.
    fn select<'a>(&self, domains: &'a Domains) -> Result<Vec<Selected<'a>>, CliError> {
        let path = self.directory;
        if self.names.is_empty() {
            domains.check_all(path)?;
        }
        for name in self.names {
            domains.holder(name).map_err(DataDirError::volume(path))?;
        }
        let is_chosen = |name: &String| self.names.is_empty() || self.names.contains(name);
        let of_domain = |domain: &'a Domain| {
            domain.list().into_iter().map(move |info| Selected { domain, info })
        };
        let all = domains.all.iter().flat_map(|(_, domain)| of_domain(domain));
        let mut left: Vec<Selected<'a>> = all.filter(|one| is_chosen(&one.info.name)).collect();
        if left.is_empty() && !self.may_be_none {
            let path = path.display();
            return Err(CliError::Failed(format!("{path}: there are no volumes to export")));
        }
        left.sort_by(|one, other| one.info.name.cmp(&other.info.name));
        Ok(parents_first(left, |one| &one.info))
    }

    async fn plan<'a>(
        &self,
        volume: Selected<'a>,
        selected: &BTreeSet<String>,
    ) -> Result<Planned<'a>, CliError> {
        let failed = || DataDirError::volume(self.directory);
        let Selected { domain, info } = volume;
        let VolumeInfo { name, size_bytes, settings, mut snapshots, parent, .. } = info;
        let open = |of: &str, snapshot: &str| {
            domain.open_snapshot(of, snapshot).map(Volume::without_limits).map_err(failed())
        };
        let (beginning, before) = match (self.from, parent) {
            (Some(from), _) => {
                let Some(place) = snapshots.iter().position(|snapshot| snapshot == from) else {
                    return Err(self.lacks_base(&name, from, selected.len()));
                };
                snapshots.drain(..=place);
                let base = open(&name, from)?;
                let size_bytes = base.size_bytes().map_err(failed())?;
                let bar = output::progress(0, "bytes of the snapshot");
                let shown = |bytes| bar.inc(bytes);
                let digest = digest(&base, self.is_quick, shown).await.map_err(failed())?;
                bar.finish_and_clear();
                let snapshot = from.to_owned();
                (Beginning::Base(Base { snapshot, size_bytes, digest }), Some(base))
            }
            (None, Some((volume, snapshot))) if selected.contains(&volume) => {
                let before = open(&volume, &snapshot)?;
                (Beginning::Clone { volume, snapshot }, Some(before))
            }
            (None, Some((volume, snapshot))) => {
                self.say(&format!(
                    "volume `{name}` is exported in full: it is a clone of `{volume}@{snapshot}`, \
                     which is not exported"
                ));
                (Beginning::Empty, None)
            }
            (None, None) => (Beginning::Empty, None),
        };
        let size_of = |snapshot: String| {
            let size_bytes = domain.open_snapshot(&name, &snapshot)?.size_bytes()?;
            Ok::<_, VolumeError>((snapshot, size_bytes))
        };
        let snapshots = snapshots.into_iter().map(size_of).collect::<Result<_, _>>();
        let snapshots = snapshots.map_err(failed())?;
        let described = Described { name, beginning, settings, snapshots, size_bytes };
        Ok(Planned { domain, described, before })
    }

    fn lacks_base(&self, name: &str, from: &str, volumes: usize) -> CliError {
        let others = match volumes {
            1 => "",
            _ => ", and name those that have the snapshot",
        };
        CliError::Failed(format!(
            "{}: volume `{name}` has no snapshot `{from}`; export it without --from{others}",
            self.directory.display()
        ))
    }

    async fn write_volume(
        &self,
        volume: Planned<'_>,
        out: &mut Output,
        path: &Path,
        bar: &ProgressBar,
    ) -> Result<(), CliError> {
        let Planned { domain, described, mut before } = volume;
        let failed = || DataDirError::volume(self.directory);
        let mut buffer = Vec::new();
        for image in 0..described.images() {
            let opened = match described.snapshots.get(index(image)) {
                Some((snapshot, _)) => domain.open_snapshot(&described.name, snapshot),
                None => domain.volume(&described.name),
            };
            let opened = opened.map_err(failed())?.without_limits();
            let mut at = 0;
            let next = |at| opened.next_change(before.as_ref(), at, MOST_DATA_BYTES);
            while let Some(changed) = next(at).map_err(failed())? {
                let Changed { offset, bytes, has_data } = changed;
                let written = match has_data {
                    true => {
                        let data = read(&opened, changed, &mut buffer).await;
                        let data = data.map_err(|error| self.unreadable(&described, error))?;
                        bar.inc(bytes);
                        out.data(offset, data)
                    }
                    false => out.zeros(offset, bytes),
                };
                written.map_err(ExportError::at(path))?;
                at = offset + bytes;
            }
            out.end_image().map_err(ExportError::at(path))?;
            before = Some(opened);
        }
        Ok(())
    }

    /// The error about data that cannot be read, which does not say of which volume.
    fn unreadable(&self, volume: &Described, error: VolumeError) -> CliError {
        let (path, name) = (self.directory.display(), &volume.name);
        CliError::Failed(format!(
            "{path}: volume `{name}`: {error}; `softflash check` names all that is lost: write it \
             again or discard it, or export the other volumes by name"
        ))
    }

    fn say(&self, text: &str) {
        output::say(&format!("{}: {text}", self.directory.display()));
    }
}
