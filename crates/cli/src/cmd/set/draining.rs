//! Empties units of a set before they leave it.

use super::watching::watched;
use crate::directories::block_on;
use softflash_base::{ShardId, UnitSet};
use softflash_console::{CliError, output};
use softflash_datadir::{DataDirError, MountError, OpenDir, ShardDomain};
use softflash_flash::FlashSource;
use softflash_runtime::RuntimeHandle;
use softflash_store::StoreOptions;
use softflash_volume::Domain;
use std::cell::Cell;
use std::sync::Arc;

/// Moves what a set has in these units to its others: its next mount can be without them. Until
/// the table changes, it has the units as before, also after a failure.
pub fn drain(directory: &OpenDir, of: &ShardDomain, units: &UnitSet) -> Result<(), CliError> {
    block_on(|runtime| async move {
        let domain = mount(directory, of, &runtime).await?;
        let drained = match directory.device.mend_label() {
            Ok(()) => drain_mounted(directory, &domain, units, &runtime).await,
            Err(error) => Err(DataDirError::from(error).into()),
        };
        domain.stop();
        drained
    })
}

async fn mount(
    directory: &OpenDir,
    of: &ShardDomain,
    runtime: &RuntimeHandle,
) -> Result<Domain, DataDirError> {
    let source = FlashSource::Device(Arc::clone(&directory.device));
    of.mount(source, runtime).await.map_err(|error| match error {
        MountError::Device(error) => error.into(),
        MountError::Domain(error) => of.failed(&directory.path)(error),
    })
}

async fn drain_mounted(
    directory: &OpenDir,
    domain: &Domain,
    units: &UnitSet,
    runtime: &RuntimeHandle,
) -> Result<(), CliError> {
    let left = || domain.draining_bytes();
    let drained = shown(directory, domain.drain(units), left, runtime).await?;
    Ok(drained.map_err(DataDirError::volume(&directory.path))?)
}

/// As [`drain`], of the units of a shard's keys.
pub fn drain_store(directory: &OpenDir, shard: ShardId, units: &UnitSet) -> Result<(), CliError> {
    directory.with_shard(shard, &StoreOptions::default(), |store, runtime| async move {
        let left = || store.bytes_on(units);
        let drained = shown(directory, store.drain_units(units), left, &runtime).await?;
        Ok(drained.map_err(DataDirError::store(&directory.path))?)
    })
}

/// Does the work of a drain beside a bar with the bytes that are left.
async fn shown<T>(
    directory: &OpenDir,
    drain: impl Future<Output = T>,
    left: impl Fn() -> u64,
    runtime: &RuntimeHandle,
) -> Result<T, CliError> {
    let (bar, most) = (output::progress(1, "bytes to move"), Cell::new(0));
    let show = || {
        let left = left();
        most.set(left.max(most.get()));
        bar.set_length(most.get());
        bar.set_position(most.get() - left);
    };
    let drained = watched(&directory.path, drain, show, runtime).await;
    bar.finish_and_clear();
    drained
}
