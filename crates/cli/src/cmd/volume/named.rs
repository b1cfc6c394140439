//! The volume that a command names, in a directory that it opens.

use super::unfinished;
use crate::directories;
use clap::Args;
use softflash_console::CliError;
use softflash_console::output;
use softflash_datadir::{DataDirError, Domains, OpenDir, with_domains};
use softflash_volume::VolumeError;
use std::path::{Path, PathBuf};

/// A volume of a data directory.
#[derive(Debug, Args)]
pub struct Named {
    /// The data directory
    pub directory: PathBuf,
    /// The volume's name: 1 to 64 letters, digits, `-`, `_` and `.`
    pub name: String,
}

/// The remedy where a server has the directory open.
pub const INSTEAD: &str = "change its volumes with `redis-cli FLASH.VOLUME`";

/// Opens a directory without a server.
pub fn open(directory: &Path) -> Result<OpenDir, CliError> {
    directories::or_instead(OpenDir::open(directory), INSTEAD)
}

impl Named {
    /// Calls `work` with the mounted domains of the directory.
    pub fn change<T>(
        &self,
        work: impl AsyncFnOnce(&Domains) -> Result<T, VolumeError>,
    ) -> Result<T, CliError> {
        self.change_in(None, work)
    }

    /// As [`change`](Self::change), if the directory has the set for volumes that is chosen.
    pub fn change_in<T>(
        &self,
        set: Option<&str>,
        work: impl AsyncFnOnce(&Domains) -> Result<T, VolumeError>,
    ) -> Result<T, CliError> {
        let directory = open(&self.directory)?;
        if let Some(set) = set {
            directory.table().mapped_place(set).map_err(DataDirError::set(&directory.path))?;
        }
        with_domains(&directory, async |domains| {
            Ok(work(domains).await.map_err(DataDirError::volume(&directory.path))?)
        })
    }

    /// As [`change`](Self::change), unless an import was interrupted: its undoing looks for the
    /// volumes by their names.
    pub fn reshape<T>(
        &self,
        work: impl AsyncFnOnce(&Domains) -> Result<T, VolumeError>,
    ) -> Result<T, CliError> {
        let directory = open(&self.directory)?;
        with_domains(&directory, async |domains| {
            unfinished::refuse(domains, &directory.path).await?;
            Ok(work(domains).await.map_err(DataDirError::volume(&directory.path))?)
        })
    }

    /// Says what was done.
    pub fn say(&self, done: &str) {
        output::say(&format!("{}: {done}", self.directory.display()));
    }
}
