//! `softflash volume delete` and `delete-snapshot`, which ask first on a terminal.

use super::named::{Named, open};
use clap::Args;
use softflash_console::CliError;
use softflash_console::question::confirm;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDirError, with_domains};
use softflash_volume::{Domain, VolumeError, VolumeInfo};

/// Arguments of `volume delete`.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    volume: Named,
    /// Do not ask
    #[arg(long)]
    force: bool,
}

/// Arguments of `volume delete-snapshot`.
#[derive(Debug, Args)]
pub struct DeleteSnapshot {
    #[command(flatten)]
    volume: Named,
    /// A snapshot of that volume
    #[arg(value_name = "SNAP")]
    snapshot: String,
    /// Do not ask
    #[arg(long)]
    force: bool,
}

impl Delete {
    /// Deletes the volume. One without data is not worth a question, and one with snapshots is
    /// refused anyhow.
    pub fn run(self) -> Result<(), CliError> {
        let name = &self.volume.name;
        let question = |volume: &VolumeInfo| {
            let deletes_data = volume.snapshots.is_empty() && volume.used_bytes > 0;
            let bytes = human_bytes(volume.used_bytes);
            deletes_data.then(|| format!("delete volume `{name}`, which holds {bytes}?"))
        };
        let delete = async |domain: &Domain| domain.delete(name).await;
        destroy(&self.volume, self.force, question, delete)?;
        self.volume.say(&format!("deleted volume `{name}`"));
        Ok(())
    }
}

impl DeleteSnapshot {
    /// Deletes the snapshot.
    pub fn run(self) -> Result<(), CliError> {
        let (name, snapshot) = (&self.volume.name, &self.snapshot);
        let question = |volume: &VolumeInfo| {
            let exists = volume.snapshots.contains(snapshot);
            exists.then(|| format!("delete snapshot `{snapshot}` of volume `{name}`?"))
        };
        let delete = async |domain: &Domain| domain.delete_snapshot(name, snapshot).await;
        destroy(&self.volume, self.force, question, delete)?;
        self.volume.say(&format!("deleted snapshot `{snapshot}` of volume `{name}`"));
        Ok(())
    }
}

/// Deletes after the question about the volume, if it has one.
fn destroy(
    of: &Named,
    force: bool,
    question: impl Fn(&VolumeInfo) -> Option<String>,
    delete: impl AsyncFnOnce(&Domain) -> Result<(), VolumeError>,
) -> Result<(), CliError> {
    let directory = open(&of.directory)?;
    with_domains(&directory, async |domains| {
        let failed = || DataDirError::volume(&directory.path);
        let domain = domains.holder(&of.name).map_err(failed())?;
        let volume = domain.list().into_iter().find(|volume| volume.name == of.name);
        if let Some(question) = volume.as_ref().and_then(question).filter(|_| !force) {
            confirm(&question)?;
        }
        Ok(delete(domain).await.map_err(failed())?)
    })
}
