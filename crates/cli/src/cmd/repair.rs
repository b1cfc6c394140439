//! `softflash check --repair`: keeps all readable data, and reports what is lost.

use super::check::{Checked, OF_A_SERVER, check_all, print as print_check};
use super::check_volumes::{self, RepairedDomain, VolumesReport};
use crate::directories::{self, block_on};
use serde::Serialize;
use softflash_base::ShardId;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_datadir::{DataDir, DataDirError, OpenDir};
use softflash_device::Cut;
use softflash_store::check::Finding;
use softflash_store::repair::{self, OnLogLoss, ParityDamage, RepairReport, RepairedPatch};
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// The JSON output.
#[derive(Serialize)]
struct Outcome {
    /// A damaged copy of the device's label, which is rewritten unless this is a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The device was cut short; it is extended unless this is a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_short: Option<String>,
    /// Nothing is changed.
    #[serde(skip)]
    is_dry: bool,
    /// Shards and domains of volumes of which a cut has taken superblocks: no check can tell
    /// whether something of them is lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unproven: Vec<String>,
    /// Damage found before the repair.
    found: RepairReport,
    /// What was repaired; absent in a dry run and if there was nothing to repair.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<RepairReport>,
    /// The volumes before the repair; absent without volume units.
    #[serde(skip_serializing_if = "Option::is_none")]
    volumes_found: Option<VolumesReport>,
    /// The volumes whose map was repaired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    volumes_done: Vec<RepairedDomain>,
    /// The check after the repair.
    check: Checked,
    /// Whether keys and volumes are intact now and nothing was lost.
    ok: bool,
}

/// Prefix of damage in the table.
pub(super) const FOUND: &str = "found";

/// Finds damage, prints it, and repairs it unless this is a dry run.
pub fn run(
    path: &Path,
    dry_run: bool,
    on_log_loss: OnLogLoss,
    form: Form,
) -> Result<ExitCode, CliError> {
    let (directory, cut) = match dry_run {
        true => {
            let directory = directories::or_instead(OpenDir::open_to_try(path), OF_A_SERVER)?;
            let cut = softflash_device::cut_of(&directory.device_path())?;
            (directory, cut)
        }
        false => {
            let cut = extend(path)?;
            let directory = directories::or_instead(OpenDir::open(path), OF_A_SERVER)?;
            directory.device.mend_label()?;
            (directory, cut)
        }
    };
    let cut_units = cut.as_ref().map_or(0..0, |cut| cut.units.clone());
    let detail = &directory.device.info().detail;
    let label = detail.contains("label copy").then(|| detail.clone());
    let cut_short = cut.map(|cut| cut.remark);
    let unproven = unproven(&directory, &cut_units);
    let plan = on_device(&directory, async |device, layout, runtime| {
        repair::plan(device, layout, runtime, on_log_loss).await
    })?;
    let (volumes_found, findings) = match check_volumes::check(&directory)? {
        Some((report, findings)) => (Some(report), findings),
        None => (None, Vec::new()),
    };
    if form == Form::Table {
        let device = label.iter().chain(&cut_short).chain(&unproven);
        device.for_each(|problem| output::result(&format!("{FOUND}: {problem}")));
        print(&plan.report, FOUND);
        findings.iter().for_each(print_finding);
    }
    let found = plan.report.clone();
    let wanted = !dry_run && !found.is_clean() && found.failures.is_empty();
    let done = match wanted {
        false => None,
        true => Some(on_device(&directory, async |device, layout, runtime| {
            repair::carry_out(&plan, device, layout, runtime).await
        })?),
    };
    let volumes_done = match &volumes_found {
        Some(found) if !dry_run => check_volumes::repair(&directory, found)?,
        _ => Vec::new(),
    };
    drop(directory);
    let check = check_all(&directories::or_instead(OpenDir::open_to_look(path), OF_A_SERVER)?)?;
    let failed = done.iter().any(|done| !done.failures.is_empty());
    let lost = found.has_loss() || done.as_ref().is_some_and(RepairReport::has_loss);
    let ok = check.store.ok && !failed && !lost && unproven.is_empty();
    let outcome = Outcome {
        ok,
        label,
        cut_short,
        is_dry: dry_run,
        unproven,
        found,
        done,
        volumes_found,
        volumes_done,
        check,
    };
    match form {
        Form::Json => output::json(&outcome)?,
        Form::Table => conclude(&outcome),
    }
    Ok(if outcome.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Extends a device that is cut short; returns what was missing.
fn extend(path: &Path) -> Result<Option<Cut>, CliError> {
    // The lock of the directory first, as always.
    let data = DataDir::open(path).map_err(|error| match error {
        busy @ DataDirError::Busy { .. } => CliError::Failed(format!("{busy}, or {OF_A_SERVER}")),
        error => error.into(),
    })?;
    Ok(softflash_device::extend(&data.device_path())?)
}

/// The shards and domains that have lost superblocks to a cut. Where the newest of the log, or of
/// the frames, was among them, what is left looks as it did before that was written: no check can
/// tell. Copies on units that are whole can.
fn unproven(directory: &OpenDir, cut: &Range<u16>) -> Vec<String> {
    let is_cut = |unit: u16| cut.contains(&unit);
    let of_volumes = directory.domains.iter().filter(|domain| domain.units.iter().any(is_cut));
    let of_volumes = of_volumes.map(|domain| {
        let place = domain.place();
        format!(
            "volumes of {place}: superblocks of them were cut off; data may be lost without a trace"
        )
    });
    unproven_shards(directory, cut).into_iter().chain(of_volumes).collect()
}

/// The shards of [`unproven`].
pub(super) fn unproven_shards(directory: &OpenDir, cut: &Range<u16>) -> Vec<String> {
    let is_cut = |unit: u16| cut.contains(&unit);
    let layout = &directory.layout;
    let has_copies = layout.redundancy().is_some();
    let of_keys = (0..layout.shards).map(ShardId).filter(|shard| {
        let units = layout.units_of(*shard);
        let is_told = has_copies && !units.iter().all(is_cut);
        units.iter().any(is_cut) && !is_told
    });
    let of_keys = of_keys.map(|shard| {
        let shard = shard.0;
        format!("shard {shard}: superblocks of it were cut off; keys may be lost without a trace")
    });
    of_keys.collect()
}

pub(super) fn on_device<R>(
    directory: &OpenDir,
    work: impl AsyncFnOnce(
        &Arc<dyn softflash_device::Device>,
        &softflash_store::StoreLayout,
        &softflash_runtime::RuntimeHandle,
    ) -> R,
) -> Result<R, CliError> {
    block_on(
        |runtime| async move { Ok(work(&directory.device, &directory.layout, &runtime).await) },
    )
}

fn conclude(outcome: &Outcome) {
    if let Some(done) = &outcome.done {
        print(done, "repaired");
    }
    outcome.volumes_done.iter().for_each(|done| output::result(&check_volumes::done(done)));
    print_check(&outcome.check);
    output::pairs([("repair", verdict(outcome).to_owned())]);
}

fn verdict(outcome: &Outcome) -> &'static str {
    let of_volumes = outcome.volumes_found.as_ref().is_none_or(|found| found.ok);
    let is_clean = outcome.found.is_clean() && of_volumes;
    let is_done = outcome.done.is_some() || !outcome.volumes_done.is_empty();
    let is_cut = outcome.cut_short.is_some();
    match (is_done, is_clean) {
        _ if outcome.is_dry && is_cut => {
            "nothing was changed; a repair gives the device its size again, with empty flash at its end"
        }
        _ if outcome.is_dry && outcome.label.is_some() => {
            "nothing was changed; a repair writes both copies of the label"
        }
        (_, true) if outcome.label.is_some() && outcome.ok => "the label is intact again",
        (_, true) if is_cut && outcome.ok => "the device has its size again",
        (_, true) if !outcome.unproven.is_empty() => {
            "the device has its size again; data that were cut off may be lost"
        }
        (_, true) => "nothing to repair",
        (false, false) if is_cut => "the device has its size again; nothing else was changed",
        (false, false) => "nothing was changed",
        (true, _) if outcome.ok => "repaired; nothing was lost",
        (true, _) if outcome.check.store.ok => "repaired; the data named above are lost",
        (true, _) => "not all damage could be repaired",
    }
}

fn print_finding(finding: &Finding) {
    output::result(&format!("{FOUND}: {}: {}", finding.place, finding.problem));
}

fn print(report: &RepairReport, verb: &str) {
    lines(report, verb).iter().for_each(|line| output::result(line));
    if verb == FOUND && report.failures.iter().any(|failure| failure.contains("log of shard")) {
        output::result(
            "With --accept-log-loss, the intact parts of a damaged log are kept, and the lost parts are given up.",
        );
    }
}

/// The damage in a report, line by line.
pub(super) fn lines(report: &RepairReport, verb: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for repaired in &report.patches {
        lines.push(format!("{verb}: {}: {}", repaired.place(), repaired.problem));
        lines.extend(lines_of(repaired).iter().map(|line| format!("  {line}")));
    }
    for value in &report.values {
        let (shard, key, problem) = (value.shard, &value.key.0, &value.problem);
        lines.push(format!("{verb}: shard {shard}, value of `{key}`: {problem}"));
        lines.push(format!("  lost key: `{key}`"));
    }
    for damage in &report.value_blocks {
        let (shard, block, problem) = (damage.shard, &damage.block, &damage.problem);
        lines.push(format!("{verb}: shard {shard}, values, {block}: {problem}"));
    }
    for log in &report.logs {
        lines.push(format!("{verb}: shard {}: {}", log.shard, log.problem));
        if log.transactions_dropped > 0 {
            let dropped = log.transactions_dropped;
            lines.push(format!(
                "  parts of transactions dropped because their commit is lost: {dropped}"
            ));
        }
    }
    for damage in &report.parities {
        let ParityDamage { shard, parity, problem } = damage;
        lines.push(format!("{verb}: shard {shard}, parity, {parity}: {problem}"));
    }
    lines.extend(report.failures.iter().map(|failure| format!("cannot be repaired: {failure}")));
    lines
}

fn lines_of(repaired: &RepairedPatch) -> Vec<String> {
    let number = |count: Option<u64>| {
        count.map_or("an unknown number".to_owned(), |count| count.to_string())
    };
    let mut lines = vec![format!(
        "records kept: {}, lost: {}; blocks lost: {}",
        repaired.records_kept,
        number(repaired.records_lost),
        number(repaired.blocks_lost)
    )];
    lines.extend(repaired.ranges.iter().map(|range| format!("lost keys: {range}")));
    lines.extend(repaired.torn_keys.iter().map(|key| format!("lost key: `{}`, in part", key.0)));
    if repaired.older_values_hidden > 0 {
        let hidden = repaired.older_values_hidden;
        lines.push(format!("older values of lost keys, deleted: {hidden}"));
    }
    if repaired.older_values_may_return {
        lines.push("older values of lost keys, and deleted keys, may reappear".to_owned());
    }
    lines
}
