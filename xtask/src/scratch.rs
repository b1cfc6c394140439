//! A temporary directory.

use crate::Outcome;
use std::fs;
use std::path::{Path, PathBuf};

/// A directory that is removed on drop.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new one, in the directory for temporary files.
    pub fn new(name: &str) -> Outcome<Scratch> {
        let name = format!("softflash-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{}: {error}", self.0.display());
        }
    }
}
