//! FLASH.GROW: the device gets more units while it is served. The order of the steps is that of
//! `softflash grow`; then the threads of the shards take the units into use. A crash at any time
//! leaves the directory as it was, or as it will be.

use super::STOPPING;
use super::changes::{Changes, Outcome};
use crate::thread::{Message, UnitsOfStore};
use futures_util::future::join_all;
use softflash_base::UnitSet;
use softflash_datadir::{Growth, Shares};
use softflash_device::Device;
use softflash_protocol::sets;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Enlarges the device, and gives the new units to their sets. Nothing is done where it has the
/// size.
pub(super) async fn grow(changes: &Changes, growth: sets::Growth) -> Outcome<()> {
    let sets::Growth { size_bytes, store, volumes, spare } = growth;
    let shares = Shares { store, volumes, spare };
    let directory = changes.directory();
    let Some(growth) = directory.plan_growth(size_bytes, shares)? else { return Ok(()) };
    let begun = directory.begin_growth(&growth).await;
    // The table may name all units by now, also after a failure.
    update(changes)?;
    let larger = begun?;
    if let Err(error) = erase(changes, &growth, &larger).await {
        directory.undo_growth().await;
        return Err(error);
    }
    directory.finish_growth(&growth, &larger).await?;
    update(changes)?;
    use_units(changes, &growth).await
}

/// The domains have their descriptions by the table.
fn update(changes: &Changes) -> Outcome<()> {
    if changes.volumes.is_some() { changes.update() } else { Ok(()) }
}

/// Erases the units that join a set, each on the thread that will have it.
async fn erase(changes: &Changes, growth: &Growth, larger: &Arc<dyn Device>) -> Outcome<()> {
    let epoch = changes.directory().plan(|table| Ok(table.epoch))?;
    let mut of_shards = growth.grown.store.clone();
    for (name, units) in &growth.grown.mapped {
        of_shards.push((changes.domain(name)?.shard.0, units.clone()));
    }
    let erase = |(shard, units)| changes.erase_on(Arc::clone(larger), shard, units, epoch);
    // All have ended before one that fails lets the growth be undone.
    join_all(of_shards.into_iter().map(erase)).await.into_iter().collect()
}

/// The sets use their new units. What cannot now, does from the next start on.
async fn use_units(changes: &Changes, growth: &Growth) -> Outcome<()> {
    let of_store = growth.grown.store.iter().cloned();
    let stores = join_all(of_store.map(|(shard, units)| join_store(changes, shard, units))).await;
    let of_volumes = growth.grown.mapped.iter().cloned();
    let join = async |(name, units): (String, UnitSet)| changes.join(&name, units).await;
    let domains = join_all(of_volumes.map(join)).await;
    let failed: Vec<String> = stores.into_iter().chain(domains).filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

async fn join_store(changes: &Changes, shard: u16, units: UnitSet) -> Outcome<()> {
    let epoch = changes.directory().plan(|table| Ok(table.epoch))?;
    let (answer, joined) = oneshot::channel();
    let device = changes.directory().device();
    let joining = UnitsOfStore { device, units: units.clone(), epoch, answer };
    changes.send(shard, Message::Join(joining))?;
    let joined = joined.await.unwrap_or_else(|_| Err(STOPPING.to_owned()));
    joined.map_err(|error| {
        format!("the keys of shard {shard} have the units {units} from the next start on: {error}")
    })
}
