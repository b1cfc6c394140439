//! `softflash check --repair`

use super::check::{check_store, print as print_check};
use crate::embedded::{OpenDir, block_on};
use crate::error::CliError;
use crate::output::{self, Form};
use serde::Serialize;
use softflash_store::CheckReport;
use softflash_store::repair::{self, OnLogLoss, ParityDamage, RepairReport, RepairedPatch};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// What is printed for programs.
#[derive(Serialize)]
struct Outcome {
    /// A copy of the device's label that was damaged, and is written anew unless only a look was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// What was found before anything was changed.
    found: RepairReport,
    /// What was done; absent where only a look was wanted or nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    done: Option<RepairReport>,
    /// The check afterwards.
    check: CheckReport,
    /// Whether the store is whole now and nothing was lost.
    ok: bool,
}

/// What is said of damage before it is repaired.
const FOUND: &str = "found";

/// Looks for damage, prints it, and repairs it unless it is a dry run.
pub fn run(
    path: &Path,
    dry_run: bool,
    on_log_loss: OnLogLoss,
    form: Form,
) -> Result<ExitCode, CliError> {
    const INSTEAD: &str = "repair it after stopping the server";
    let directory = match dry_run {
        true => OpenDir::open_to_look(path, INSTEAD)?,
        false => OpenDir::open(path, INSTEAD)?,
    };
    let detail = &directory.device.info().detail;
    let label = detail.contains("label copy").then(|| detail.clone());
    let plan = on_device(&directory, async |device, layout, runtime| {
        repair::plan(device, layout, runtime, on_log_loss).await
    })?;
    if form == Form::Table {
        label.iter().for_each(|label| output::result(&format!("found: {label}")));
        print(&plan.report, FOUND);
    }
    let found = plan.report.clone();
    let wanted = !dry_run && !found.is_clean() && found.failures.is_empty();
    let done = match wanted {
        false => None,
        true => Some(on_device(&directory, async |device, layout, runtime| {
            repair::carry_out(&plan, device, layout, runtime).await
        })?),
    };
    drop(directory);
    let check = check_store(&OpenDir::open_to_look(path, INSTEAD)?)?;
    let failed = done.iter().any(|done| !done.failures.is_empty());
    let lost = found.has_loss() || done.as_ref().is_some_and(RepairReport::has_loss);
    let outcome = Outcome { ok: check.ok && !failed && !lost, label, found, done, check };
    match form {
        Form::Json => output::json(&outcome)?,
        Form::Table => conclude(&outcome),
    }
    Ok(if outcome.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn on_device<R>(
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
    print_check(&outcome.check);
    let verdict = match (&outcome.done, outcome.found.is_clean()) {
        (_, true) if outcome.label.is_some() && outcome.ok => "the label is whole again",
        (_, true) => "nothing to repair",
        (None, false) => "nothing was changed",
        (Some(_), _) if outcome.ok => "repaired; nothing was lost",
        (Some(_), _) if outcome.check.ok => "repaired; what is named above is lost",
        (Some(_), _) => "not all could be repaired",
    };
    output::pairs([("repair", verdict.to_owned())]);
}

fn print(report: &RepairReport, verb: &str) {
    for mended in &report.patches {
        output::result(&format!("{verb}: {}: {}", mended.place(), mended.problem));
        lines_of(mended).iter().for_each(|line| output::result(&format!("  {line}")));
    }
    for log in &report.logs {
        output::result(&format!("{verb}: shard {}: {}", log.shard, log.problem));
        if log.transactions_dropped > 0 {
            let dropped = log.transactions_dropped;
            output::result(&format!(
                "  parts of transactions dropped, as their commit is lost: {dropped}"
            ));
        }
    }
    for damage in &report.parities {
        let ParityDamage { shard, parity, problem } = damage;
        output::result(&format!("{verb}: shard {shard}, parity, {parity}: {problem}"));
    }
    for failure in &report.failures {
        output::result(&format!("cannot be repaired: {failure}"));
    }
    if verb == FOUND && report.failures.iter().any(|failure| failure.contains("log of shard")) {
        output::result(
            "With --accept-log-loss, what is whole of a damaged log is kept, and what is lost is given up.",
        );
    }
}

fn lines_of(mended: &RepairedPatch) -> Vec<String> {
    let number = |count: Option<u64>| {
        count.map_or("an unknown number".to_owned(), |count| count.to_string())
    };
    let mut lines = vec![format!(
        "records kept: {}, lost: {}; blocks lost: {}",
        mended.records_kept,
        number(mended.records_lost),
        number(mended.blocks_lost)
    )];
    lines.extend(mended.ranges.iter().map(|range| format!("lost keys: {range}")));
    lines.extend(mended.torn_keys.iter().map(|key| format!("lost key: `{}`, in part", key.0)));
    if mended.older_values_hidden > 0 {
        let hidden = mended.older_values_hidden;
        lines.push(format!("older values of lost keys, which are deleted: {hidden}"));
    }
    if mended.older_values_may_return {
        lines.push("older values of lost keys, and deleted keys, may come back".to_owned());
    }
    lines
}
