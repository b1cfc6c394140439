//! Units that join the store of a shard, and leave it, while keys are served. The order of the
//! steps is that of the sets for volumes: drained before the table is written, erased before they
//! join.

use super::directory::STOPPING;
use super::steps::{Outcome, Steps, undecided};
use crate::thread::{Message, UnitsChange, UnitsOfStore};
use softflash_base::UnitSet;
use softflash_datadir::Resize;
use tokio::sync::oneshot;

/// Carries out the change of the units of a shard's keys, from the table of this epoch on.
pub(super) async fn resize(steps: &Steps, shard: u16, epoch: u32, resize: Resize) -> Outcome<()> {
    match resize {
        Resize::None => Ok(()),
        Resize::Grow { joining, next } => {
            steps.directory.check(&next)?;
            steps.erase(shard, joining.clone(), epoch).await?;
            steps.replace(next).await?;
            join(steps, shard, joining).await
        }
        Resize::Shrink { leaving, next } => {
            steps.directory.check(&next)?;
            change(steps, shard, &leaving, UnitsChange::Drain).await?;
            if let Err(error) = steps.replace(next).await {
                if !steps.directory.is_as_known() {
                    return Err(undecided(&leaving, &error));
                }
                change(steps, shard, &leaving, UnitsChange::Keep).await?;
                return Err(error);
            }
            let left = change(steps, shard, &leaving, UnitsChange::Leave).await;
            left.map_err(|error| {
                format!(
                    "the units {leaving} are spare, and can be used from the next start on: {error}"
                )
            })
        }
    }
}

/// Erased units that the table gives to the keys of a shard are used from now on.
pub(super) async fn join(steps: &Steps, shard: u16, units: UnitSet) -> Outcome<()> {
    let epoch = steps.directory.plan(|table| Ok(table.epoch))?;
    let joining = UnitsChange::Join(steps.directory.device(), epoch);
    change(steps, shard, &units, joining).await.map_err(|error| {
        format!("the keys of shard {shard} have the units {units} from the next start on: {error}")
    })
}

async fn change(steps: &Steps, shard: u16, units: &UnitSet, change: UnitsChange) -> Outcome<()> {
    let (answer, changed) = oneshot::channel();
    let units = units.clone();
    steps.send(shard, Message::Units(UnitsOfStore { units, change, answer }))?;
    changed.await.unwrap_or_else(|_| Err(STOPPING.to_owned()))
}
