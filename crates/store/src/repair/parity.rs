//! Repair of missing or damaged parity, and of groups whose patches were rewritten.

use super::report::ParityDamage;
use crate::error::Result;
use crate::shard::{ParityKeeper, Shard};
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;

/// Compares the parity of each group with its patches.
pub(super) async fn examine(shard: ShardId, blocks: &BlockLayer) -> Vec<ParityDamage> {
    let mut damaged = Vec::new();
    for group in blocks.groups() {
        let id = BlockId(group.parity);
        let agrees = blocks.parity_agrees(&group, Hint::REFRESH).await;
        let differs = || (!agrees).then(|| "it differs from the XOR of its patches".to_owned());
        if let Some(problem) = blocks.copy_problem(id).or_else(differs) {
            damaged.push(ParityDamage { shard: shard.0, parity: id.to_string(), problem });
        }
    }
    damaged
}

/// Repairs all groups, and removes rewritten patches from them.
pub(super) async fn repair(shard: &Shard) -> Result<Vec<ParityDamage>> {
    let damaged = examine(shard.id(), shard.blocks()).await;
    let keeper = ParityKeeper::of(shard);
    keeper.rewrite_groups().await?;
    while keeper.reconstruct_once().await? {}
    Ok(damaged)
}
