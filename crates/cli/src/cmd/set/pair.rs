//! `softflash set pair`: two sets with a copy each of the same volumes.

use super::changed::Named;
use super::watching::watched;
use crate::directories::block_on;
use clap::Args;
use softflash_console::{CliError, output};
use softflash_datadir::{DataDirError, Domains, OpenDir, SetError, ShardDomain};
use softflash_volume::Domain;
use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `set pair`.
#[derive(Debug, Args)]
pub struct Pair {
    #[command(flatten)]
    first: Named,
    /// The other set, of the same shard
    second: String,
}

impl Pair {
    /// Changes the table, then makes the copy.
    pub fn run(self) -> Result<(), CliError> {
        let Pair { first, second } = self;
        let directory = first.open()?;
        let table = directory.table().with_pair(&first.name, &second);
        let table = first.planned(&directory, table)?;
        refuse_two_with_volumes(&directory, [&first.name, &second])?;
        let directory = directory.replace_table(&table)?;
        copy(&directory, &first.name)?;
        first.tell(&directory, &format!("made a pair with `{second}` of set"))
    }
}

/// Fails if both sets hold volumes, or if damage keeps them from being listed.
fn refuse_two_with_volumes(directory: &OpenDir, names: [&str; 2]) -> Result<(), CliError> {
    let mut holding = Vec::new();
    for name in names {
        let of = directory.domains.iter().find(|domain| domain.name == name);
        if let Some(of) = of
            && holds_volumes(directory, of)?
        {
            holding.push(name.to_owned());
        }
    }
    match <[String; 2]>::try_from(holding) {
        Ok(names) => {
            Err(DataDirError::set(&directory.path)(SetError::BothHoldVolumes { names }).into())
        }
        Err(_) => Ok(()),
    }
}

fn holds_volumes(directory: &OpenDir, of: &ShardDomain) -> Result<bool, CliError> {
    let OpenDir { path, device, .. } = directory;
    block_on(|runtime| async move {
        let queue = Arc::clone(device).open_queue_pair(&of.units)?;
        let listed = Domain::list_only(queue, of.config.clone(), runtime).await;
        Ok(!listed.map_err(of.failed(path))?.is_empty())
    })
}

/// Waits until both sets have all volumes. A signal ends the copy, which the next server makes.
fn copy(directory: &OpenDir, first: &str) -> Result<(), CliError> {
    let OpenDir { path, device, domains, .. } = directory;
    device.mend_label().map_err(DataDirError::from)?;
    block_on(|runtime| async move {
        let mounted = Domains::mount(device, domains, &runtime).await?;
        mounted.check_all(path)?;
        let Some(Ok(domain)) = mounted.of_set(first) else { return Ok(()) };
        let (bar, most) = (output::progress(1, "bytes to copy"), Cell::new(0));
        let show = || {
            let left = domain.pair_figures().map_or(0, |figures| figures.behind_bytes);
            most.set(left.max(most.get()));
            bar.set_length(most.get());
            bar.set_position(most.get() - left);
        };
        let whole = async {
            while domain.pair_figures().is_some_and(|figures| !figures.is_whole) {
                runtime.sleep_until(runtime.now() + Duration::from_millis(10)).await;
            }
            domain.checkpoint().await
        };
        let made = watched(path, whole, show, &runtime).await;
        bar.finish_and_clear();
        mounted.stop();
        let made = made.map_err(|_| {
            let path = path.display();
            CliError::Failed(format!(
                "{path}: interrupted; the sets are a pair, and the next server or command that mounts \
                 them makes the copy from the beginning"
            ))
        })?;
        Ok(made.map_err(DataDirError::volume(path))?)
    })
}
