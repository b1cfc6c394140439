//! FLASH.GROW: the device gets more units while it is served. The order of the steps is that of
//! `softflash grow`; then the threads of the shards take the units into use. A crash at any time
//! leaves the directory as it was, or as it will be.

use super::of_store;
use super::steps::{Outcome, Steps};
use futures_util::future::join_all;
use softflash_base::UnitSet;
use softflash_datadir::{Growth, Shares};
use softflash_device::Device;
use softflash_protocol::sets;
use std::sync::Arc;

/// Enlarges the device, and gives the new units to their sets. Nothing is done where it has the
/// size.
pub(super) async fn grow(steps: &Steps, growth: sets::Growth) -> Outcome<()> {
    let sets::Growth { size_bytes, store, volumes, spare } = growth;
    let shares = Shares { store, volumes, spare };
    let directory = &steps.directory;
    let Some(growth) = directory.plan_growth(size_bytes, shares)? else { return Ok(()) };
    let begun = directory.begin_growth(&growth).await;
    // The table may name all units by now, also after a failure.
    steps.update();
    let larger = begun?;
    if let Err(error) = erase(steps, &growth, &larger).await {
        directory.undo_growth().await;
        return Err(error);
    }
    directory.finish_growth(&growth, &larger).await?;
    steps.update();
    use_units(steps, &growth).await
}

/// Erases the units that join a set, each on the thread that will have it.
async fn erase(steps: &Steps, growth: &Growth, larger: &Arc<dyn Device>) -> Outcome<()> {
    let epoch = steps.directory.plan(|table| Ok(table.epoch))?;
    let mut of_shards = growth.grown.store.clone();
    for (name, units) in &growth.grown.mapped {
        of_shards.push((steps.domain(name)?.shard.0, units.clone()));
    }
    let erase = |(shard, units)| steps.erase_on(Arc::clone(larger), shard, units, epoch);
    // All have ended before one that fails lets the growth be undone.
    join_all(of_shards.into_iter().map(erase)).await.into_iter().collect()
}

/// The sets use their new units. What cannot now, does from the next start on.
async fn use_units(steps: &Steps, growth: &Growth) -> Outcome<()> {
    let stores = growth.grown.store.iter().cloned();
    let stores = stores.map(|(shard, units)| of_store::join(steps, shard, units));
    let stores = join_all(stores).await;
    let of_volumes = growth.grown.mapped.iter().cloned();
    let join = async |(name, units): (String, UnitSet)| steps.join(&name, units).await;
    let domains = join_all(of_volumes.map(join)).await;
    let failed: Vec<String> = stores.into_iter().chain(domains).filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}
