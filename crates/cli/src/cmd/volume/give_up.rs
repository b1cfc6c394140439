//! `softflash volume give-up`: gives up a volume, or all of a domain, also damaged ones.

use super::named::open;
use crate::directories::block_on;
use clap::Args;
use softflash_console::CliError;
use softflash_console::output;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDirError, Domains, OpenDir, ShardDomain, with_domains};
use softflash_device::Device;
use softflash_volume::{Domain, VolumeError, VolumeInfo};
use std::path::PathBuf;
use std::sync::Arc;

/// Arguments of `volume give-up`.
#[derive(Debug, Args)]
pub struct GiveUp {
    /// The data directory
    directory: PathBuf,
    /// The volume
    #[arg(conflicts_with = "domain")]
    name: Option<String>,
    /// All volumes of this shard or set: the domain of `volume list`
    #[arg(long, value_name = "SHARD|SET")]
    domain: Option<String>,
    /// Do it; without, only say what it costs
    #[arg(long)]
    force: bool,
}

impl GiveUp {
    /// Prints what is lost, and gives it up if that is forced.
    pub fn run(&self) -> Result<(), CliError> {
        match (&self.name, &self.domain) {
            (Some(name), _) => self.volume(&open(&self.directory)?, name),
            (None, Some(word)) => self.domain(&open(&self.directory)?, word),
            (None, None) => Err(CliError::Usage(
                "name a volume to give up, or all volumes of a shard or set with --domain SHARD|SET"
                    .to_owned(),
            )),
        }
    }

    fn volume(&self, directory: &OpenDir, name: &str) -> Result<(), CliError> {
        with_domains(directory, async |domains| {
            let failed = DataDirError::volume(&directory.path);
            let (domain, volume) = find(domains, name).map_err(failed)?;
            output::result(&cost(&volume));
            self.check_forced("the volume with its snapshots is deleted")?;
            let failed = DataDirError::volume(&directory.path);
            domain.delete_with_snapshots(&volume.name).await.map_err(failed).map_err(CliError::from)
        })?;
        self.say(&format!("gave up volume `{name}`"));
        Ok(())
    }

    fn domain(&self, directory: &OpenDir, word: &str) -> Result<(), CliError> {
        let path = &directory.path;
        let is_it = |domain: &&ShardDomain| domain.word() == word || domain.name == word;
        let domain = directory.domains.iter().find(is_it).ok_or_else(|| {
            CliError::Failed(format!(
                "{}: no shard or set `{word}` has volumes; `softflash volume list` shows those that \
                 have",
                path.display()
            ))
        })?;
        let place = domain.place();
        let device = &directory.device;
        match block_on(|runtime| async move {
            let queue = Arc::clone(device).open_queue_pair(&domain.units)?;
            Ok(Domain::list_only(queue, domain.config.clone(), runtime).await)
        })? {
            Ok(volumes) if volumes.is_empty() => {
                output::result(&format!("{place} has no volumes"));
            }
            Ok(volumes) => volumes.iter().for_each(|volume| output::result(&cost(volume))),
            Err(error) => output::result(&unknown_cost(&**device, domain, &error)),
        }
        self.check_forced(&format!("all volumes of {place} are deleted"))?;
        let failed = |error| -> CliError { domain.failed(path)(error).into() };
        let queue = || Arc::clone(device).open_queue_pair(&domain.units);
        let config = || domain.config.clone();
        let superblocks = block_on(|runtime| async move {
            Domain::give_up(queue()?, config(), runtime).await.map_err(failed)
        })?;
        block_on(|runtime| async move {
            let mounted = Domain::mount(queue()?, config(), runtime).await;
            mounted.map(|(empty, _)| empty.stop()).map_err(failed)
        })?;
        let bytes = u64::from(superblocks) * device.info().geometry.superblock_bytes();
        let bytes = human_bytes(bytes);
        self.say(&format!(
            "gave up the volumes of {place}, {bytes} of flash; new ones can be created"
        ));
        Ok(())
    }

    fn check_forced(&self, effect: &str) -> Result<(), CliError> {
        match self.force {
            true => Ok(()),
            false => Err(CliError::Failed(format!(
                "{}: nothing was changed; with --force {effect}, and nothing can bring it back",
                self.directory.display()
            ))),
        }
    }

    fn say(&self, done: &str) {
        output::say(&format!("{}: {done}", self.directory.display()));
    }
}

/// A volume that no clone depends on, with its domain.
fn find<'a>(domains: &'a Domains, name: &str) -> Result<(&'a Domain, VolumeInfo), VolumeError> {
    let domain = domains.holder(name)?;
    let volumes = domain.list();
    let parent = |volume: &VolumeInfo| volume.parent.clone().filter(|(parent, _)| parent == name);
    if let Some((clone, (_, snapshot))) =
        volumes.iter().find_map(|volume| Some((&volume.name, parent(volume)?)))
    {
        let (name, clone) = (format!("{name}@{snapshot}"), clone.clone());
        return Err(VolumeError::HasClones { name, clone });
    }
    let volume = volumes.into_iter().find(|volume| volume.name == name);
    let missing = || VolumeError::NoVolume { name: name.to_owned() };
    Ok((domain, volume.ok_or_else(missing)?))
}

fn cost(volume: &VolumeInfo) -> String {
    let snapshots = match volume.snapshots.as_slice() {
        [] => "no snapshots".to_owned(),
        some => format!("its snapshots {}", some.join(", ")),
    };
    format!(
        "volume `{}` of {}: {} of data, {snapshots}",
        volume.name,
        human_bytes(volume.size_bytes),
        human_bytes(volume.used_bytes),
    )
}

/// The cost where the volumes cannot be listed.
fn unknown_cost(device: &dyn Device, domain: &ShardDomain, error: &VolumeError) -> String {
    let geometry = device.info().geometry;
    let unit = u64::from(geometry.blocks_per_plane) * geometry.superblock_bytes();
    let bytes = human_bytes(unit * domain.units.len() as u64);
    format!(
        "all volumes of {}, whose names and sizes cannot be read: {error}; they are in {} units of \
         the device, which have {bytes}",
        domain.place(),
        domain.units.len(),
    )
}
