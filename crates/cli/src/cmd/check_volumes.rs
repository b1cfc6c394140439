//! The volumes in `softflash check`: everything that they hold is read.

use crate::directories::block_on;
use serde::Serialize;
use softflash_base::shell_word;
use softflash_console::CliError;
use softflash_console::output;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{OpenDir, ShardDomain};
use softflash_runtime::RuntimeHandle;
use softflash_store::check::Finding;
use softflash_volume::{Domain, Examined, ExaminedImage, Progress, Repaired, VolumeError};
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
    /// Each domain.
    pub domains: Vec<DomainReport>,
}

/// The volumes of a set.
#[derive(Debug, Clone, Default, Serialize)]
pub struct DomainReport {
    /// The shard.
    pub shard: u16,
    /// The set.
    pub set: String,
    /// Why the volumes cannot be served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Copies of leaves and roots of the map that cannot be read, where another one can.
    pub damaged_copies: u32,
    /// Halves of leaves of the map without a readable copy, which a mount rebuilds.
    pub rebuilt_halves: u32,
    /// Halves of leaves of the map that are lost.
    pub lost_halves: u32,
    /// Frames that were durable and are missing.
    pub lost_frames: u32,
    /// Units that were restored from an older image.
    pub stale_units: Vec<u16>,
    /// Volumes and snapshots.
    pub volumes: Vec<ImageReport>,
    /// Whether a repair has something to write.
    #[serde(skip)]
    needs_repair: bool,
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
    set: String,
    /// The shard or the set, for people.
    #[serde(skip)]
    place: String,
    /// Copies of leaves of the map that were written again.
    copies: u32,
    /// Halves of leaves of the map that were rebuilt from the frames; nothing of them is lost.
    rebuilt_halves: u32,
    /// Halves of leaves that were given up.
    lost_halves: u32,
    /// Mapping units whose reads fail until they are written or discarded.
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
        match examined {
            Ok(examined) => {
                findings.extend(of_map(&domain, &examined));
                let damaged = examined.images.iter().filter(|image| !image.lost.is_empty());
                findings.extend(damaged.map(|image| of_image(&directory.path, image)));
                report.units_read += examined.units_read;
                report.domains.push(domain_report(&domain, &examined));
            }
            Err(error) => {
                let error = error.to_string();
                findings.push(not_mounted(&directory.path, &domain, &error));
                let error = Some(error);
                report.domains.push(DomainReport { error, ..DomainReport::of(&domain) });
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
            let queue = Arc::clone(&directory.device).open_queue_pair(&domain.units)?;
            let config = domain.config.clone();
            let examined = Domain::examine(queue, config, runtime.clone(), &progress).await;
            all.push((domain.clone(), examined));
        }
        bar.finish_and_clear();
        Ok(all)
    })
}

impl DomainReport {
    /// A domain of which nothing is known.
    fn of(domain: &ShardDomain) -> DomainReport {
        let (shard, set) = (domain.shard.0, domain.name.clone());
        DomainReport { shard, set, ..DomainReport::default() }
    }
}

fn domain_report(domain: &ShardDomain, examined: &Examined) -> DomainReport {
    let recovery = &examined.recovery;
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
    DomainReport {
        damaged_copies: examined.damaged_leaf_copies + recovery.damaged_root_copies,
        rebuilt_halves: recovery.rebuilt_halves,
        lost_halves: recovery.lost_halves,
        lost_frames: recovery.lost_frames,
        stale_units: recovery.stale_units.iter().map(|stale| stale.unit).collect(),
        volumes,
        needs_repair: examined.needs_repair(),
        ..DomainReport::of(domain)
    }
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

/// What is wrong with the map, and with the frames behind it.
fn of_map(domain: &ShardDomain, examined: &Examined) -> Vec<Finding> {
    let DomainReport {
        damaged_copies, rebuilt_halves, lost_halves, lost_frames, stale_units, ..
    } = domain_report(domain, examined);
    let mut findings = Vec::new();
    let place = format!("volumes of {}", domain.place());
    let mut add = |problem: String, is_degraded: bool| {
        findings.push(error(place.clone(), problem, is_degraded));
    };
    if damaged_copies > rebuilt_halves + lost_halves {
        let problem = format!(
            "{damaged_copies} copies of parts of the map cannot be read; `check --repair` writes \
             them again"
        );
        add(problem, true);
    }
    if rebuilt_halves > 0 {
        let problem = format!(
            "{rebuilt_halves} halves of leaves of the map have no readable copy; `check --repair` \
             rebuilds them from the frames, and nothing of them is lost"
        );
        add(problem, true);
    }
    if lost_halves > 0 {
        add(format!("{lost_halves} halves of leaves of the map are lost"), false);
    }
    if lost_frames > 0 {
        add(format!("{lost_frames} frames that were durable are missing"), false);
    }
    for unit in stale_units {
        add(format!("unit {unit} was restored from an older image"), false);
    }
    let recovery = &examined.recovery;
    if recovery.lost_roots > 0 && recovery.damaged_root_copies == 0 {
        findings.push(Finding {
            place,
            problem: "the newest root of the map cannot be read, as after a power cut during its \
                      checkpoint; the frames have all that it names"
                .to_owned(),
            is_error: false,
            is_degraded: false,
        });
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

fn not_mounted(directory: &Path, domain: &ShardDomain, reason: &str) -> Finding {
    let problem = format!(
        "they cannot be served: {reason}; if there is no backup of the device, `softflash volume \
         give-up {} --domain {}` says what is lost if they are given up, and makes room for new \
         ones",
        shell_word(&directory.to_string_lossy()),
        domain.word()
    );
    error(format!("volumes of {}", domain.place()), problem, false)
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

/// Repairs the domains that a check has found damaged: the map is written again, without what is
/// lost.
pub fn repair(directory: &OpenDir, found: &VolumesReport) -> Result<Vec<RepairedDomain>, CliError> {
    let damaged = found.domains.iter().filter(|domain| domain.needs_repair);
    let damaged: Vec<&str> = damaged.map(|domain| domain.set.as_str()).collect();
    block_on(|runtime| async move {
        let mut repaired = Vec::new();
        for domain in &directory.domains {
            if damaged.contains(&domain.name.as_str()) {
                repaired.push(mend(directory, domain, &runtime).await?);
            }
        }
        Ok(repaired)
    })
}

async fn mend(
    directory: &OpenDir,
    domain: &ShardDomain,
    runtime: &RuntimeHandle,
) -> Result<RepairedDomain, CliError> {
    let queue = Arc::clone(&directory.device).open_queue_pair(&domain.units)?;
    let Repaired { copies, rebuilt_halves, lost_halves, lost_units, error } =
        Domain::repair(queue, domain.config.clone(), runtime.clone()).await;
    let error = error.map(|error| error.to_string());
    let (shard, set, place) = (domain.shard.0, domain.name.clone(), domain.place());
    Ok(RepairedDomain { shard, set, place, copies, rebuilt_halves, lost_halves, lost_units, error })
}

/// What a repair has done, in a line.
pub fn done(repaired: &RepairedDomain) -> String {
    let RepairedDomain { place, copies, rebuilt_halves, lost_halves, lost_units, error, .. } =
        repaired;
    match error {
        Some(error) => format!("cannot be repaired: volumes of {place}: {error}"),
        None => format!(
            "repaired: volumes of {place}: the map is written again; copies of leaves: \
             {copies}, halves rebuilt: {rebuilt_halves}, given up: {lost_halves}; mapping units \
             whose reads fail: {lost_units}"
        ),
    }
}
