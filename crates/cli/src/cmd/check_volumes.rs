//! The volumes in `softflash check`: everything that they hold is read.

use crate::embedded::{OpenDir, block_on};
use crate::error::CliError;
use crate::formatting::human_bytes;
use crate::output;
use serde::Serialize;
use softflash_base::shell_word;
use softflash_runtime::RuntimeHandle;
use softflash_server::ShardDomain;
use softflash_store::check::Finding;
use softflash_volume::{Domain, Examined, ExaminedImage, Progress, RecoveryReport, VolumeError};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The volumes in the JSON output.
#[derive(Debug, Clone, Default, Serialize)]
pub struct VolumesReport {
    /// Whether all volumes can be served, and everything that they hold can be read.
    pub ok: bool,
    /// Mapping units of 4096 bytes that were read.
    pub units_read: u64,
    /// Bytes that cannot be read, summed over volumes and snapshots.
    pub lost_bytes: u64,
    /// The domain of each shard.
    pub domains: Vec<DomainReport>,
}

/// The volumes of a shard.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DomainReport {
    /// The shard.
    pub shard: u16,
    /// Why the volumes cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Halves of leaves of the map that cannot be read, and that a mount rebuilds.
    pub rebuilt_halves: u32,
    /// Halves of leaves of the map that are lost.
    pub lost_halves: u32,
    /// Volumes and snapshots.
    pub volumes: Vec<ImageReport>,
}

/// A volume, or a snapshot as `VOLUME@SNAPSHOT`.
#[derive(Debug, Clone, Serialize)]
pub struct ImageReport {
    name: String,
    size_bytes: u64,
    /// Bytes that it holds itself.
    held_bytes: u64,
    lost_bytes: u64,
    /// What cannot be read.
    lost: Vec<LostRange>,
}

#[derive(Debug, Clone, Serialize)]
struct LostRange {
    offset: u64,
    bytes: u64,
}

/// A domain that a repair has mounted.
#[derive(Debug, Clone, Serialize)]
pub struct RepairedDomain {
    shard: u16,
    /// Halves of leaves of the map that were rebuilt from the frames; nothing of them is lost.
    rebuilt_halves: u32,
    /// Halves of leaves that were given up.
    lost_halves: u32,
    /// Mapping units of those, whose reads fail until they are written or discarded.
    lost_units: u64,
    /// Why it could not be repaired.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The time between two positions of the progress bar.
const BAR_INTERVAL: Duration = Duration::from_millis(200);

/// Ranges that are listed in the table.
const MOST_RANGES: usize = 8;

/// Reads all volumes of a directory; nothing for one without volume units. Nothing is written.
pub fn check(directory: &OpenDir) -> Result<Option<(VolumesReport, Vec<Finding>)>, CliError> {
    if directory.domains.is_empty() {
        return Ok(None);
    }
    let (mut report, mut findings) = (VolumesReport::default(), Vec::new());
    for (domain, examined) in examine_all(directory)? {
        let shard = domain.shard.0;
        match examined {
            Ok(examined) => {
                findings.extend(of_map(shard, &examined.recovery));
                let damaged = examined.images.iter().filter(|image| !image.lost.is_empty());
                findings.extend(damaged.map(|image| of_image(&directory.path, image)));
                report.units_read += examined.units_read;
                report.domains.push(domain_report(shard, &examined));
            }
            Err(error) => {
                let error = error.to_string();
                findings.push(not_mounted(&directory.path, shard, &error));
                let error = Some(error);
                report.domains.push(DomainReport { shard, error, ..DomainReport::default() });
            }
        }
    }
    let images = report.domains.iter().flat_map(|domain| &domain.volumes);
    report.lost_bytes = images.map(|image| image.lost_bytes).sum();
    report.ok = !findings.iter().any(|finding| finding.is_error);
    Ok(Some((report, findings)))
}

type Outcome = (ShardDomain, Result<Examined, VolumeError>);

fn examine_all(directory: &OpenDir) -> Result<Vec<Outcome>, CliError> {
    block_on(|runtime| async move {
        let progress = Rc::new(Progress::default());
        let bar = output::progress(1, "mapping units");
        let (seen, drawing, clock) = (Rc::clone(&progress), bar.clone(), runtime.clone());
        runtime.spawn(Box::pin(async move {
            while !drawing.is_finished() {
                drawing.set_length(seen.total.get());
                drawing.set_position(seen.done.get());
                clock.sleep_until(clock.now() + BAR_INTERVAL).await;
            }
        }));
        let mut all = Vec::new();
        for domain in &directory.domains {
            let queue = Arc::clone(&directory.device).open_queue_pair(domain.units.clone())?;
            let config = domain.config.clone();
            let examined = Domain::examine(queue, config, runtime.clone(), &progress).await;
            all.push((domain.clone(), examined));
        }
        bar.finish_and_clear();
        Ok(all)
    })
}

fn domain_report(shard: u16, examined: &Examined) -> DomainReport {
    let RecoveryReport { rebuilt_halves, lost_halves, .. } = examined.recovery;
    let image = |image: &ExaminedImage| ImageReport {
        name: name(image),
        size_bytes: image.size_bytes,
        held_bytes: image.held_bytes,
        lost_bytes: image.lost_bytes(),
        lost: image
            .lost
            .iter()
            .map(|range| LostRange { offset: range.start, bytes: range.end - range.start })
            .collect(),
    };
    let volumes = examined.images.iter().map(image).collect();
    DomainReport { shard, error: None, rebuilt_halves, lost_halves, volumes }
}

fn name(image: &ExaminedImage) -> String {
    match &image.snapshot {
        Some(snapshot) => format!("{}@{snapshot}", image.volume),
        None => image.volume.clone(),
    }
}

fn error(place: String, problem: String, is_degraded: bool) -> Finding {
    Finding { place, problem, is_error: true, is_degraded }
}

fn of_map(shard: u16, recovery: &RecoveryReport) -> Vec<Finding> {
    let place = || format!("volumes of shard {shard}");
    let mut findings = Vec::new();
    if recovery.rebuilt_halves > 0 {
        let problem = format!(
            "{} halves of leaves of the map cannot be read; `check --repair` rebuilds them from \
             the frames, and nothing of them is lost",
            recovery.rebuilt_halves
        );
        findings.push(error(place(), problem, true));
    }
    if recovery.lost_halves > 0 {
        let problem = format!("{} halves of leaves of the map are lost", recovery.lost_halves);
        findings.push(error(place(), problem, false));
    }
    if recovery.lost_frames > 0 {
        let problem = format!("{} frames that were durable are lost", recovery.lost_frames);
        findings.push(error(place(), problem, false));
    }
    findings
}

fn of_image(directory: &Path, image: &ExaminedImage) -> Finding {
    let ranges: Vec<String> = image
        .lost
        .iter()
        .take(MOST_RANGES)
        .map(|range| format!("{}..{}", range.start, range.end))
        .collect();
    let more = match image.lost.len() - ranges.len() {
        0 => String::new(),
        more => format!(" and {more} more ranges (-o json has all)"),
    };
    let remedy = match &image.snapshot {
        Some(_) => "restore it from a backup".to_owned(),
        None => format!(
            "write these ranges again from a backup, or discard them; `softflash volume give-up {} \
             {}` gives up the whole volume",
            shell_word(&directory.to_string_lossy()),
            image.volume
        ),
    };
    let problem = format!(
        "{} cannot be read, bytes {}{more}; {remedy}",
        human_bytes(image.lost_bytes()),
        ranges.join(", ")
    );
    let kind = if image.snapshot.is_some() { "snapshot" } else { "volume" };
    error(format!("{kind} `{}`", name(image)), problem, false)
}

fn not_mounted(directory: &Path, shard: u16, reason: &str) -> Finding {
    let problem = format!(
        "they cannot be served: {reason}; if there is no backup of the device, `softflash volume \
         give-up {} --domain {shard}` says what is lost if they are given up, and makes room for \
         new ones",
        shell_word(&directory.to_string_lossy())
    );
    error(format!("volumes of shard {shard}"), problem, false)
}

/// Lines of the table.
pub fn lines(report: &VolumesReport) -> Vec<(&'static str, String)> {
    let volumes: usize = report.domains.iter().map(|domain| domain.volumes.len()).sum();
    let mut lines = vec![
        ("volumes and snapshots", volumes.to_string()),
        ("mapping units of volumes", report.units_read.to_string()),
    ];
    if report.lost_bytes > 0 {
        lines.push(("lost in volumes", human_bytes(report.lost_bytes)));
    }
    lines
}

/// Repairs the domains that a check has found damaged: a mount writes the map again, without what
/// is lost.
pub fn repair(directory: &OpenDir, found: &VolumesReport) -> Result<Vec<RepairedDomain>, CliError> {
    let is_repairable = |shard: u16| {
        found.domains.iter().any(|it| {
            it.shard == shard && it.error.is_none() && it.rebuilt_halves + it.lost_halves > 0
        })
    };
    block_on(|runtime| async move {
        let mut repaired = Vec::new();
        for domain in directory.domains.iter().filter(|domain| is_repairable(domain.shard.0)) {
            let (shard, outcome) = (domain.shard.0, mount(directory, domain, &runtime).await?);
            let (report, error) = match outcome {
                Ok(report) => (report, None),
                Err(error) => (RecoveryReport::default(), Some(error.to_string())),
            };
            let RecoveryReport { rebuilt_halves, lost_halves, lost_units, .. } = report;
            repaired.push(RepairedDomain { shard, rebuilt_halves, lost_halves, lost_units, error });
        }
        Ok(repaired)
    })
}

async fn mount(
    directory: &OpenDir,
    domain: &ShardDomain,
    runtime: &RuntimeHandle,
) -> Result<Result<RecoveryReport, VolumeError>, CliError> {
    let queue = Arc::clone(&directory.device).open_queue_pair(domain.units.clone())?;
    let mounted = Domain::mount(queue, domain.config.clone(), runtime.clone()).await;
    Ok(match mounted {
        Ok((domain, report)) => {
            let written = domain.checkpoint().await;
            domain.stop();
            written.map(|()| report)
        }
        Err(error) => Err(error),
    })
}

/// What a repair has done, in a line.
pub fn done(repaired: &RepairedDomain) -> String {
    let RepairedDomain { shard, rebuilt_halves, lost_halves, lost_units, error } = repaired;
    match error {
        Some(error) => format!("cannot be repaired: volumes of shard {shard}: {error}"),
        None => format!(
            "repaired: volumes of shard {shard}: halves of leaves rebuilt: {rebuilt_halves}, given \
             up: {lost_halves} ({lost_units} mapping units); the map is written again"
        ),
    }
}
