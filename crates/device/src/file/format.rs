//! Formatting of a file device.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss
)]

use super::device::BACKEND;
use super::extent::{self, MAX_SUPERBLOCK_BYTES};
use super::options::Discard;
use super::room::{self, NoRoom};
use crate::geometry::UnitGeometry;
use crate::label::{Configuration, LABEL_AREA_BYTES, Label, LabelStore, LockedFile};
use crate::queue_pair::OpenError;
use crate::size::size_of;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// Pages of a superblock beyond its payload, for the headers of the layer above.
pub const HEADER_PAGES: u32 = 2;

/// The fewest superblocks of a unit of a file device: some open, some full, one spare.
pub const MIN_BLOCKS_PER_UNIT: u32 = 4;

/// Bytes per page of a file device.
const PAGE_BYTES: u32 = 4096;

/// Commands that a unit of a file device accepts at a time.
const QUEUE_DEPTH: u16 = 64;

/// The options of a new file device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFormat {
    /// Bytes that the device may occupy, label included; it takes the most whole superblocks that
    /// fit. 0 means all of a block device.
    pub size_bytes: u64,
    /// Independent units.
    pub units: u16,
    /// Payload of a superblock in bytes, a multiple of 4096 (8 MiB by default); two header pages
    /// come on top.
    pub superblock_bytes: u64,
    /// The effect of an erase on the layer below.
    pub discard: Discard,
    /// Whether to replace a file that exists, or to overwrite a block device.
    pub force: bool,
    /// The identity of the device: random, never used before.
    pub uuid: u128,
}

impl FileFormat {
    /// Four units of 8 MiB superblocks in `size_bytes`, no discard, no force.
    pub fn new(size_bytes: u64, uuid: u128) -> FileFormat {
        FileFormat {
            size_bytes,
            units: 4,
            superblock_bytes: 8 << 20,
            discard: Discard::None,
            force: false,
            uuid,
        }
    }

    /// The least `size_bytes` for these units and superblocks.
    pub fn minimum_bytes(&self) -> u64 {
        self.bytes_for(MIN_BLOCKS_PER_UNIT)
    }

    /// The `size_bytes` for this many superblocks in each of these units.
    pub fn bytes_for(&self, superblocks_per_unit: u32) -> u64 {
        extent::device_bytes(&self.geometry(superblocks_per_unit), self.units)
    }

    /// The geometry of a unit of so many superblocks.
    pub fn geometry(&self, blocks_per_plane: u32) -> UnitGeometry {
        let payload = u32::try_from(self.superblock_bytes / u64::from(PAGE_BYTES));
        UnitGeometry {
            dies: 1,
            planes: 1,
            blocks_per_plane,
            pages_per_block: payload.unwrap_or(u32::MAX - HEADER_PAGES) + HEADER_PAGES,
            page_bytes: PAGE_BYTES,
            die_queue_depth: QUEUE_DEPTH,
        }
    }

    /// The geometry that fills `available` bytes.
    ///
    /// # Errors
    /// [`FormatError`] where none does.
    pub fn geometry_in(&self, available: u64) -> Result<UnitGeometry, FormatError> {
        let least = self.geometry(MIN_BLOCKS_PER_UNIT);
        let too_large = self.superblock_bytes > MAX_SUPERBLOCK_BYTES / 2;
        if too_large || self.superblock_bytes == 0 || !self.superblock_bytes.is_multiple_of(4096) {
            return Err(FormatError::Superblock { bytes: self.superblock_bytes });
        }
        if self.units == 0 {
            return Err(FormatError::NoUnits);
        }
        let per_unit = available.saturating_sub(LABEL_AREA_BYTES) / u64::from(self.units);
        let blocks = u32::try_from(per_unit / least.superblock_bytes()).unwrap_or(u32::MAX);
        if blocks < MIN_BLOCKS_PER_UNIT {
            return Err(FormatError::TooSmall { bytes: available, minimum: self.minimum_bytes() });
        }
        Ok(self.geometry(blocks))
    }
}

/// Why a device cannot be formatted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The file exists, or the path is a block device, and force was not given.
    #[error("{}: exists; to lose its contents and make a device of it, use --force", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// Neither a regular file nor a block device.
    #[error("{}: neither a regular file nor a block device", path.display())]
    WrongKind {
        /// The path.
        path: PathBuf,
    },
    /// Fewer than [`MIN_BLOCKS_PER_UNIT`] superblocks fit into each unit.
    #[error(
        "{bytes} bytes are too few for these units and superblocks: at least {minimum} are needed"
    )]
    TooSmall {
        /// The given value.
        bytes: u64,
        /// The least that works.
        minimum: u64,
    },
    /// The superblock's size is no multiple of 4096, zero, or above 512 MiB.
    #[error("superblocks of {bytes} bytes: a multiple of 4096 up to 512 MiB is needed")]
    Superblock {
        /// The given value.
        bytes: u64,
    },
    /// No unit.
    #[error("a device needs at least one unit")]
    NoUnits,
    /// The requested geometry is not possible.
    #[error("{0}")]
    Geometry(String),
    /// The file system has not enough space.
    #[error("{}: no space for {bytes} bytes on this file system; give a smaller size", path.display())]
    NoSpace {
        /// The path.
        path: PathBuf,
        /// The given value.
        bytes: u64,
    },
    /// The file system does not support the discard mode.
    #[error("{}: this file system refuses discard mode `{mode}` ({source}); use `none`", path.display())]
    Discard {
        /// The path.
        path: PathBuf,
        /// The mode.
        mode: &'static str,
        /// The error.
        source: io::Error,
    },
    /// Another process has the device open.
    #[error("{}: in use by another process; stop that one first", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        source: io::Error,
    },
}

/// Formats a file device at `path`: reserves its space, writes the label, makes both durable.
///
/// # Errors
/// [`FormatError`]. A new file that cannot be completed is removed; so is an existing file under
/// `force`, once its contents are discarded.
pub fn format_file(path: &Path, format: &FileFormat) -> Result<(), FormatError> {
    let mut target = NewFile::open(path, format.force)?;
    let available = match (target.is_block_device, format.size_bytes) {
        (true, 0) => target.size()?,
        (_, size) => size,
    };
    let geometry = format.geometry_in(available)?;
    let bytes = extent::device_bytes(&geometry, format.units);
    target.reserve(bytes)?;
    target.try_discard(format.discard, geometry.superblock_bytes())?;
    target.finish(Configuration {
        backend: BACKEND.name.to_owned(),
        uuid: format.uuid,
        units: format.units,
        geometry,
        options: [("discard".to_owned(), toml::Value::from(name(format.discard)))]
            .into_iter()
            .collect(),
    })
}

pub(super) fn name(discard: Discard) -> &'static str {
    match discard {
        Discard::None => "none",
        Discard::ZeroRange => "zero-range",
        Discard::Punch => "punch",
    }
}

/// A file that is being formatted; removed if dropped unfinished.
pub(crate) struct NewFile {
    path: PathBuf,
    file: Arc<LockedFile>,
    is_block_device: bool,
    /// Remove the file when this is dropped.
    provisional: bool,
}

impl NewFile {
    /// Creates the file, or opens an existing one if `force`; locks it either way. Does not change
    /// an existing file yet.
    pub(crate) fn open(path: &Path, force: bool) -> Result<NewFile, FormatError> {
        match NewFile::existing(path, force)? {
            Some(existing) => Ok(existing),
            None => NewFile::create(path),
        }
    }

    /// A file that exists, opened and locked.
    pub(super) fn opened(path: &Path, file: LockedFile, is_block_device: bool) -> NewFile {
        let file = Arc::new(file);
        NewFile { path: path.to_owned(), file, is_block_device, provisional: false }
    }

    pub(super) fn is_drive(&self) -> bool {
        self.is_block_device
    }

    pub(super) fn size(&self) -> Result<u64, FormatError> {
        size_of(&self.file).map_err(|source| self.io(source))
    }

    /// Refuses a block device of fewer bytes.
    pub(super) fn check_size(&self, bytes: u64) -> Result<(), FormatError> {
        match self.size()? < bytes {
            true => Err(FormatError::NoSpace { path: self.path.clone(), bytes }),
            false => Ok(()),
        }
    }

    fn create(path: &Path) -> Result<NewFile, FormatError> {
        let path = path.to_owned();
        let created = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path);
        let file = created.map_err(|source| FormatError::Io { path: path.clone(), source })?;
        match LockedFile::lock(file, &path) {
            Ok(file) => Ok(NewFile {
                path,
                file: Arc::new(file),
                is_block_device: false,
                provisional: true,
            }),
            Err(error) => {
                let _ = fs::remove_file(&path);
                Err(from_open(error))
            }
        }
    }

    /// Discards the contents of the file and allocates `bytes`, so that later programs cannot run
    /// out of space.
    pub(crate) fn reserve(&mut self, bytes: u64) -> Result<(), FormatError> {
        if self.is_block_device {
            return self.check_size(bytes);
        }
        self.drop_contents()?;
        room::reserve(&self.file, 0..bytes).map_err(|lack| match lack {
            NoRoom::Full => FormatError::NoSpace { path: self.path.clone(), bytes },
            NoRoom::Io(source) => self.io(source),
        })
    }

    /// Discards the contents of the file and makes it `bytes` long without allocating space.
    pub(crate) fn make_sparse(&mut self, bytes: u64) -> Result<(), FormatError> {
        if self.is_block_device {
            return Err(FormatError::WrongKind { path: self.path.clone() });
        }
        self.drop_contents()?;
        self.file.set_len(bytes).map_err(|source| self.io(source))
    }

    /// Discards the old contents; from here on a failure removes the file.
    fn drop_contents(&mut self) -> Result<(), FormatError> {
        self.provisional = true;
        self.file.set_len(0).map_err(|source| self.io(source))
    }

    /// Erases the first superblock as erase commands do, to find out now whether the file system
    /// supports it.
    fn try_discard(&self, discard: Discard, superblock_bytes: u64) -> Result<(), FormatError> {
        let Some(mode) = discard.fallocate_mode() else {
            return Ok(());
        };
        let flags = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        fallocate(&self.file, flags, LABEL_AREA_BYTES, superblock_bytes).map_err(|errno| {
            FormatError::Discard {
                path: self.path.clone(),
                mode: name(discard),
                source: errno.into(),
            }
        })
    }

    /// Writes the label and makes file and directory durable.
    pub(crate) fn finish(mut self, configuration: Configuration) -> Result<(), FormatError> {
        let file = Arc::clone(&self.file);
        LabelStore::create(&self.path, file, Label::new(configuration))
            .and_then(|_| self.file.sync_all())
            .and_then(|()| sync_directory(&self.path))
            .map_err(|source| self.io(source))?;
        self.provisional = false;
        Ok(())
    }

    /// Another handle on the file.
    pub(crate) fn handle(&self) -> Result<File, FormatError> {
        self.file.try_clone().map_err(|source| self.io(source))
    }

    /// An error of the operating system at this file.
    pub(crate) fn io(&self, source: io::Error) -> FormatError {
        FormatError::Io { path: self.path.clone(), source }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.provisional
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "unfinished device not removed");
        }
    }
}

/// Makes the file's name durable.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

pub(super) fn from_open(error: OpenError) -> FormatError {
    match error {
        OpenError::Busy { path } => FormatError::Busy { path },
        OpenError::Io { path, source } => FormatError::Io { path, source },
        OpenError::Missing { path } => {
            FormatError::Io { path, source: io::ErrorKind::NotFound.into() }
        }
        other => FormatError::Geometry(other.to_string()),
    }
}
