//! A file that gets its name only when it is complete.

use crate::cleanup::Cleanup;
use crate::error::CliError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// A file being written under a temporary name. If it is dropped before it is complete, it is
/// removed, and an older file of the name stays as it is.
pub struct NewFile {
    path: PathBuf,
    temporary: PathBuf,
    cleanup: Option<Cleanup>,
    is_unfinished: bool,
}

impl NewFile {
    /// A file that is to replace `path`, if that exists.
    ///
    /// # Errors
    /// Something at `path` that is no file.
    pub fn at(path: &Path) -> Result<NewFile, CliError> {
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            let path = path.display();
            return Err(CliError::Failed(format!(
                "{path}: it exists and is not a file; name a file"
            )));
        }
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".tmp");
        let (path, temporary) = (path.to_owned(), temporary.into());
        Ok(NewFile { path, temporary, cleanup: None, is_unfinished: false })
    }

    /// As [`at`](NewFile::at), and a signal removes what has been written and ends the program.
    pub fn removed_on_signal(path: &Path) -> Result<NewFile, CliError> {
        let mut new = NewFile::at(path)?;
        new.cleanup = Some(Cleanup::on_signal(vec![new.temporary.clone()])?);
        Ok(new)
    }

    /// Its temporary name.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Creates it under the temporary name.
    pub fn create(&mut self) -> Result<File, CliError> {
        let file = File::create(&self.temporary).map_err(CliError::file(&self.temporary))?;
        self.is_unfinished = true;
        Ok(file)
    }

    /// Makes its contents durable, then its name.
    pub fn complete(mut self, file: &File) -> Result<(), CliError> {
        file.sync_all().map_err(CliError::file(&self.temporary))?;
        let rename = || fs::rename(&self.temporary, &self.path);
        let renamed = match self.cleanup.take() {
            Some(cleanup) => cleanup.finish(rename),
            None => rename(),
        };
        renamed.map_err(CliError::file(&self.path))?;
        self.is_unfinished = false;
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(CliError::file(parent))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_unfinished {
            // The incomplete file is useless; a failure to remove it is less important than the
            // error that ended the work.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
