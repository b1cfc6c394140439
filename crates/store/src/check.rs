//! Offline check of all data of a store on its device. It only reads.

mod shard;

use crate::clock::{NOTABLE_LEAD_MS, span};
use crate::kv::patch::Patch;
use crate::layout::StoreLayout;
use crate::shard::recovery::OnLogLoss;
use crate::shard::recovery::decisions::Decisions;
use crate::shard::recovery::examination::Examination;
use futures_util::future::join_all;
use serde::Serialize;
use shard::check_shard;
use softflash_base::{ShardId, checksum};
use softflash_device::Device;
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::cell::Cell;
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
            let (shard, on_log_loss) = (ShardId(shard), OnLogLoss::Refuse);
            let (device, runtime) = (&device, &runtime);
            let examination =
                Examination { shard, device, layout, decisions, runtime, on_log_loss };
            if let Err(error) = check_shard(examination, progress, &mut part).await {
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
            .read_block_everywhere(number, Hint::REFRESH)
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
