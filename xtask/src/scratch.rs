//! A temporary directory.

use crate::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory that is removed on drop, unless it is kept.
pub struct Scratch {
    path: PathBuf,
    is_kept: bool,
}

impl Scratch {
    /// A new one, in the directory for temporary files.
    pub fn new(name: &str) -> Outcome<Scratch> {
        let name = format!("softflash-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch { path, is_kept: false })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps it, as evidence.
    pub fn keep(&mut self) {
        self.is_kept = true;
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_dir_all(&self.path)
        {
            eprintln!("{}: {error}", self.path.display());
        }
    }
}
