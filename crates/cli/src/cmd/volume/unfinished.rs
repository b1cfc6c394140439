//! The trace of an import at work: a volume that names what the import creates and changes, and
//! that is deleted when the import is complete. What it names is undone after a failure; after a
//! crash the next command says so.
//!
//! A marker is durable before anything else changes, and its deletion is the moment at which all of
//! the import counts.

use super::copying::copy;
use super::settings::{from_words, words};
use softflash_base::cast::index;
use softflash_base::shell_word;
use softflash_console::CliError;
use softflash_datadir::{DataDirError, Domains, quoted};
use softflash_volume::{Domain, MAPPING_UNIT_BYTES, Setting, Volume, VolumeError, VolumeSettings};
use std::path::Path;

/// The name of the marker.
pub const NAME: &str = "unfinished-import";

/// The text of a marker begins with it.
const FIRST_LINE: &str = "softflash volume import";

/// The most bytes of a marker that is read: another volume may have its name.
const MOST_BYTES: u64 = 64 << 20;

/// What an import does to a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// It creates it.
    Creates(String),
    /// It changes it, from this snapshot on.
    Changes {
        /// The volume.
        name: String,
        /// The snapshot.
        base: String,
        /// The settings before.
        settings: VolumeSettings,
    },
}

impl Work {
    /// The volume.
    pub fn name(&self) -> &str {
        match self {
            Work::Creates(name) | Work::Changes { name, .. } => name,
        }
    }

    fn line(&self) -> String {
        match self {
            Work::Creates(name) => format!("creates {name}"),
            Work::Changes { name, base, settings } => {
                format!("changes {name} {base} {}", words(&settings.all()))
            }
        }
    }

    fn of_line(line: &str) -> Option<Work> {
        let mut words = line.split(' ');
        let (what, name) = (words.next()?, words.next()?.to_owned());
        match what {
            "creates" => Some(Work::Creates(name)),
            "changes" => {
                let base = words.next()?.to_owned();
                let settings = VolumeSettings::default().with(&from_words(words)?);
                Some(Work::Changes { name, base, settings })
            }
            _ => None,
        }
    }
}

/// Writes the marker.
pub async fn begin(domains: &Domains, works: &[Work]) -> Result<(), VolumeError> {
    let lines = works.iter().map(Work::line);
    let lines: Vec<String> = std::iter::once(FIRST_LINE.to_owned()).chain(lines).collect();
    let mut text = (lines.join("\n") + "\n").into_bytes();
    text.resize(text.len().next_multiple_of(MAPPING_UNIT_BYTES), 0);
    let domain = domains.most_free().ok_or(VolumeError::Stopped)?;
    domain.create(NAME, text.len() as u64).await?;
    let marker = domain.volume(NAME)?;
    marker.write(0, &text).await?;
    marker.flush().await
}

/// What an import that was interrupted has created and changed; none without one.
pub async fn find(domains: &Domains) -> Result<Option<Vec<Work>>, VolumeError> {
    let Ok(domain) = domains.holder(NAME) else { return Ok(None) };
    let marker = domain.volume(NAME)?;
    let other = || VolumeError::Exists { name: NAME.to_owned() };
    let bytes = marker.size_bytes()?;
    if bytes > MOST_BYTES {
        return Err(other());
    }
    let mut text = vec![0; index(u32::try_from(bytes).unwrap_or(u32::MAX))];
    marker.read(0, &mut text).await?;
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let text = std::str::from_utf8(&text[..length]).map_err(|_| other())?;
    let mut lines = text.lines();
    match lines.next() {
        // It was interrupted before it had begun.
        None => Ok(Some(Vec::new())),
        Some(FIRST_LINE) => {
            lines.map(Work::of_line).collect::<Option<Vec<_>>>().map(Some).ok_or_else(other)
        }
        Some(_) => Err(other()),
    }
}

/// Fails if an import was interrupted.
pub async fn refuse(domains: &Domains, path: &Path) -> Result<(), CliError> {
    match find(domains).await.map_err(DataDirError::volume(path))? {
        None => Ok(()),
        Some(works) => Err(CliError::Failed(about(path, &works))),
    }
}

/// The message about an import that was interrupted.
pub fn about(path: &Path, works: &[Work]) -> String {
    let volumes = match works.is_empty() {
        true => "nothing was changed".to_owned(),
        false => {
            let names = quoted(works.iter().map(Work::name));
            format!("these volumes are not complete: {names}")
        }
    };
    let word = shell_word(&path.to_string_lossy());
    format!(
        "{}: an import was interrupted; {volumes}; undo it with `softflash volume import {word} \
         --undo`, or delete the volume `{NAME}` to keep them as they are",
        path.display()
    )
}

/// Undoes what an import has done, as far as it came, and deletes the marker.
pub async fn undo(domains: &Domains, works: &[Work]) -> Result<(), VolumeError> {
    // A clone was created after its parent.
    for work in works.iter().rev() {
        let domain = match domains.holder(work.name()) {
            Err(VolumeError::NoVolume { .. }) => continue,
            found => found?,
        };
        match work {
            Work::Creates(name) => {
                domain.delete_with_snapshots(name).await?;
            }
            Work::Changes { name, base, settings } => {
                let snapshots = domain.list().into_iter().find(|volume| volume.name == *name);
                let snapshots = snapshots.map(|volume| volume.snapshots).unwrap_or_default();
                if !snapshots.contains(base) {
                    let (volume, name) = (name.clone(), base.clone());
                    return Err(VolumeError::NoSnapshot { volume, name });
                }
                for newer in snapshots.iter().rev().take_while(|snapshot| *snapshot != base) {
                    domain.delete_snapshot(name, newer).await?;
                }
                set_back(domain, name, base).await?;
                domain.set(name, &settings.all()).await?;
            }
        }
    }
    end(domains).await
}

/// Deletes the marker: the import counts, or is undone.
pub async fn end(domains: &Domains) -> Result<(), VolumeError> {
    domains.holder(NAME)?.delete(NAME).await
}

/// Gives a volume the size and contents of its newest snapshot again; without its quota, which may
/// be below what it holds.
pub async fn set_back(domain: &Domain, name: &str, base: &str) -> Result<(), VolumeError> {
    domain.set(name, &[Setting::Quota(None)]).await?;
    let snapshot = domain.open_snapshot(name, base).map(Volume::without_limits)?;
    domain.shrink(name, snapshot.size_bytes()?).await?;
    copy(&snapshot, &domain.volume(name)?.without_limits()).await
}
