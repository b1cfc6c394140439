//! What an import checks before it creates or changes anything.

use super::copying::{are_equal, digest};
use super::unfinished::{self, Work};
use crate::volume_export::{Base, Beginning, Described, Digest};
use softflash_base::shell_word;
use softflash_console::{CliError, output};
use softflash_datadir::{DataDirError, Domains};
use softflash_volume::{Volume, VolumeInfo};
use std::collections::BTreeMap;
use std::path::Path;

/// The checks of an import into a directory.
pub struct Checks<'a> {
    pub domains: &'a Domains,
    pub path: &'a Path,
    /// What was written since the base of an increment may be lost.
    pub may_revert: bool,
}

/// What is to be done to the volumes.
pub struct Checked {
    pub works: Vec<Work>,
    /// Volumes that have changed since their base.
    pub reverted: Vec<String>,
}

impl Checks<'_> {
    /// Checks that all volumes of an export can be created or changed.
    pub async fn all(&self, volumes: &[Described]) -> Result<Checked, CliError> {
        self.domains.check_all(self.path)?;
        unfinished::refuse(self.domains, self.path).await?;
        let mut before: BTreeMap<&str, &Described> = BTreeMap::new();
        let mut checked = Checked { works: Vec::new(), reverted: Vec::new() };
        for volume in volumes {
            let name = &volume.name;
            if before.insert(name, volume).is_some() || name == unfinished::NAME {
                return Err(self.failed(&format!("the export cannot have a volume `{name}`")));
            }
            let work = match &volume.beginning {
                Beginning::Empty => self.unused(name)?,
                Beginning::Clone { volume: parent, snapshot } => {
                    let has = |parent: &&Described| {
                        parent.snapshots.iter().any(|(name, _)| name == snapshot)
                    };
                    if before.get(parent.as_str()).filter(|parent| has(parent)).is_none() {
                        let parent = format!("`{parent}@{snapshot}`, its parent");
                        return Err(
                            self.failed(&format!("the export has `{name}` before {parent}"))
                        );
                    }
                    self.unused(name)?
                }
                Beginning::Base(base) => self.base(volume, base, &mut checked.reverted).await?,
            };
            checked.works.push(work);
        }
        Ok(checked)
    }

    fn unused(&self, name: &str) -> Result<Work, CliError> {
        self.domains.check_unused(name).map_err(DataDirError::volume(self.path))?;
        Ok(Work::Creates(name.to_owned()))
    }

    /// The volume is as it was at the base of the increment.
    async fn base(
        &self,
        volume: &Described,
        base: &Base,
        reverted: &mut Vec<String>,
    ) -> Result<Work, CliError> {
        let failed = || DataDirError::volume(self.path);
        let (name, from) = (&volume.name, &base.snapshot);
        let domain = self.domains.holder(name).map_err(|error| {
            let error = DataDirError::volume(self.path)(error);
            CliError::Failed(format!(
                "{error}; this is an increment from its snapshot `{from}`: import a whole export \
                 first"
            ))
        })?;
        let info = domain.list().into_iter().find(|info| info.name == *name);
        let (snapshots, settings) = info
            .map(|VolumeInfo { snapshots, settings, .. }| (snapshots, settings))
            .unwrap_or_default();
        match snapshots.iter().position(|snapshot| snapshot == from) {
            None => {
                return Err(self.failed(&format!(
                    "volume `{name}` has no snapshot `{from}`, from which this increment goes on; \
                     import an increment that brings it, or a whole export under another name"
                )));
            }
            Some(place) if place + 1 < snapshots.len() => {
                let newer = snapshots[place + 1..].join("`, `");
                return Err(self.failed(&format!(
                    "volume `{name}` has the snapshots `{newer}` after `{from}`, from which this \
                     increment goes on; if it was not imported already, delete them first"
                )));
            }
            Some(_) => {}
        }
        let open = || domain.open_snapshot(name, from).map(Volume::without_limits);
        let snapshot = open().map_err(failed())?;
        let is_quick = matches!(base.digest, Digest::Quick(_));
        let bar = output::progress(0, "bytes of the snapshot");
        let found = digest(&snapshot, is_quick, |bytes| bar.inc(bytes)).await.map_err(failed())?;
        bar.finish_and_clear();
        if found != base.digest || snapshot.size_bytes().map_err(failed())? != base.size_bytes {
            return Err(self.failed(&format!(
                "snapshot `{from}` of volume `{name}` has other contents than the one from which \
                 this increment goes on; import a whole export, after you have deleted the volume"
            )));
        }
        let present = domain.volume(name).map_err(failed())?.without_limits();
        if !are_equal(&present, &snapshot).await.map_err(failed())? {
            if !self.may_revert {
                return Err(self.failed(&format!(
                    "volume `{name}` has changed since its snapshot `{from}`; with --revert these \
                     changes are lost (to keep them, `softflash volume export {} FILE {name} \
                     --from {from}` first)",
                    shell_word(&self.path.to_string_lossy())
                )));
            }
            reverted.push(name.clone());
        }
        Ok(Work::Changes { name: name.clone(), base: from.clone(), settings })
    }

    fn failed(&self, problem: &str) -> CliError {
        CliError::Failed(format!("{}: {problem}", self.path.display()))
    }
}
