//! `softflash set delete`: the units of a set without volumes become spare.

use super::changed::Named;
use crate::directories::block_on;
use clap::Args;
use softflash_console::CliError;
use softflash_datadir::{DataDirError, Domains, OpenDir, SetError, ShardDomain};
use softflash_volume::{Domain, VolumeError};
use std::sync::Arc;

/// Arguments of `set delete`.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    set: Named,
}

impl Delete {
    /// Takes the set out of the table, unless it holds volumes. Its units are erased when they join
    /// another one.
    pub fn run(self) -> Result<(), CliError> {
        let Delete { set } = self;
        let directory = set.open()?;
        let table = set.planned(&directory, directory.table().without_set(&set.name))?;
        let of = set.domain(&directory)?;
        match of.pair {
            // The other set keeps the volumes, if it has all.
            Some(_) => make_level(&directory, &set.name)?,
            None => refuse_volumes(&directory, of)?,
        }
        set.tell(&directory.replace_table(&table)?, "deleted set")
    }
}

/// Fails unless the other set of a pair has all volumes.
fn make_level(directory: &OpenDir, name: &str) -> Result<(), CliError> {
    let OpenDir { path, device, domains, .. } = directory;
    device.mend_label().map_err(DataDirError::from)?;
    block_on(|runtime| async move {
        let of_set = domains.iter().find(|of| of.name == name);
        let partner = of_set.and_then(|of| Some(of.pair.as_ref()?.partner_of(of.config.domain)));
        // One that cannot be mounted is not needed, if the other one has everything.
        let mounted = Domains::mount(device, domains, &runtime).await?;
        let keeps = mounted.all.iter().find(|(of, _)| Some(of.config.domain) == partner);
        let level = match keeps {
            Some((_, domain)) => match domain.pair_figures() {
                Some(_) if !domain.leads() => {
                    let reason = "the other set of its pair has not all volumes".to_owned();
                    Err(VolumeError::Unsupported { reason })
                }
                _ => domain.checkpoint().await,
            },
            None => {
                let reason = "the other set of its pair cannot be mounted".to_owned();
                Err(VolumeError::Unsupported { reason })
            }
        };
        mounted.stop();
        Ok(level.map_err(DataDirError::volume(path))?)
    })
}

/// Fails if a set holds volumes, or if damage keeps them from being listed.
fn refuse_volumes(directory: &OpenDir, of: &ShardDomain) -> Result<(), CliError> {
    let OpenDir { path, device, .. } = directory;
    let volumes = block_on(|runtime| async move {
        let queue = Arc::clone(device).open_queue_pair(&of.units)?;
        let listed = Domain::list_only(queue, of.config.clone(), runtime).await;
        Ok(listed.map_err(of.failed(path))?)
    })?;
    let Some(volume) = volumes.first() else { return Ok(()) };
    let (name, volume) = (of.name.clone(), volume.name.clone());
    let holds = SetError::HoldsVolumes { name, volumes: volumes.len(), volume };
    Err(DataDirError::set(path)(holds).into())
}
