//! `softflash check`: verifies all data of a data directory.

use super::check_volumes::{self, VolumesReport};
use crate::directories::{self, block_on};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_datadir::{DataDirError, OpenDir};
use softflash_device::CUT_SHORT;
use softflash_store::check::{CheckReport, Finding, Progress, check};
use softflash_store::repair::OnLogLoss;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash check ./softflash-data
  softflash check ./softflash-data -o json
  softflash check ./softflash-data --repair --dry-run

Reads all data, of keys and of volumes, and changes nothing. Exit code 0: all acknowledged data \
and all metadata are intact; 1: there is damage, or the directory cannot be read at all.

With --repair, damaged patches are rewritten with their readable parts, and lost keys are named; \
the map of volumes is rebuilt where that is possible, and what volumes have lost is named. \
Exit code 0: the store is intact, and nothing was lost; 1: data were lost, or not all damage was \
repaired.")]
pub struct Check {
    /// The data directory
    directory: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
    /// Repair damage, and report losses
    #[arg(long)]
    repair: bool,
    /// Only show what a repair would do
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// Where the log has lost acknowledged data, keep its intact parts and give up the rest
    #[arg(long, requires = "repair")]
    accept_log_loss: bool,
}

/// The result of the scrub of a server that has the directory open.
pub(super) const OF_A_SERVER: &str =
    "see `data_losses` and `degraded_blocks` of its FLASH.STATS: its scrub reads all data";

const BAR_INTERVAL: Duration = Duration::from_millis(200);

/// Findings of a kind that are printed of a device that is cut short.
const FIRST_OF_KIND: usize = 3;

impl Check {
    /// Checks the directory, its device and the store; a directory that cannot be opened is a
    /// finding, unless another process uses it.
    pub fn run(self) -> Result<ExitCode, CliError> {
        if self.repair {
            let on_log_loss = match self.accept_log_loss {
                true => OnLogLoss::Accept,
                false => OnLogLoss::Refuse,
            };
            return super::repair::run(&self.directory, self.dry_run, on_log_loss, self.output);
        }
        let report =
            match directories::or_instead(OpenDir::open_to_look(&self.directory), OF_A_SERVER) {
                Ok(directory) => check_all(&directory)?,
                Err(error) if is_damage(&error) => {
                    Checked { store: unreadable(&self.directory, &error), volumes: None }
                }
                Err(error) => return Err(error),
            };
        match self.output {
            Form::Json => output::json(&report)?,
            Form::Table => print(&report),
        }
        Ok(if report.store.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

/// The JSON output. The verdict and the findings are about keys and volumes.
#[derive(Serialize)]
pub(super) struct Checked {
    #[serde(flatten)]
    pub store: CheckReport,
    /// Absent without volume units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volumes: Option<VolumesReport>,
}

/// Checks the store and the volumes.
pub(super) fn check_all(directory: &OpenDir) -> Result<Checked, CliError> {
    let mut store = check_store(directory)?;
    let volumes = check_volumes::check(directory)?.map(|(report, findings)| {
        store.ok &= report.ok;
        store.findings.extend(findings);
        report
    });
    Ok(Checked { store, volumes })
}

/// Whether this is a damaged data directory, as opposed to something else.
fn is_damage(error: &CliError) -> bool {
    use softflash_device::OpenError;
    matches!(
        error.of_part(),
        Some(
            DataDirError::DamagedManifest { .. }
                | DataDirError::Layout { .. }
                | DataDirError::Device(
                    OpenError::DamagedLabel { .. }
                        | OpenError::NotADevice { .. }
                        | OpenError::CutShort { .. }
                        | OpenError::Missing { .. }
                )
        )
    )
}

fn unreadable(directory: &std::path::Path, error: &CliError) -> CheckReport {
    let finding = Finding {
        place: directory.display().to_string(),
        problem: error.to_string(),
        is_error: true,
        is_degraded: false,
    };
    CheckReport { findings: vec![finding], ..CheckReport::default() }
}

fn check_store(directory: &OpenDir) -> Result<CheckReport, CliError> {
    let device = Arc::clone(&directory.device);
    let label = device.info().detail.clone();
    let mut report = block_on(|runtime| async move {
        let progress = std::rc::Rc::new(Progress::default());
        let (seen, clock) = (std::rc::Rc::clone(&progress), runtime.clone());
        let bar = output::progress(1, "patches");
        let drawing = bar.clone();
        runtime.spawn(Box::pin(async move {
            while !drawing.is_finished() {
                drawing.set_length(seen.total.get());
                drawing.set_position(seen.done.get());
                clock.sleep_until(clock.now() + BAR_INTERVAL).await;
            }
        }));
        let report = check(device, &directory.layout, &runtime, &progress).await;
        bar.finish_and_clear();
        Ok(report)
    })?;
    if label.contains("label copy") || label.contains(CUT_SHORT) {
        let place = directory.path.display().to_string();
        // A power cut between the writes of the two copies leaves an old one; any other difference
        // is damage.
        let is_error = !label.contains("older") || label.contains(CUT_SHORT);
        report.ok &= !is_error;
        report.findings.insert(0, Finding { place, problem: label, is_error, is_degraded: false });
    }
    Ok(report)
}

pub(super) fn print(checked: &Checked) {
    let Checked { store: report, volumes } = checked;
    lines_of(&report.findings).iter().for_each(|line| output::result(line));
    let mut lines = vec![
        (
            "keys",
            report
                .keys
                .map_or("unknown, because of the damage".to_owned(), |keys| keys.to_string()),
        ),
        ("patches", report.patches.to_string()),
        ("records", report.records.to_string()),
        ("large values", report.values.to_string()),
        ("bytes", report.bytes.to_string()),
        ("keys in the log", report.log_keys.to_string()),
    ];
    lines.extend(volumes.iter().flat_map(check_volumes::lines));
    lines.push(("verdict", if report.ok { "ok" } else { "damaged" }.to_owned()));
    output::pairs(lines);
}

/// A line for each finding. Where the device is cut short, everything behind its end is one: of
/// each kind, the first few and the number of the others.
fn lines_of(findings: &[Finding]) -> Vec<String> {
    let is_cut = findings.iter().any(|finding| finding.problem.contains(CUT_SHORT));
    let most = if is_cut { FIRST_OF_KIND } else { usize::MAX };
    let mut lines = Vec::new();
    let mut kinds: BTreeMap<String, (&Finding, usize)> = BTreeMap::new();
    for finding in findings {
        let (_, count) = kinds.entry(kind_of(finding)).or_insert((finding, 0));
        *count += 1;
        if *count <= most {
            let Finding { place, problem, .. } = finding;
            lines.push(format!("{}: {place}: {problem}", word_of(finding)));
        }
    }
    for (first, count) in kinds.values().filter(|(_, count)| *count > most) {
        let more = count - most;
        let (word, problem) = (word_of(first), &first.problem);
        lines.push(format!("{word}: {more} more of this kind (-o json has all), as: {problem}"));
    }
    lines
}

fn word_of(finding: &Finding) -> &'static str {
    if finding.is_error { "error" } else { "remark" }
}

/// What a finding says, without the numbers in it.
fn kind_of(finding: &Finding) -> String {
    let mut kind = word_of(finding).to_owned();
    let mut was_digit = false;
    for letter in finding.problem.chars() {
        let is_digit = letter.is_ascii_digit();
        match (is_digit, was_digit) {
            (true, true) => {}
            (true, false) => kind.push('#'),
            (false, _) => kind.push(letter),
        }
        was_digit = is_digit;
    }
    kind
}
