//! The check of a shard.

use super::{CheckReport, Progress, check_patch};
use crate::error::{Result, is_data_loss};
use crate::headless::Headless;
use crate::kv::slice::Slice;
use crate::shard::recovery::Recovered;
use crate::shard::recovery::examination::{Examination, Examined};
use crate::shard::values::examine::{OnFlash, examine};
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockKind, BlockLayer, Found, ParityGroup};
use softflash_flash::Flash;
use softflash_ftl::{Hint, Inventory, Owner, Superblock};
use softflash_runtime::yield_now;
use std::collections::{BTreeMap, BTreeSet};

/// Checks one shard, in steps that only read and that add what they find to the report:
///
/// | step | what it reads | what it reports |
/// |---|---|---|
/// | [`Examination::run`] | headers, logs, metadata | fails where the shard cannot be mounted |
/// | `superblocks` | nothing more | superblocks of others and without a block, damaged erase headers |
/// | `recovery` | nothing more | the end of the log, orphans, units from an old image |
/// | `release_unused` | nothing more | nothing: it shows which units take copies |
/// | `segments` | nothing more | segments of the log with a damaged copy |
/// | `patches` | every patch | damaged patches, those with a damaged copy |
/// | `keys` | every patch | the number of live keys; fails where a read fails that is no loss |
/// | `values` | every separated value | lost values, value blocks with a damaged copy or erase header |
/// | `parity` | every parity group | parity that is damaged or differs |
///
/// The steps from `recovery` on need a recovered shard. The flash stops in any case.
pub(super) async fn check_shard(
    examination: Examination<'_>,
    progress: &Progress,
    report: &mut CheckReport,
) -> Result<()> {
    let shard = examination.shard;
    let Examined { flash, inventory, blocks, found, recovered, now_ms, recorded_ms } =
        examination.run().await?;
    report.clock_ms = recorded_ms;
    let mut check = ShardCheck { shard, flash, inventory, blocks, found, now_ms, progress, report };
    check.superblocks(recovered.as_ref().ok());
    let checked = match recovered {
        Ok(recovered) => check.contents(&recovered).await,
        Err(error) => Err(error),
    };
    check.flash.stop();
    checked
}

/// The check of a shard that was examined.
struct ShardCheck<'a> {
    shard: ShardId,
    flash: Flash,
    inventory: Inventory,
    blocks: BlockLayer,
    found: Vec<Found>,
    /// The time of the store's expiry clock.
    now_ms: u64,
    progress: &'a Progress,
    report: &'a mut CheckReport,
}

impl ShardCheck<'_> {
    /// The steps that need a recovered shard.
    async fn contents(&mut self, recovered: &Recovered) -> Result<()> {
        self.recovery(recovered);
        self.release_unused(recovered);
        self.segments(recovered);
        self.patches(&recovered.slices).await;
        self.keys(&recovered.slices).await?;
        self.values(recovered).await?;
        self.parity().await;
        Ok(())
    }

    /// Reports the superblocks whose headers name no block of the store, or are damaged.
    fn superblocks(&mut self, recovered: Option<&Recovered>) {
        for kept in &self.inventory.of_others {
            let owner = match kept.owner {
                Some(Owner { layer, domain }) => format!("layer {layer}, domain {domain}"),
                None => "unknown, because its opening header is damaged".to_owned(),
            };
            let problem = format!("it is not the store's (owner: {owner}) and is kept");
            self.report.remark(kept.superblock.to_string(), problem);
        }
        for torn in &self.inventory.damaged {
            self.report.remark(torn.superblock.to_string(), torn.reason.clone());
        }
        let unreferred: BTreeSet<BlockId> = recovered.into_iter().flat_map(unreferred).collect();
        let ids = self.found.iter().map(|found| found.id);
        let referred = ids.filter(|id| !unreferred.contains(id));
        let referred: Vec<Superblock> =
            referred.flat_map(|id| self.blocks.superblocks(id)).collect();
        // Only a comparison with the newest versions shows whether a value block is in use.
        let of_values = match recovered {
            Some(_) => self.value_superblocks(),
            None => BTreeSet::new(),
        };
        for lost in &self.inventory.erase_headers_lost {
            let (place, reason) = (lost.superblock.to_string(), &lost.reason);
            if of_values.contains(&lost.superblock) {
                continue;
            }
            match referred.contains(&lost.superblock) {
                true => self.report.fault(
                    place,
                    format!(
                        "the erase header is damaged ({reason}); the opening header replaces it"
                    ),
                ),
                false => self.report.remark(place, interrupted_erase(reason)),
            }
        }
    }

    fn value_superblocks(&self) -> BTreeSet<Superblock> {
        let values = self.found.iter().filter(|found| found.kind == BlockKind::Value);
        values.flat_map(|found| self.blocks.superblocks(found.id)).collect()
    }

    /// Reports what the recovery has found.
    fn recovery(&mut self, recovered: &Recovered) {
        let place = format!("shard {}", self.shard);
        self.report.orphans = (recovered.dead.len() + recovered.orphans.len()) as u64;
        if let Some(torn) = &recovered.torn {
            self.report.remark(&place, torn);
        }
        if recovered.cut {
            self.report.remark(&place, "an unacknowledged transaction is dropped");
        }
        for stale in &recovered.stale_units {
            self.report.fault(format!("unit {}", stale.unit), stale.to_string());
        }
    }

    /// Releases unused blocks as a start does, in memory only: the remaining free space shows which
    /// units take copies.
    fn release_unused(&self, recovered: &Recovered) {
        let unreferred: BTreeSet<BlockId> = unreferred(recovered).collect();
        unreferred.into_iter().for_each(|id| self.blocks.delete(id));
        self.inventory.damaged.iter().for_each(|torn| self.flash.release(&torn.superblock));
    }

    /// Reports the segments of the log that lack a copy.
    fn segments(&mut self, recovered: &Recovered) {
        for (number, block) in recovered.uneven_segments(&self.blocks) {
            if let Some(problem) = self.blocks.copy_problem(block) {
                let place = format!("segment {number} of the log of shard {}, {block}", self.shard);
                self.report.degraded(place, problem);
            }
        }
    }

    /// Reads every patch.
    async fn patches(&mut self, slices: &[Slice]) {
        let trees: Vec<_> = slices.iter().map(Slice::tree).collect();
        let count = trees.iter().map(|tree| tree.patches().count() as u64).sum::<u64>();
        self.progress.total.set(self.progress.total.get() + count);
        for (slice, tree) in slices.iter().zip(&trees) {
            self.report.log_keys += slice.memory_keys() as u64;
            for (level, _, patch) in tree.patches() {
                let place = format!("slice {}, level {level}, {}", slice.id, patch.id());
                if let Err(problem) = check_patch(patch, self.report).await {
                    self.report.fault(place, problem);
                } else if let Some(problem) = self.blocks.copy_problem(patch.id()) {
                    self.report.degraded(place, problem);
                }
                self.progress.done.set(self.progress.done.get() + 1);
                yield_now().await;
            }
        }
    }

    /// Counts the live keys; none where damage hides some, which is reported elsewhere.
    async fn keys(&mut self, slices: &[Slice]) -> Result<()> {
        self.report.keys = None;
        let mut keys = 0;
        for slice in slices {
            match slice.count_live(self.now_ms, Hint::REFRESH).await {
                Ok(live) => keys += live,
                Err(error) if is_data_loss(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.report.keys = Some(keys);
        Ok(())
    }

    /// Reads every separated value.
    async fn values(&mut self, recovered: &Recovered) -> Result<()> {
        let headless = Headless::of(&self.inventory);
        let on_flash = OnFlash { blocks: &self.blocks, headless: &headless };
        let mut degraded = BTreeMap::new();
        for slice in &recovered.slices {
            let examined = examine(slice, &recovered.values, on_flash, self.now_ms).await?;
            self.report.values += examined.values;
            self.report.bytes += examined.bytes;
            for (key, problem) in examined.lost {
                let place = format!("slice {}, key `{}`", slice.id, key.escape_ascii());
                self.report.fault(place, problem);
            }
            degraded.extend(examined.degraded);
        }
        let in_use: BTreeSet<Superblock> =
            degraded.keys().flat_map(|id| self.blocks.superblocks(*id)).collect();
        let of_values = self.value_superblocks();
        for lost in &self.inventory.erase_headers_lost {
            if of_values.contains(&lost.superblock) && !in_use.contains(&lost.superblock) {
                self.report.remark(lost.superblock.to_string(), interrupted_erase(&lost.reason));
            }
        }
        for (id, problem) in degraded {
            self.report.degraded(format!("values, {id}"), problem);
        }
        Ok(())
    }

    /// Compares the parity of every group with its patches, which have been checked.
    async fn parity(&mut self) {
        for group in self.blocks.groups() {
            self.parity_of(&group).await;
            yield_now().await;
        }
    }

    async fn parity_of(&mut self, group: &ParityGroup) {
        let id = BlockId(group.parity);
        let agrees = self.blocks.parity_agrees(group, Hint::REFRESH).await;
        if let Some(problem) = self.blocks.copy_problem(id) {
            let place = format!("the parity of {} patches, {id}", group.members.len());
            self.report.degraded(place, problem);
        } else if !agrees && self.blocks.is_redundant() {
            self.report.degraded(format!("{id}"), "it differs from the XOR of its patches");
        }
    }
}

/// An interrupted erase of a released superblock leaves a damaged erase header, too.
fn interrupted_erase(reason: &str) -> String {
    format!("an erase was interrupted ({reason})")
}

/// The blocks that neither a tree nor the log refers to.
fn unreferred(recovered: &Recovered) -> impl Iterator<Item = BlockId> {
    recovered.dead.iter().chain(&recovered.orphans).copied()
}
