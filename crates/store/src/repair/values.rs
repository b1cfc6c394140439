//! Separated values: a key whose value is lost is deleted; values of a block that lacks a copy are
//! moved.

use super::report::{KeyText, LostValue, RepairReport, ValueBlockDamage};
use crate::error::Result;
use crate::headless::Headless;
use crate::kv::slice::Slice;
use crate::shard::values::examine::{OnFlash, examine};
use crate::shard::values::ledger::Ledger;
use crate::shard::values::{Collection, Mover};
use crate::shard::{Committer, Shard, Writes};
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_blocks::BlockId;
use std::collections::BTreeMap;

/// Reports the lost values of slices and the damaged value blocks; returns the keys and the blocks.
pub(super) async fn examine_values(
    shard: ShardId,
    slices: &[Slice],
    (ledger, on_flash, now_ms): (&Ledger, OnFlash<'_>, u64),
    report: &mut RepairReport,
) -> Result<(Vec<Bytes>, Vec<BlockId>)> {
    let (mut keys, mut degraded) = (Vec::new(), BTreeMap::new());
    for slice in slices {
        let examined = examine(slice, ledger, on_flash, now_ms).await?;
        degraded.extend(examined.degraded);
        for (key, problem) in examined.lost {
            let (text, slice) = (KeyText::from(&key[..]), slice.id.0);
            report.values.push(LostValue { shard: shard.0, slice, key: text, problem });
            keys.push(key);
        }
    }
    let damaged = degraded.keys().copied().collect();
    for (id, problem) in degraded {
        let block = id.to_string();
        report.value_blocks.push(ValueBlockDamage { shard: shard.0, block, problem });
    }
    Ok((keys, damaged))
}

/// Deletes the keys of lost values, and moves the values of damaged blocks.
pub(super) async fn repair_values(
    shard: &Shard,
    headless: &Headless,
    report: &mut RepairReport,
) -> Result<()> {
    let (keys, damaged) = {
        // Without clients and background tasks nothing changes the ledger meanwhile.
        let ledger = std::mem::take(&mut *shard.value_log().ledger().borrow_mut());
        let on_flash = OnFlash { blocks: shard.blocks(), headless };
        let facts = (&ledger, on_flash, shard.now_ms());
        let examined = examine_values(shard.id(), shard.slices(), facts, report).await;
        *shard.value_log().ledger().borrow_mut() = ledger;
        examined?
    };
    if !keys.is_empty() {
        let deletions: Writes = keys.into_iter().map(|key| (key, None)).collect();
        let seq = Committer::of(shard).commit(deletions, &[], false).await?;
        shard.log().written_soon(seq).await?;
    }
    for block in damaged {
        Mover::of(shard).empty_block(block.0).await?;
    }
    if !report.value_blocks.is_empty() {
        shard.log().written_soon(shard.last_seq()).await?;
        let collection = Collection::of(shard);
        while collection.collect_once().await? {}
    }
    Ok(())
}
