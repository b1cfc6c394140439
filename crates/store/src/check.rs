//! Offline check of all data of a store on its device. It only reads.

use crate::clock::{NOTABLE_LEAD_MS, span};
use crate::error::{Result, is_data_loss};
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::shard::recovery::OnLogLoss;
use crate::shard::recovery::decisions::Decisions;
use crate::shard::recovery::examination::{Examination, Examined};
use crate::shard::values::examine::examine;
use crate::shard::values::ledger::Ledger;
use futures_util::future::join_all;
use serde::Serialize;
use softflash_base::{ShardId, checksum};
use softflash_blocks::{BlockId, BlockLayer, ParityGroup};
use softflash_device::Device;
use softflash_ftl::{Hint, Owner, Superblock};
use softflash_runtime::{RuntimeHandle, yield_now};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The place: a shard, a superblock, a patch.
    pub place: String,
    /// The problem.
    pub problem: String,
    /// Whether durable data is damaged. A write that a power cut interrupted is not an error.
    pub is_error: bool,
    /// Whether the data are intact, and a copy or the parity is missing or damaged.
    pub is_degraded: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// Whether all durable data is present and intact.
    pub ok: bool,
    /// Shards checked.
    pub shards: u16,
    /// Patches read without a problem.
    pub patches: u64,
    /// Live keys that have not expired; none where damage hides some.
    pub keys: Option<u64>,
    /// Records verified, superseded ones included.
    pub records: u64,
    /// Bytes of records and separated values verified.
    pub bytes: u64,
    /// Separated values read without a problem; fragments count one by one.
    pub values: u64,
    /// Keys and deletions in the log that are in no patch.
    pub log_keys: u64,
    /// Blocks that neither a tree nor the log refers to; the next start releases them.
    pub orphans: u64,
    /// The time that the logs record, the latest of all shards, in milliseconds since the Unix
    /// epoch.
    pub clock_ms: u64,
    /// The problem.
    pub findings: Vec<Finding>,
}

/// The progress of a check.
#[derive(Default)]
pub struct Progress {
    /// Patches to read.
    pub total: Cell<u64>,
    /// Patches read.
    pub done: Cell<u64>,
}

/// Checks a whole store: headers, logs, manifests, and every record of every patch.
pub async fn check(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
    progress: &Progress,
) -> CheckReport {
    let mut report = CheckReport { shards: layout.shards, ..CheckReport::default() };
    if let Some(problem) = layout.problem() {
        report.fault("layout", problem);
        return report;
    }
    let decisions = Decisions::default();
    // Concurrently: the shards ask each other for the outcome of transactions.
    let shards = (0..layout.shards).map(|shard| {
        let (device, decisions, runtime) = (Arc::clone(&device), &decisions, runtime.clone());
        async move {
            let mut part = CheckReport::default();
            let shard = ShardId(shard);
            if let Err(error) =
                check_shard(shard, device, layout, decisions, runtime, progress, &mut part).await
            {
                decisions.abandon(shard, &error);
                part.fault(format!("shard {shard}"), error.to_string());
            }
            part
        }
    });
    report.keys = Some(0);
    for part in join_all(shards).await {
        report.keys = report.keys.zip(part.keys).map(|(sum, keys)| sum + keys);
        report.patches += part.patches;
        report.records += part.records;
        report.bytes += part.bytes;
        report.values += part.values;
        report.log_keys += part.log_keys;
        report.orphans += part.orphans;
        report.clock_ms = report.clock_ms.max(part.clock_ms);
        report.findings.extend(part.findings);
    }
    let lead_ms = report.clock_ms.saturating_sub(runtime.wall_ms());
    if lead_ms >= NOTABLE_LEAD_MS {
        report.remark(
            "the clock",
            format!(
                "the store's clock is {} ahead of this machine's, and keys expire by it; \
                 `softflash clock` shows both and can set it back",
                span(lead_ms)
            ),
        );
    }
    report.ok = !report.findings.iter().any(|finding| finding.is_error);
    report
}

impl CheckReport {
    fn fault(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        let (place, problem) = (place.into(), problem.into());
        self.findings.push(Finding { place, problem, is_error: true, is_degraded: false });
    }

    fn degraded(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        let (place, problem) = (place.into(), problem.into());
        self.findings.push(Finding { place, problem, is_error: true, is_degraded: true });
    }

    fn remark(&mut self, place: impl Into<String>, problem: impl Into<String>) {
        let (place, problem) = (place.into(), problem.into());
        self.findings.push(Finding { place, problem, is_error: false, is_degraded: false });
    }
}

async fn check_shard(
    shard: ShardId,
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    decisions: &Decisions,
    runtime: RuntimeHandle,
    progress: &Progress,
    report: &mut CheckReport,
) -> Result<()> {
    let on_log_loss = OnLogLoss::Refuse;
    let examination =
        Examination { shard, device: &device, layout, decisions, runtime: &runtime, on_log_loss };
    let Examined { flash, inventory, blocks, found, recovered, now_ms, recorded_ms } =
        examination.run().await?;
    report.clock_ms = recorded_ms;
    for kept in &inventory.of_others {
        let owner = match kept.owner {
            Some(Owner { layer, domain }) => format!("layer {layer}, domain {domain}"),
            None => "unknown, because its opening header is damaged".to_owned(),
        };
        let problem = format!("it is not the store's (owner: {owner}) and is kept");
        report.remark(kept.superblock.to_string(), problem);
    }
    for torn in &inventory.damaged {
        report.remark(torn.superblock.to_string(), torn.reason.clone());
    }
    let unreferred: BTreeSet<BlockId> = match &recovered {
        Ok(recovered) => recovered.dead.iter().chain(&recovered.orphans).copied().collect(),
        Err(_) => BTreeSet::new(),
    };
    let referred = found.iter().map(|found| found.id).filter(|id| !unreferred.contains(id));
    let referred: Vec<Superblock> = referred.flat_map(|id| blocks.superblocks(id)).collect();
    for lost in &inventory.erase_headers_lost {
        let (place, reason) = (lost.superblock.to_string(), &lost.reason);
        // An interrupted erase of a released superblock also leaves a damaged erase header.
        match referred.contains(&lost.superblock) {
            true => report.fault(
                place,
                format!("the erase header is damaged ({reason}); the opening header replaces it"),
            ),
            false => report.remark(place, format!("an erase was interrupted ({reason})")),
        }
    }
    let result = match recovered {
        Err(error) => Err(error),
        Ok(recovered) => {
            report.orphans = (recovered.dead.len() + recovered.orphans.len()) as u64;
            if let Some(torn) = &recovered.torn {
                report.remark(format!("shard {shard}"), torn);
            }
            if recovered.cut {
                report.remark(format!("shard {shard}"), "an unacknowledged transaction is dropped");
            }
            // Releases unused blocks as a start does, in memory only: the remaining free space
            // shows which units take copies.
            unreferred.iter().for_each(|id| blocks.delete(*id));
            inventory.damaged.iter().for_each(|torn| flash.release(&torn.superblock));
            for stale in &recovered.stale_units {
                report.fault(format!("unit {}", stale.unit), stale.to_string());
            }
            for (number, block) in recovered.uneven_segments(&blocks) {
                if let Some(problem) = blocks.copy_problem(block) {
                    let place = format!("segment {number} of the log of shard {shard}, {block}");
                    report.degraded(place, problem);
                }
            }
            let trees: Vec<_> = recovered.slices.iter().map(Slice::tree).collect();
            let count = trees.iter().map(|tree| tree.patches().count() as u64).sum::<u64>();
            progress.total.set(progress.total.get() + count);
            for (slice, tree) in recovered.slices.iter().zip(&trees) {
                report.log_keys += slice.memory_keys() as u64;
                for (level, _, patch) in tree.patches() {
                    let place = format!("slice {}, level {level}, {}", slice.id, patch.id());
                    if let Err(problem) = check_patch(patch, report).await {
                        report.fault(place, problem);
                    } else if let Some(problem) = blocks.copy_problem(patch.id()) {
                        report.degraded(place, problem);
                    }
                    progress.done.set(progress.done.get() + 1);
                    yield_now().await;
                }
            }
            report.keys = count_live(&recovered.slices, now_ms).await?;
            let mut degraded = BTreeMap::new();
            for slice in &recovered.slices {
                let facts = (&recovered.values, &blocks, now_ms);
                degraded.extend(check_values(slice, facts, report).await?);
            }
            for (id, problem) in degraded {
                report.degraded(format!("values, {id}"), problem);
            }
            for group in blocks.groups() {
                check_parity(&group, &blocks, report).await;
                yield_now().await;
            }
            Ok(())
        }
    };
    flash.stop();
    result
}

/// Counts the live keys of a shard; none where damage hides some, which is reported elsewhere.
async fn count_live(slices: &[Slice], now_ms: u64) -> Result<Option<u64>> {
    let mut keys = 0;
    for slice in slices {
        match slice.count_live(now_ms, Hint::COMPACTION).await {
            Ok(live) => keys += live,
            Err(error) if is_data_loss(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(keys))
}

/// Reads every separated value of a slice; returns the value blocks with a missing or damaged copy.
async fn check_values(
    slice: &Slice,
    (ledger, blocks, now_ms): (&Ledger, &BlockLayer, u64),
    report: &mut CheckReport,
) -> Result<BTreeMap<BlockId, String>> {
    let examined = examine(slice, ledger, blocks, now_ms).await?;
    report.values += examined.values;
    report.bytes += examined.bytes;
    for (key, problem) in examined.lost {
        report.fault(format!("slice {}, key `{}`", slice.id, key.escape_ascii()), problem);
    }
    Ok(examined.degraded)
}

/// Compares the parity of a group with its patches, which have been checked.
async fn check_parity(group: &ParityGroup, blocks: &BlockLayer, report: &mut CheckReport) {
    let id = BlockId(group.parity);
    let agrees = blocks.parity_agrees(group, Hint::COMPACTION).await;
    if let Some(problem) = blocks.copy_problem(id) {
        report.degraded(format!("the parity of {} patches, {id}", group.members.len()), problem);
    } else if !agrees && blocks.is_redundant() {
        report.degraded(format!("{id}"), "it differs from the XOR of its patches");
    }
}

/// Reads a whole patch: verifies every checksum, the order, the counts, and that index and filter
/// find every key.
pub(crate) async fn check_patch(patch: &Patch, report: &mut CheckReport) -> Result<(), String> {
    let index = patch.index().map_err(|error| error.to_string())?;
    if patch.has_other_copy() && !patch.has_whole_metadata().await {
        return Err("the metadata is damaged in both copies".to_owned());
    }
    let mut last = None;
    let mut entries = 0;
    for number in 0..index.block_count() {
        let block = patch
            .read_block_everywhere(number, Hint::COMPACTION)
            .await
            .map_err(|error| error.to_string())?;
        for record in block.into_records() {
            let record = record.map_err(|error| format!("block {number}: {error}"))?;
            if last.as_ref().is_some_and(|last| record.order(last).is_le()) {
                return Err(format!("block {number}: records are not in order"));
            }
            if !index.may_contain(checksum::hash64(&record.key)) {
                return Err(format!("block {number}: the filter misses a key"));
            }
            if index.locate(&record.key).is_none_or(|found| found > number) {
                return Err(format!("block {number}: the index misses a key"));
            }
            entries += 1;
            report.bytes += (record.key.len() + record.value().len()) as u64;
            last = Some(record);
        }
    }
    if entries != index.entries() {
        return Err(format!("{entries} records found, {} expected", index.entries()));
    }
    report.records += entries;
    report.patches += 1;
    Ok(())
}
