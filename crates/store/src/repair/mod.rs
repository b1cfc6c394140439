//! Repair of a store with damaged media: readable records are kept, lost ones are reported.
//!
//! A damaged patch is rewritten with its readable records, in its level and run. An edit in the log
//! replaces the old patch by the new ones, and its space is released when the edit is durable.
//! These are the steps of a compaction, so that a power cut leaves the old state or the new one.
//!
//! Where the log has lost frames, the caller may choose to apply the whole frames behind them: the
//! state may then mix writes from before and after the loss. All of it goes to patches, and a new
//! log begins.

mod image;
mod parity;
mod report;
mod rewrite_range;
mod salvage;
mod stale;
mod torn;
mod values;

pub use report::{
    Bound, KeyText, LogDamage, LostRange, LostValue, ParityDamage, RepairReport, RepairedPatch,
    ValueBlockDamage,
};

use crate::error::{Result, StoreError};
use crate::format::record::Record;
use crate::headless::Headless;
use crate::kv::patch::Patch;
use crate::kv::slice::Slice;
use crate::layout::StoreLayout;
use crate::options::{ClockSource, StoreOptions};
use crate::shard::recovery::LogLoss;
pub use crate::shard::recovery::OnLogLoss;
use crate::shard::recovery::decisions::Decisions;
use crate::shard::recovery::examination::{Examination, Examined};
use crate::shard::values::examine::OnFlash;
use crate::shard::{RepairEdits, Shard};
use crate::store::open_all_for_repair;
use futures_util::future::join_all;
use rewrite_range::{RewriteRange, rewrite_ranges_of};
use salvage::Source;
use softflash_base::ShardId;
use softflash_blocks::{BlockId, BlockLayer};
use softflash_device::Device;
use softflash_ftl::{Inventory, Superblock};
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;
use std::sync::Arc;

/// The findings of an examination.
pub struct Plan {
    /// The report of the examination.
    pub report: RepairReport,
    /// Facts about the flash, by shard.
    facts: Vec<Facts>,
    on_log_loss: OnLogLoss,
}

/// Examines the store and reports the work of a repair, without a change.
pub async fn plan(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
    on_log_loss: OnLogLoss,
) -> Plan {
    let (report, facts) = examine_all(device, layout, runtime, on_log_loss).await;
    Plan { report, facts, on_log_loss }
}

/// Repairs the store. If a shard cannot be repaired, nothing is changed. Call it on another
/// executor than [`plan`], whose tasks hold the device until that executor is dropped.
pub async fn carry_out(
    plan: &Plan,
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
) -> RepairReport {
    if plan.report.is_clean() || !plan.report.failures.is_empty() {
        return plan.report.clone();
    }
    let logs = plan.report.logs.clone();
    let mut report = RepairReport { has_changed: true, logs, ..RepairReport::default() };
    let clock = ClockSource::Recorded;
    let options = StoreOptions { scrub: None, clock, ..StoreOptions::default() };
    let device = Arc::clone(device);
    let opened = open_all_for_repair(device, layout, &options, runtime, plan.on_log_loss).await;
    let stores = match opened {
        Ok(stores) => stores,
        Err(error) => {
            report.failures.push(error.to_string());
            return report;
        }
    };
    for (store, facts) in stores.iter().zip(&plan.facts) {
        let shard = store.local();
        let mut part = RepairReport::default();
        let repaired = repair_shard(shard, facts, &mut part).await;
        let closed = store.close().await;
        part.failures.extend(repaired.and(closed).err().map(|error| failure(shard.id(), &error)));
        report.merge(part);
    }
    report
}

fn failure(shard: ShardId, error: &StoreError) -> String {
    format!("shard {shard}: {error}")
}

/// Facts about the flash of a shard, besides its blocks.
#[derive(Default)]
struct Facts {
    /// Superblocks whose block is unknown.
    unknown: Vec<Superblock>,
    /// Superblocks whose erase header is lost.
    headless: Headless,
    /// The log must be replaced by a new one.
    log_is_damaged: bool,
}

impl Facts {
    fn of(inventory: &Inventory) -> Facts {
        Facts {
            unknown: inventory.damaged.iter().map(|damaged| damaged.superblock).collect(),
            headless: Headless::of(inventory),
            log_is_damaged: false,
        }
    }

    fn source<'a>(&'a self, blocks: &'a BlockLayer) -> Source<'a> {
        Source { blocks, unknown: &self.unknown, headless: &self.headless }
    }
}

async fn examine_all(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
    on_log_loss: OnLogLoss,
) -> (RepairReport, Vec<Facts>) {
    let mut report = RepairReport::default();
    if let Some(problem) = layout.problem() {
        report.failures.push(problem);
        return (report, Vec::new());
    }
    let decisions = Decisions::default();
    let shards = (0..layout.shards).map(|number| {
        let decisions = &decisions;
        async move {
            let mut part = RepairReport::default();
            let shard = ShardId(number);
            let spec = Examination { shard, device, layout, decisions, runtime, on_log_loss };
            let examined = examine_shard(spec, &mut part).await;
            let facts = examined.unwrap_or_else(|error| {
                decisions.abandon(shard, &error);
                part.failures.push(failure(shard, &error));
                Facts::default()
            });
            (part, facts)
        }
    });
    let mut all = Vec::new();
    for (part, facts) in join_all(shards).await {
        report.merge(part);
        all.push(facts);
    }
    (report, all)
}

async fn examine_shard(examination: Examination<'_>, report: &mut RepairReport) -> Result<Facts> {
    let shard = examination.shard;
    let Examined { flash, inventory, blocks, recovered, now_ms, .. } = examination.run().await?;
    let examined = match recovered {
        Err(error) => Err(error),
        Ok(recovered) => {
            let mut facts = Facts::of(&inventory);
            note_log_loss(shard, &recovered.log_loss, &mut facts, report);
            for (number, block) in &recovered.resume.segments {
                note_segment(shard, *number, *block, &blocks, &mut facts, report);
            }
            for (number, block) in recovered.uneven_segments(&blocks) {
                if let Some(problem) = blocks.copy_problem(block) {
                    facts.log_is_damaged = true;
                    let problem = format!("segment {number} of the log, {block}: {problem}");
                    report.logs.push(whole_log(shard, problem));
                }
            }
            let mut walked = Ok(());
            for slice in &recovered.slices {
                walked =
                    walked.and(repair_slice(shard, slice, &facts, &blocks, None, report).await);
            }
            let on_flash = OnFlash { blocks: &blocks, headless: &facts.headless };
            let values = (&recovered.values, on_flash, now_ms);
            let examined = values::examine_values(shard, &recovered.slices, values, report).await;
            report.parities = parity::examine(shard, &blocks).await;
            walked = walked.and(examined.map(|_| ()));
            walked.map(|()| facts)
        }
    };
    flash.stop();
    examined
}

/// Reports lost frames. Such a log is replaced once its remaining events are in patches.
fn note_log_loss(shard: ShardId, loss: &LogLoss, facts: &mut Facts, report: &mut RepairReport) {
    if loss.frames.is_empty() && loss.transactions == 0 {
        return;
    }
    facts.log_is_damaged = true;
    let names: Vec<String> =
        loss.frames.iter().map(|lost| format!("{} to {}", lost.start, lost.end - 1)).collect();
    let problem = match (loss.is_whole, names.is_empty()) {
        (true, _) => {
            "the whole log is lost, with all data that was only in the log: the shard starts empty"
                .into()
        }
        (false, true) => {
            "the log has transactions whose commit is in another shard's log, which is damaged"
                .into()
        }
        (false, false) => format!(
            "frames {} of the log are lost; the state may mix what was written before and after them",
            names.join(", ")
        ),
    };
    report.logs.push(LogDamage {
        shard: shard.0,
        problem,
        frames_lost: loss.frames.clone(),
        transactions_dropped: loss.transactions,
        has_loss: true,
    });
}

/// Reports a needed segment whose superblock has lost its erase header. The log is replaced; the
/// segment's contents are kept.
fn note_segment(
    shard: ShardId,
    number: u64,
    block: BlockId,
    blocks: &BlockLayer,
    facts: &mut Facts,
    report: &mut RepairReport,
) {
    if let Some(problem) = facts.headless.problem(blocks, block) {
        facts.log_is_damaged = true;
        report.logs.push(whole_log(shard, format!("segment {number} of the log: {problem}")));
    }
}

/// The report of a damaged log without lost data.
fn whole_log(shard: ShardId, problem: String) -> LogDamage {
    LogDamage {
        shard: shard.0,
        problem,
        frames_lost: Vec::new(),
        transactions_dropped: 0,
        has_loss: false,
    }
}

async fn repair_shard(shard: &Shard, facts: &Facts, report: &mut RepairReport) -> Result<()> {
    let edits = RepairEdits::of(shard);
    for slice in shard.slices() {
        repair_slice(shard.id(), slice, facts, shard.blocks(), Some(&edits), report).await?;
    }
    values::repair_values(shard, &facts.headless, report).await?;
    report.parities = parity::repair(shard).await?;
    if facts.log_is_damaged { edits.release_old_log().await } else { Ok(()) }
}

/// Examines every run of a slice, from the oldest on, and rewrites damaged patches if a writer is
/// given.
async fn repair_slice(
    shard: ShardId,
    slice: &Slice,
    facts: &Facts,
    blocks: &BlockLayer,
    writer: Option<&RepairEdits<'_>>,
    report: &mut RepairReport,
) -> Result<()> {
    let tree = slice.tree();
    let mut runs: Vec<(usize, u64)> = tree.patches().map(|(level, run, _)| (level, run)).collect();
    runs.dedup();
    drop(tree);
    for (level, number) in runs.into_iter().rev() {
        let tree = slice.tree();
        let run = tree
            .levels
            .get(level)
            .and_then(|level| level.runs.iter().find(|run| run.number == number).map(Rc::clone));
        let Some(run) = run else { continue };
        for range in rewrite_ranges_of(&run, &facts.source(blocks)).await? {
            let (old, records) = replacement(shard, slice, (level, number), range, report).await?;
            if let Some(writer) = writer {
                let place = (level as u8, number);
                writer.replace_patches(slice, place, &old, records).await?;
            }
        }
    }
    Ok(())
}

/// Reports the damage of a range; returns its patches and the records that replace them.
async fn replacement(
    shard: ShardId,
    slice: &Slice,
    (level, run): (usize, u64),
    RewriteRange { patches, before, after, joined_before, joined_after }: RewriteRange,
    report: &mut RepairReport,
) -> Result<(Vec<Rc<Patch>>, Vec<Record>)> {
    let (mut old, mut records) = (Vec::new(), Vec::new());
    for salvaged in patches {
        let below = stale::look_below(&slice.tree(), (level, run), &salvaged).await?;
        let ranges = salvaged.ranges(before.as_deref(), after.as_deref());
        let kept = salvaged.records.len() as u64;
        report.patches.push(RepairedPatch {
            shard: shard.0,
            slice: slice.id.0,
            level,
            patch: salvaged.patch.id().to_string(),
            problem: salvaged.problem,
            records_kept: kept,
            records_lost: salvaged.entries.map(|entries| entries.saturating_sub(kept)),
            blocks_lost: salvaged.blocks_lost,
            ranges,
            torn_keys: Vec::new(),
            older_values_hidden: below.deletions.len() as u64,
            older_values_may_return: below.is_unknown,
        });
        old.push(salvaged.patch);
        records.extend(salvaged.records);
        records.extend(below.deletions);
    }
    records.sort_by(Record::order);
    records.dedup_by(|a, b| a.order(b).is_eq());
    let torn =
        torn::delete_torn_values(&mut records, joined_before.as_ref(), joined_after.as_ref());
    if let Some(repaired) = report.patches.last_mut() {
        repaired.torn_keys = torn.iter().map(|key| KeyText::from(&key[..])).collect();
    }
    Ok((old, records))
}
