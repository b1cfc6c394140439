//! The output of a command: a file that gets its name only when it is complete, or a stream that is
//! written at once.

mod destination;

use crate::cleanup::Cleanup;
use crate::error::CliError;
use destination::{Destination, Target};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use destination::is_standard;

/// What happens to a file that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the command fails.
    Stays,
    /// It is replaced once the new one is complete.
    Replaced,
}

impl Existing {
    /// By the option `--force`.
    pub fn by_force(force: bool) -> Existing {
        if force { Existing::Replaced } else { Existing::Stays }
    }
}

/// An output being written. A file is written under a temporary name: if it is dropped before it is
/// complete, it is removed, and an older file of the name stays as it is. Symbolic links are
/// followed. `-`, `/dev/stdout`, pipes and terminals are written at once.
pub struct NewFile {
    /// As it was given, for messages.
    name: PathBuf,
    destination: Destination,
    existing: Existing,
    cleanup: Option<Cleanup>,
    is_unfinished: bool,
}

impl NewFile {
    /// The output at `path`.
    ///
    /// # Errors
    /// A file that stays; something at `path` that cannot be written.
    pub fn at(path: &Path, existing: Existing) -> Result<NewFile, CliError> {
        let destination = Destination::of(path)?;
        if existing == Existing::Stays && destination.replaces_a_file() {
            return Err(exists(path));
        }
        let name = match is_standard(path) {
            true => PathBuf::from("standard output"),
            false => path.to_owned(),
        };
        Ok(NewFile { name, destination, existing, cleanup: None, is_unfinished: false })
    }

    /// As [`at`](NewFile::at), and a signal removes what has been written and ends the program.
    pub fn removed_on_signal(path: &Path, existing: Existing) -> Result<NewFile, CliError> {
        let mut new = NewFile::at(path, existing)?;
        let doomed = new.temporary().map(Path::to_owned).into_iter().collect();
        new.cleanup = Some(Cleanup::on_signal(doomed)?);
        Ok(new)
    }

    /// Writes a whole file; creates its directory where it is missing.
    pub fn write(path: &Path, existing: Existing, bytes: &[u8]) -> Result<(), CliError> {
        NewFile::at(path, existing)?.fill(bytes)
    }

    /// As [`write`](NewFile::write), for an output that is open.
    pub fn fill(mut self, bytes: &[u8]) -> Result<(), CliError> {
        if let Destination::File(target) = &self.destination
            && let Some(parent) = target.path.parent()
        {
            fs::create_dir_all(parent).map_err(CliError::file(parent))?;
        }
        let mut file = self.create()?;
        file.write_all(bytes).map_err(CliError::file(&self.name))?;
        self.complete(&file)
    }

    /// Its name in messages.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Its temporary name, if it is a file.
    pub fn temporary(&self) -> Option<&Path> {
        match &self.destination {
            Destination::File(target) => Some(&target.temporary),
            Destination::Stream { .. } => None,
        }
    }

    /// Refuses results on standard output where this output goes there, too.
    pub fn check_apart_from_results(&self) -> Result<(), CliError> {
        match self.destination {
            Destination::Stream { is_standard: true, .. } => Err(CliError::Usage(
                "-o json and the output cannot both go to standard output; give a file".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    /// Opens it for writing, a file under its temporary name.
    pub fn create(&mut self) -> Result<File, CliError> {
        match &self.destination {
            Destination::Stream { stream, .. } => {
                stream.try_clone().map_err(CliError::file(&self.name))
            }
            Destination::File(target) => {
                let file = target.create().map_err(CliError::file(&self.name))?;
                self.is_unfinished = true;
                Ok(file)
            }
        }
    }

    /// Makes the contents of a file durable, then its name.
    pub fn complete(mut self, file: &File) -> Result<(), CliError> {
        let Destination::File(target) = &self.destination else {
            return Ok(());
        };
        file.sync_all().map_err(CliError::file(&self.name))?;
        let rename = || take_name(target, self.existing);
        let renamed = match self.cleanup.take() {
            Some(cleanup) => cleanup.finish(rename),
            None => rename(),
        };
        match renamed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(exists(&self.name));
            }
            renamed => renamed.map_err(CliError::file(&self.name))?,
        }
        self.is_unfinished = false;
        let parent = target.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(CliError::file(parent))
    }
}

/// Gives a complete file its name. A file that came into being meanwhile stays, unless it may be
/// replaced.
fn take_name(target: &Target, existing: Existing) -> io::Result<()> {
    let Target { path, temporary, .. } = target;
    if existing == Existing::Stays {
        match fs::hard_link(temporary, path) {
            Ok(()) => return fs::remove_file(temporary),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            // This file system has no links.
            Err(_) => {}
        }
    }
    fs::rename(temporary, path)
}

fn exists(path: &Path) -> CliError {
    let path = path.display();
    CliError::Failed(format!(
        "{path}: it exists already; use another name, or --force to replace it"
    ))
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let (true, Destination::File(target)) = (self.is_unfinished, &self.destination) {
            // The incomplete file is useless; a failure to remove it is less important than the
            // error that ended the work.
            let _ = fs::remove_file(&target.temporary);
        }
    }
}
