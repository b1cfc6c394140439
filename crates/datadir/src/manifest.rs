//! The manifest `softflash.toml` of a data directory.

use crate::error::DataDirError;
use crate::owners::UnitTable;
use crate::volume_units::{ShardDomain, VolumeSection};
use serde::{Deserialize, Serialize};
use softflash_store::StoreLayout;
use softflash_store::layout::{Compression, one_copy};
use std::path::{Path, PathBuf};

/// The newest supported version of data directories. An older program refuses it: one of version 1
/// would release value blocks, one of version 2 would give volume units to the store, and one of
/// version 3 would take patches with values that expire for damaged.
pub const FORMAT_VERSION: u32 = 4;

/// Name of the file.
pub const MANIFEST_NAME: &str = "softflash.toml";

/// The contents of `softflash.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the directory and its data, at most [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The device: a file in the directory, or an absolute path to a block device.
    pub device: PathBuf,
    /// The layout of the store.
    pub store: StoreSection,
    /// The units for volumes; omitted without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<VolumeSection>,
}

/// The `[store]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSection {
    /// Number of shards; each has a thread, a log and its own units.
    pub shards: u16,
    /// Number of slices, at least one per shard.
    pub slices: u16,
    /// Compression of each slice; a slice beyond the end of the list has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compression: Vec<Compression>,
    /// Number of copies of all data, on different units; omitted if 1.
    #[serde(default = "one_copy", skip_serializing_if = "is_one")]
    pub copies: u8,
    /// Maximum number of patches that share a parity block; omitted without parity.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parity: u8,
}

fn is_zero(parity: &u8) -> bool {
    *parity == 0
}

fn is_one(copies: &u8) -> bool {
    *copies == one_copy()
}

impl Manifest {
    /// A manifest of the newest version.
    pub fn new(
        device: impl Into<PathBuf>,
        store: StoreSection,
        volumes: Option<VolumeSection>,
    ) -> Manifest {
        Manifest { format_version: FORMAT_VERSION, device: device.into(), store, volumes }
    }

    /// The last units of the device, which are for volumes.
    pub fn volume_units(&self) -> u16 {
        self.volumes.map_or(0, |volumes| volumes.units)
    }

    /// Who owns which units of a device of `device_units` units.
    pub fn owners(&self, device_units: u16) -> UnitTable {
        UnitTable::split(device_units, self.store.shards, self.volume_units())
    }

    /// The domain of each shard on a device of `device_units` units; none without volume units.
    pub fn domains(&self, device_units: u16) -> Vec<ShardDomain> {
        let owners = self.owners(device_units);
        let section = self.volumes.iter();
        let domains = section.flat_map(|section| {
            owners.of_volumes().map(|(shard, units)| section.domain(shard, units))
        });
        domains.collect()
    }

    /// The reason why the layout does not fit a device of `device_units` units, if there is one.
    pub fn problem(&self, device_units: u16) -> Option<String> {
        if let Some(problem) = self.volumes.and_then(|it| it.problem(self.store.shards)) {
            return Some(problem);
        }
        let owners = self.owners(device_units);
        let store = || {
            let problem = self.layout(device_units).problem()?;
            Some(match self.volume_units() {
                0 => problem,
                volumes => format!(
                    "{volumes} of {device_units} units are for volumes, which leaves {} for the \
                     store: {problem}, or set fewer units aside for volumes",
                    device_units.saturating_sub(volumes)
                ),
            })
        };
        owners.conflict().or_else(store).or_else(|| owners.shortage(device_units))
    }

    /// The store's layout on a device of `device_units` units.
    pub fn layout(&self, device_units: u16) -> StoreLayout {
        StoreLayout {
            shards: self.store.shards,
            slices: self.store.slices,
            units: self.owners(device_units).of_store(),
            compression: self.store.compression.clone(),
            copies: self.store.copies,
            parity: self.store.parity,
        }
    }

    /// The text of the file, with a comment for readers.
    pub(crate) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let fields = toml::to_string_pretty(self)?;
        Ok(format!(
            "# A SoftFlash data directory. Written by `softflash format`; do not edit it:\n\
             # the layout of the data on the device depends on it.\n\n{fields}"
        ))
    }

    /// Parses a manifest. The version is checked first, so that a file of a later version is
    /// reported as newer and not as damaged.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Manifest, DataDirError> {
        let damaged =
            |reason: String| DataDirError::DamagedManifest { path: path.to_owned(), reason };
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| damaged(error.message().to_owned()))?;
        let version = table.get("format_version").and_then(toml::Value::as_integer);
        match version {
            Some(found) if (1..=i64::from(FORMAT_VERSION)).contains(&found) => {}
            Some(found) if found > i64::from(FORMAT_VERSION) => {
                let (path, supported) = (path.to_owned(), FORMAT_VERSION);
                return Err(DataDirError::NewerVersion { path, found, supported });
            }
            Some(found) => return Err(damaged(format!("format_version {found} never existed"))),
            None => return Err(damaged("format_version is missing".to_owned())),
        }
        let manifest: Manifest = table
            .try_into()
            .map_err(|error: toml::de::Error| damaged(error.message().to_owned()))?;
        // The number of units is unknown here; the layout is checked against the device when it is
        // opened.
        match manifest.problem(u16::MAX) {
            Some(problem) => Err(damaged(problem)),
            None if manifest.store.compression.len() > usize::from(manifest.store.slices) => {
                Err(damaged("more entries in `compression` than slices".to_owned()))
            }
            None => Ok(manifest),
        }
    }
}
