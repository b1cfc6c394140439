//! `softflash volume list`: lists the volumes with their snapshots, and the space.

use super::named::INSTEAD;
use super::unfinished;
use crate::directories;
use serde::Serialize;
use softflash_base::{UnitSet, shell_word};
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_datadir::{Domains, OpenDir, with_domains};
use softflash_device::CUT_SHORT;
use softflash_volume::{DomainSpace, VolumeInfo};
use std::path::Path;

/// A volume in the JSON output.
#[derive(Serialize)]
struct Listed {
    name: String,
    size_bytes: u64,
    used_bytes: u64,
    /// `null` for none, as the limits.
    quota_bytes: Option<u64>,
    iops: Option<u32>,
    bandwidth_bytes_per_second: Option<u64>,
    weight: u16,
    temperature: String,
    stream: u8,
    snapshots: Vec<String>,
    /// The set of units that holds it.
    set: String,
    /// Of a clone, the snapshot that it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    clone_of: Option<String>,
}

/// A domain in the table.
struct Row {
    /// The shard or the set.
    place: String,
    units: UnitSet,
    volumes: usize,
    space: DomainSpace,
}

/// Prints the volumes.
pub fn run(path: &Path, form: Form) -> Result<(), CliError> {
    // A mount writes, so it works on a copy in memory.
    let directory = directories::or_instead(OpenDir::open_to_try(path), INSTEAD)?;
    let (volumes, domains, lost, unfinished, all) = with_domains(&directory, async |domains| {
        let (volumes, rows) = look(domains);
        let lost: u64 = domains.all.iter().map(|(_, domain)| domain.lost_bytes()).sum();
        // A volume of this name that is no marker is listed as any other.
        let unfinished = unfinished::find(domains).await.unwrap_or_default();
        Ok::<_, CliError>((volumes, rows, lost, unfinished, domains.check_all(path)))
    })?;
    match form {
        Form::Json => output::json(&volumes)?,
        Form::Table => print(path, &volumes, &domains),
    }
    if let Some(works) = unfinished {
        output::say(&unfinished::about(path, &works));
    }
    // The volumes of the others are listed nevertheless.
    all?;
    let (shown, word) = (path.display(), shell_word(&path.to_string_lossy()));
    let detail = &directory.device.info().detail;
    if detail.contains(CUT_SHORT) {
        return Err(CliError::Failed(format!(
            "{shown}: {detail}; volumes beyond its end are not listed: restore the whole device, or \
             see what is left with `softflash check {word}`"
        )));
    }
    match lost {
        0 => Ok(()),
        lost => Err(CliError::Failed(format!(
            "{shown}: {} of the volumes are lost, and reads of them fail; `softflash check {word}` \
             names the ranges",
            human_bytes(lost)
        ))),
    }
}

/// All volumes by name, and the domains.
fn look(domains: &Domains) -> (Vec<Listed>, Vec<Row>) {
    let (mut volumes, mut rows) = (Vec::new(), Vec::new());
    for (of, domain) in &domains.all {
        let list = domain.list();
        let (volumes_here, space) = (list.len(), domain.space());
        rows.push(Row { place: of.place(), units: of.units.clone(), volumes: volumes_here, space });
        volumes.extend(list.into_iter().map(|volume| listed(volume, &of.name)));
    }
    volumes.sort_by(|a, b| a.name.cmp(&b.name));
    (volumes, rows)
}

fn listed(volume: VolumeInfo, set: &str) -> Listed {
    let VolumeInfo { name, size_bytes, used_bytes, settings, snapshots, parent } = volume;
    let clone_of = parent.map(|(volume, snapshot)| format!("{volume}@{snapshot}"));
    Listed {
        name,
        size_bytes,
        used_bytes,
        quota_bytes: settings.quota_bytes,
        iops: settings.iops,
        bandwidth_bytes_per_second: settings.bandwidth_bytes_per_second,
        weight: settings.weight,
        temperature: settings.lifetime.temperature.to_string(),
        stream: settings.lifetime.stream,
        snapshots,
        set: set.to_owned(),
        clone_of,
    }
}

fn print(path: &Path, volumes: &[Listed], domains: &[Row]) {
    if volumes.is_empty() {
        output::say(&format!(
            "{}: no volumes; create one with `softflash volume create {} NAME SIZE`",
            path.display(),
            shell_word(&path.to_string_lossy())
        ));
    } else {
        let bytes = |bytes: Option<u64>| bytes.map(human_bytes).unwrap_or_default();
        let row = |volume: &Listed| {
            vec![
                volume.name.clone(),
                human_bytes(volume.size_bytes),
                human_bytes(volume.used_bytes),
                or_dash(bytes(volume.quota_bytes)),
                or_dash(volume.iops.map(|iops| iops.to_string()).unwrap_or_default()),
                or_dash(bytes(volume.bandwidth_bytes_per_second)),
                volume.weight.to_string(),
                format!("{} {}", volume.temperature, volume.stream),
                volume.set.clone(),
                or_dash(volume.snapshots.join(", ")),
                or_dash(volume.clone_of.clone().unwrap_or_default()),
            ]
        };
        let header = [
            "volume",
            "size",
            "used",
            "quota",
            "iops",
            "bytes/s",
            "weight",
            "hint",
            "set",
            "snapshots",
            "clone of",
        ];
        output::rows(&header, volumes.iter().map(row));
        output::result("");
    }
    let row = |domain: &Row| {
        let DomainSpace { used_bytes, usable_bytes, .. } = domain.space;
        vec![
            domain.place.clone(),
            domain.units.to_string(),
            domain.volumes.to_string(),
            human_bytes(used_bytes),
            human_bytes(usable_bytes),
        ]
    };
    output::rows(&["domain", "units", "volumes", "used", "usable"], domains.iter().map(row));
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
