//! `softflash set delete`: the units of a set without volumes become spare.

use super::changed::Named;
use crate::directories::block_on;
use clap::Args;
use softflash_console::CliError;
use softflash_datadir::{DataDirError, OpenDir, SetError, ShardDomain};
use softflash_volume::Domain;
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
        refuse_volumes(&directory, set.domain(&directory)?)?;
        set.tell(&directory.replace_table(&table)?, "deleted set")
    }
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
