//! `softflash.toml`: what a data directory says about itself, for people and for the program.

use super::DataDirError;
use serde::{Deserialize, Serialize};
use softflash_store::StoreLayout;
use softflash_store::layout::{Compression, one_copy};
use std::path::{Path, PathBuf};

/// The newest version of a data directory that this program reads, and the one that it writes.
pub const FORMAT_VERSION: u32 = 1;

/// The file's name inside the directory.
pub const MANIFEST_NAME: &str = "softflash.toml";

/// The contents of `softflash.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the directory's layout, now [`FORMAT_VERSION`].
    pub format_version: u32,
    /// The device: a file in the directory, or an absolute path to a block device.
    pub device: PathBuf,
    /// How the key space is cut.
    pub store: StoreSection,
}

/// The `[store]` table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreSection {
    /// Shards: each has a core, a log and its own units.
    pub shards: u16,
    /// Slices, at least one per shard.
    pub slices: u16,
    /// Compression of each slice; a slice beyond the end of the list has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compression: Vec<Compression>,
    /// Copies of everything, on different units; not written where there is one.
    #[serde(default = "one_copy", skip_serializing_if = "is_one")]
    pub copies: u8,
    /// Patches that share a parity block, at most; not written where there is no parity.
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
    pub fn new(device: impl Into<PathBuf>, store: StoreSection) -> Manifest {
        Manifest { format_version: FORMAT_VERSION, device: device.into(), store }
    }

    /// The store's layout on a device of `units` units.
    pub fn layout(&self, units: u16) -> StoreLayout {
        StoreLayout {
            shards: self.store.shards,
            slices: self.store.slices,
            units,
            compression: self.store.compression.clone(),
            copies: self.store.copies,
            parity: self.store.parity,
        }
    }

    /// The manifest as a file, with a word to whoever opens it.
    pub(super) fn to_text(&self) -> Result<String, toml::ser::Error> {
        let fields = toml::to_string_pretty(self)?;
        Ok(format!(
            "# A SoftFlash data directory. Written by `softflash format`; do not change it by hand:\n\
             # the layout of what is on the device follows from it.\n\n{fields}"
        ))
    }

    /// Reads a manifest. The version is looked at first, so that a file of a later version is called
    /// newer and not damaged.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Manifest, DataDirError> {
        let damaged =
            |reason: String| DataDirError::DamagedManifest { path: path.to_owned(), reason };
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| damaged(error.message().to_owned()))?;
        let version = table.get("format_version").and_then(toml::Value::as_integer);
        match version {
            Some(1) => {}
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
        // The device may have any number of units up to here; its own check follows at open.
        match manifest.layout(u16::MAX).problem() {
            Some(problem) => Err(damaged(problem)),
            None if manifest.store.compression.len() > usize::from(manifest.store.slices) => {
                Err(damaged("more entries in `compression` than slices".to_owned()))
            }
            None => Ok(manifest),
        }
    }
}
