//! Parity that is missing or damaged, and groups of which patches were written anew.

use super::report::ParityDamage;
use crate::error::Result;
use crate::shard::Shard;
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_ftl::Hint;

/// Compares the parity of each group with its patches.
pub(super) async fn examine(shard: ShardId, blocks: &BlockLayer) -> Vec<ParityDamage> {
    let mut damaged = Vec::new();
    for group in blocks.groups() {
        let id = BlockId(group.parity);
        let agrees = blocks.parity_agrees(&group, Hint::COMPACTION).await;
        let differs = || (!agrees).then(|| "it is not that of its patches".to_owned());
        if let Some(problem) = blocks.copy_problem(id).or_else(differs) {
            damaged.push(ParityDamage { shard: shard.0, parity: id.to_string(), problem });
        }
    }
    damaged
}

/// Makes all groups whole, and lets them go on without the patches that were written anew.
pub(super) async fn repair(shard: &Shard) -> Result<Vec<ParityDamage>> {
    let damaged = examine(shard.id(), shard.blocks()).await;
    shard.unburden_groups().await?;
    while shard.restore_once().await? {}
    Ok(damaged)
}
