//! Finds out whether a device can be made in a place, before anything there is deleted.

use super::extent;
use super::format::{FileFormat, FormatError, NewFile, from_open, name};
use super::options::Discard;
use crate::label::open_exclusive;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Bytes of a block in the count of a file's blocks.
const BLOCK_BYTES: u64 = 512;

impl FileFormat {
    /// Checks that [`format_file`](super::format_file) finds room at `path` and, with `force`, may
    /// replace what is there. Changes nothing.
    ///
    /// # Errors
    /// As [`format_file`](super::format_file).
    pub fn check_place(&self, path: &Path) -> Result<(), FormatError> {
        let target = NewFile::existing(path, self.force)?;
        let available = match (&target, self.size_bytes) {
            (Some(target), 0) => target.size()?,
            (_, size) => size,
        };
        let geometry = self.geometry_in(available)?;
        let bytes = extent::device_bytes(&geometry, self.units);
        if let Some(target) = target.filter(NewFile::is_drive) {
            return target.check_size(bytes);
        }
        check_room(path, bytes)?;
        let probe = Probe::beside(path)?;
        probe.try_discard(self.discard, geometry.superblock_bytes())
    }

    /// The bytes that are available at `path`: those of a block device where no size is given.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn available_at(&self, path: &Path) -> Result<u64, FormatError> {
        if self.size_bytes != 0 {
            return Ok(self.size_bytes);
        }
        match NewFile::existing(path, true)? {
            Some(device) => device.size(),
            None => {
                let source = io::ErrorKind::NotFound.into();
                Err(FormatError::Io { path: path.to_owned(), source })
            }
        }
    }
}

/// Checks that a sparse file of `bytes` can be made at `path`. Changes nothing.
///
/// # Errors
/// [`FormatError`]
pub(crate) fn check_sparse_place(path: &Path, force: bool, bytes: u64) -> Result<(), FormatError> {
    NewFile::existing(path, force)?;
    let probe = Probe::beside(path)?;
    probe.file.set_len(bytes).map_err(|source| FormatError::Io { path: path.to_owned(), source })
}

/// Whether the file system has `bytes`, with those of the file that will be deleted.
fn check_room(path: &Path, bytes: u64) -> Result<(), FormatError> {
    let io_error = |source| FormatError::Io { path: path.to_owned(), source };
    // A file with a second name keeps its space when this one is deleted.
    let old = fs::metadata(path).ok().filter(|old| old.nlink() == 1);
    let freed = old.map_or(0, |old| old.blocks().saturating_mul(BLOCK_BYTES));
    let space = statvfs(parent(path)).map_err(|errno| io_error(errno.into()))?;
    match space.f_bavail.saturating_mul(space.f_frsize).saturating_add(freed) < bytes {
        true => Err(FormatError::NoSpace { path: path.to_owned(), bytes }),
        false => Ok(()),
    }
}

fn parent(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// An empty file beside that of the device, removed when it is dropped.
struct Probe {
    path: PathBuf,
    device: PathBuf,
    file: File,
}

impl Probe {
    fn beside(device: &Path) -> Result<Probe, FormatError> {
        let mut path = device.as_os_str().to_owned();
        path.push(".probe");
        let path = PathBuf::from(path);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(|source| FormatError::Io { path: path.clone(), source })?;
        Ok(Probe { path, device: device.to_owned(), file })
    }

    /// Whether the file system supports the discard mode.
    fn try_discard(&self, discard: Discard, superblock_bytes: u64) -> Result<(), FormatError> {
        let Some(mode) = discard.fallocate_mode() else { return Ok(()) };
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fallocate(&self.file, flags, 0, superblock_bytes).map_err(|errno| FormatError::Discard {
            path: self.device.clone(),
            mode: name(discard),
            source: errno.into(),
        })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "probe not removed");
        }
    }
}

impl NewFile {
    /// What exists at the path, opened and locked; none where nothing does.
    pub(crate) fn existing(path: &Path, force: bool) -> Result<Option<NewFile>, FormatError> {
        let kind = match fs::metadata(path) {
            Ok(metadata) => metadata.file_type(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(FormatError::Io { path: path.to_owned(), source }),
        };
        if !kind.is_file() && !kind.is_block_device() {
            return Err(FormatError::WrongKind { path: path.to_owned() });
        }
        if !force {
            return Err(FormatError::Exists { path: path.to_owned() });
        }
        let file = open_exclusive(path).map_err(from_open)?;
        Ok(Some(NewFile::opened(path, file, kind.is_block_device())))
    }
}
