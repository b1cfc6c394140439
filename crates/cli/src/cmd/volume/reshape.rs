//! `softflash volume rename`, `rollback` and `promote`: changes of a volume as a whole.

use super::named::{Named, open};
use super::unfinished;
use clap::Args;
use softflash_console::CliError;
use softflash_console::question::confirm;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDirError, with_domains};
use softflash_volume::{Domain, VolumeError};

/// Arguments of `volume rename`.
#[derive(Debug, Args)]
pub struct Rename {
    #[command(flatten)]
    volume: Named,
    /// Its new name: 1 to 64 letters, digits, `-`, `_` and `.`
    new: String,
}

/// Arguments of `volume rollback`.
#[derive(Debug, Args)]
pub struct Rollback {
    #[command(flatten)]
    volume: Named,
    /// The newest snapshot of that volume
    #[arg(value_name = "SNAP")]
    snapshot: String,
    /// Do not ask
    #[arg(long)]
    force: bool,
}

/// Arguments of `volume promote`.
#[derive(Debug, Args)]
pub struct Promote {
    #[command(flatten)]
    clone: Named,
}

impl Rename {
    /// Gives the volume its new name.
    pub fn run(self) -> Result<(), CliError> {
        let (name, new) = (&self.volume.name, &self.new);
        self.volume.reshape(async |domains| {
            let domain = domains.holder(name)?;
            domains.check_unused(new)?;
            domain.rename(name, new).await
        })?;
        self.volume.say(&format!("renamed volume `{name}` to `{new}`"));
        Ok(())
    }
}

impl Rollback {
    /// Sets the volume back, after a question if that loses something.
    pub fn run(self) -> Result<(), CliError> {
        let (name, snapshot) = (&self.volume.name, &self.snapshot);
        let directory = open(&self.volume.directory)?;
        with_domains(&directory, async |domains| {
            let failed = || DataDirError::volume(&directory.path);
            unfinished::refuse(domains, &directory.path).await?;
            let domain = domains.holder(name).map_err(failed())?;
            let loses = loses(domain, name, snapshot).map_err(failed())?;
            if loses && !self.force {
                confirm(&format!(
                    "set volume `{name}` back to its snapshot `{snapshot}`, and lose what was \
                     written since?"
                ))?;
            }
            Ok::<(), CliError>(domain.roll_back(name, snapshot).await.map_err(failed())?)
        })?;
        self.volume.say(&format!("volume `{name}` is as its snapshot `{snapshot}`"));
        Ok(())
    }
}

/// Whether a volume differs from its newest snapshot. Another one is refused anyhow.
fn loses(domain: &Domain, name: &str, snapshot: &str) -> Result<bool, VolumeError> {
    let (volume, base) = (domain.volume(name)?, domain.open_snapshot(name, snapshot)?);
    let listed = domain.list().into_iter().find(|volume| volume.name == name);
    let is_newest =
        listed.is_some_and(|volume| volume.snapshots.last().is_some_and(|it| it == snapshot));
    // What lies beyond the volume, which was made smaller, comes back and is not lost.
    Ok(is_newest && volume.next_change(Some(&base), 0, u64::MAX)?.is_some())
}

impl Promote {
    /// Promotes the clone.
    pub fn run(self) -> Result<(), CliError> {
        let name = &self.clone.name;
        let (moved, used) = self.clone.reshape(async |domains| {
            let domain = domains.holder(name)?;
            let moved = domain.to_promote(name);
            domain.promote(name).await?;
            let listed = domain.list().into_iter().find(|volume| volume.name == *name);
            Ok((moved, listed.map_or(0, |volume| volume.used_bytes)))
        })?;
        let (parent, newest) = moved.last().cloned().unwrap_or_default();
        let snapshots = match moved.len() {
            1 => "1 snapshot".to_owned(),
            count => format!("{count} snapshots"),
        };
        self.clone.say(&format!(
            "promoted volume `{name}`: it holds {} with {snapshots} of `{parent}`, which is a clone \
             of `{name}@{newest}` now",
            human_bytes(used)
        ));
        Ok(())
    }
}
