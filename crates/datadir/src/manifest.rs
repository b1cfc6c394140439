//! The manifest `softflash.toml` of a data directory.

use crate::error::DataDirError;
use crate::moves::UnfinishedMove;
use crate::set_table::SetTable;
use crate::volume_units::{ShardDomain, VolumeSection};
use serde::{Deserialize, Serialize};
use softflash_store::StoreLayout;
use softflash_store::layout::{Compression, one_copy};
use std::path::{Path, PathBuf};

/// The version of data directories without a table of sets. An older program refuses it: one of
/// version 1 would release value blocks, one of version 2 would give volume units to the store, and
/// one of version 3 would take patches with values that expire for damaged.
pub const FORMAT_VERSION: u32 = 4;

/// The version of data directories with a table of sets and no pairs. A program of
/// version 4 would give each unit to the owner that it had in the static split.
pub const SETS_FORMAT_VERSION: u32 = 5;

/// The version of data directories with pairs of sets. A program of version 5 would serve one set
/// of a pair as if there were no other copy.
pub const PAIRS_FORMAT_VERSION: u32 = 6;

/// The version of a data directory while volumes are being moved between two sets; afterwards it
/// has the version again that it had before. A program of version 6 would serve both copies.
pub const MOVE_FORMAT_VERSION: u32 = 7;

/// The newest version that is supported.
pub const NEWEST_FORMAT_VERSION: u32 = MOVE_FORMAT_VERSION;

/// Name of the file.
pub const MANIFEST_NAME: &str = "softflash.toml";

/// The contents of `softflash.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the directory and its data, at most [`NEWEST_FORMAT_VERSION`].
    pub format_version: u32,
    /// The device: a file in the directory, or an absolute path to a block device.
    pub device: PathBuf,
    /// The layout of the store.
    pub store: StoreSection,
    /// The units for volumes; omitted without, and where the table of sets has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<VolumeSection>,
    /// The table of sets, from the first change of the sets on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<SetTable>,
    /// Volumes that are being moved from one set to another, or are left in both after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_move: Option<UnfinishedMove>,
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
    /// A manifest of a new directory.
    pub fn new(
        device: impl Into<PathBuf>,
        store: StoreSection,
        volumes: Option<VolumeSection>,
    ) -> Manifest {
        let (format_version, device, sets) = (FORMAT_VERSION, device.into(), None);
        Manifest { format_version, device, store, volumes, sets, unfinished_move: None }
    }

    /// This manifest with another table of sets, which has all that the static split says.
    pub(crate) fn with_sets(&self, table: SetTable) -> Manifest {
        // Where there were pairs, the flash may still tell of them.
        let needed =
            if table.pairs.is_empty() { SETS_FORMAT_VERSION } else { PAIRS_FORMAT_VERSION };
        let (format_version, sets) = (needed.max(self.format_version), Some(table));
        let mut manifest = Manifest { format_version, volumes: None, sets, ..self.clone() };
        if let Some(unfinished) = manifest.unfinished_move.as_mut() {
            unfinished.format_version = needed.max(unfinished.format_version);
        }
        manifest
    }

    /// The last units of the device, which are for volumes in the static split.
    pub fn volume_units(&self) -> u16 {
        self.volumes.map_or(0, |volumes| volumes.units)
    }

    /// The sets of units of a device of `device_units` units: the table, or the static split.
    pub fn table(&self, device_units: u16) -> SetTable {
        let split = || SetTable::split(device_units, self.store.shards, self.volumes);
        self.sets.clone().unwrap_or_else(split)
    }

    /// The domains on a device of `device_units` units: one for each mapped set.
    pub fn domains(&self, device_units: u16) -> Vec<ShardDomain> {
        let table = self.table(device_units);
        let with_guests = |domain: ShardDomain| {
            let guests = self.guests_of(domain.config.domain).to_vec();
            ShardDomain { guests, ..domain }
        };
        table.domains().map(with_guests).collect()
    }

    /// The reason why the layout does not fit a device of `device_units` units, if there is one.
    pub fn problem(&self, device_units: u16) -> Option<String> {
        let shards = self.store.shards;
        let of_volumes = || self.volumes.and_then(|volumes| volumes.problem(shards));
        let of_sets = || self.sets.as_ref().and_then(|sets| sets.problem(shards, device_units));
        of_volumes().or_else(of_sets).or_else(|| self.store_problem(device_units))
    }

    fn store_problem(&self, device_units: u16) -> Option<String> {
        let problem = self.layout(device_units).problem()?;
        Some(match self.volume_units() {
            0 => problem,
            volumes => format!(
                "{volumes} of {device_units} units are for volumes, which leaves {} for the store: \
                 {problem}, or set fewer units aside for volumes",
                device_units.saturating_sub(volumes)
            ),
        })
    }

    /// The store's layout on a device of `device_units` units.
    pub fn layout(&self, device_units: u16) -> StoreLayout {
        let SetTable { epoch, store: units, .. } = self.table(device_units);
        StoreLayout {
            shards: self.store.shards,
            slices: self.store.slices,
            units,
            epoch,
            compression: self.store.compression.clone(),
            copies: self.store.copies,
            parity: self.store.parity,
        }
    }

    /// The problem where the version is not that of the tables that are there.
    fn version_problem(&self) -> Option<String> {
        let of_move = self.unfinished_move.as_ref();
        let version = of_move.map_or(self.format_version, |it| it.format_version);
        match (version >= SETS_FORMAT_VERSION, &self.sets, self.volumes) {
            (true, Some(sets), None)
                if version < PAIRS_FORMAT_VERSION && !sets.pairs.is_empty() =>
            {
                Some(format!("format_version {version} has no pairs; {PAIRS_FORMAT_VERSION} has"))
            }
            (true, Some(_), None) | (false, None, _) => None,
            (true, None, _) => Some(format!("format_version {version} needs the table [sets]")),
            (false, Some(_), _) => Some(format!(
                "format_version {version} has no table [sets]; {SETS_FORMAT_VERSION} has"
            )),
            (true, Some(_), Some(_)) => {
                Some("[volumes] and [sets] both say which units are for volumes".to_owned())
            }
        }
    }

    /// The volumes that a set holds and that are not its own.
    fn guests_of(&self, set: u16) -> &[String] {
        let unfinished = self.unfinished_move.as_ref().filter(|it| it.leftover_set() == set);
        unfinished.map_or(&[], |it| &it.volumes)
    }

    /// The problem where the version is not that of a directory with an unfinished move, or
    /// without.
    fn move_problem(&self) -> Option<String> {
        let version = MOVE_FORMAT_VERSION;
        match (self.format_version == version, &self.unfinished_move) {
            (false, None) => None,
            (false, Some(_)) => Some(format!("[unfinished_move] needs format_version {version}")),
            (true, None) => {
                Some(format!("format_version {version} needs the table [unfinished_move]"))
            }
            (true, Some(unfinished)) => unfinished.problem(version),
        }
    }

    /// The text of the file, with a comment for readers.
    pub(crate) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let fields = toml::to_string_pretty(self)?;
        Ok(format!(
            "# A SoftFlash data directory. Written by `softflash format` and `softflash set`; do not edit it:\n\
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
            Some(found) if (1..=i64::from(NEWEST_FORMAT_VERSION)).contains(&found) => {}
            Some(found) if found > i64::from(NEWEST_FORMAT_VERSION) => {
                let (path, supported) = (path.to_owned(), NEWEST_FORMAT_VERSION);
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
        let problem = manifest.version_problem().or_else(|| manifest.move_problem());
        match problem.or_else(|| manifest.problem(u16::MAX)) {
            Some(problem) => Err(damaged(problem)),
            None if manifest.store.compression.len() > usize::from(manifest.store.slices) => {
                Err(damaged("more entries in `compression` than slices".to_owned()))
            }
            None => Ok(manifest),
        }
    }
}
