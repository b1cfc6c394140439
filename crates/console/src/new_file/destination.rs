//! What a path of an output names: a file, or a stream, behind any symbolic links.

use crate::error::CliError;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// More links in a row are a circle.
const MOST_LINKS: usize = 40;

/// What is written.
#[derive(Debug)]
pub(super) enum Destination {
    /// A file.
    File(Target),
    /// A pipe, a terminal, or an open descriptor.
    Stream { stream: File, is_standard: bool },
}

/// The file that an output becomes.
#[derive(Debug)]
pub(super) struct Target {
    /// Its name, without links.
    pub(super) path: PathBuf,
    /// Its name until it is complete, which no other process uses.
    pub(super) temporary: PathBuf,
    /// Of the file that it replaces.
    permissions: Option<Permissions>,
}

/// Whether a path means standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Destination {
    pub(super) fn of(path: &Path) -> Result<Destination, CliError> {
        if is_standard(path) {
            return descriptor(Path::new("1"), true).map_err(CliError::file("standard output"));
        }
        let mut at = path.to_owned();
        for _ in 0..MOST_LINKS {
            if let Some(is_own) = names_a_descriptor(&at) {
                return descriptor(&at, is_own).map_err(CliError::file(path));
            }
            let found = match fs::symlink_metadata(&at) {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Destination::File(Target::new(at, None)));
                }
                Err(source) => return Err(CliError::file(path)(source)),
            };
            let kind = found.file_type();
            if kind.is_symlink() {
                let to = fs::read_link(&at).map_err(CliError::file(path))?;
                at = at.parent().unwrap_or(Path::new("")).join(to);
            } else if kind.is_file() {
                return Ok(Destination::File(Target::new(at, Some(found.permissions()))));
            } else if kind.is_fifo() || kind.is_char_device() {
                let stream = OpenOptions::new().write(true).open(&at);
                let stream = stream.map_err(CliError::file(path))?;
                return Ok(Destination::Stream { stream, is_standard: false });
            } else {
                let path = path.display();
                return Err(CliError::Failed(format!(
                    "{path}: it exists and is not a file; name a file, a pipe, or `-`"
                )));
            }
        }
        Err(CliError::Failed(format!("{}: too many symbolic links", path.display())))
    }

    pub(super) fn replaces_a_file(&self) -> bool {
        matches!(self, Destination::File(Target { permissions: Some(_), .. }))
    }
}

/// Whether a path is the link of an open descriptor, as `/dev/stdout` leads to: then whether it is
/// of this process.
fn names_a_descriptor(path: &Path) -> Option<bool> {
    let parent = fs::canonicalize(path.parent()?).ok()?;
    let is_link = parent.starts_with("/proc") && parent.ends_with("fd");
    let own = Path::new("/proc").join(std::process::id().to_string());
    is_link.then(|| parent.starts_with(own))
}

/// The stream of a descriptor. Standard output and standard error continue where they are; what is
/// written to another one is appended.
fn descriptor(path: &Path, is_own: bool) -> io::Result<Destination> {
    let number = path.file_name().unwrap_or_default();
    let is_standard = is_own && number == "1";
    let stream = if is_standard {
        File::from(io::stdout().as_fd().try_clone_to_owned()?)
    } else if is_own && number == "2" {
        File::from(io::stderr().as_fd().try_clone_to_owned()?)
    } else {
        OpenOptions::new().append(true).open(path)?
    };
    Ok(Destination::Stream { stream, is_standard })
}

impl Target {
    fn new(path: PathBuf, permissions: Option<Permissions>) -> Target {
        let temporary = (0_u32..).map(|attempt| temporary_name(&path, attempt));
        let mut unused = temporary.filter(|name| fs::symlink_metadata(name).is_err());
        let temporary = unused.next().unwrap_or_default();
        Target { path, temporary, permissions }
    }

    /// Creates the file under its temporary name, with the permissions of the one that it replaces.
    pub(super) fn create(&self) -> io::Result<File> {
        let file = OpenOptions::new().write(true).create_new(true).open(&self.temporary)?;
        if let Some(permissions) = &self.permissions {
            file.set_permissions(permissions.clone())?;
        }
        Ok(file)
    }
}

/// A name beside the file that holds the number of this process: another process that writes the
/// same file has a name of its own.
fn temporary_name(path: &Path, attempt: u32) -> PathBuf {
    let process = std::process::id();
    let mut name: OsString = path.as_os_str().to_owned();
    match attempt {
        0 => name.push(format!(".{process}.tmp")),
        _ => name.push(format!(".{process}-{attempt}.tmp")),
    }
    name.into()
}
