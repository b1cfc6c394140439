//! The device of a new data directory.

use super::Plan;
use softflash_device::file::Discard;
use softflash_device::{
    FileFormat, FormatError, ModelConfig, ModelFormat, format_file, format_model,
};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The payload of a superblock on a large file or block device.
pub const SUPERBLOCK_BYTES: u64 = 8 << 20;

/// The least payload of a superblock.
pub(super) const LEAST_SUPERBLOCK_BYTES: u64 = 1 << 20;

/// The superblocks of a smaller device: what the store keeps free, and the last block of each run,
/// are whole superblocks, so with fewer and larger ones less of the device would hold data.
pub(super) const FEWEST_SUPERBLOCKS: u64 = 2048;

/// The device to create.
#[derive(Debug, Clone)]
pub enum NewDevice {
    /// Extents of a file in the directory, or of a block device elsewhere.
    File {
        /// Size in bytes; none for all of a block device.
        size_bytes: u64,
        /// How erased space is treated.
        discard: Discard,
        /// A block device instead of a file in the directory.
        block_device: Option<PathBuf>,
    },
    /// A model of a flash array, in a sparse file in the directory.
    Model(Box<ModelConfig>),
}

impl NewDevice {
    /// Superblocks of the device, bad ones included. 0 where that cannot be found out: the creation
    /// of the device reports why.
    pub(super) fn superblocks(&self) -> u64 {
        match self {
            NewDevice::File { .. } => self.file_bytes() / self.superblock_bytes(),
            NewDevice::Model(config) => {
                let geometry = config.unit_geometry();
                let each = geometry.map_or(SUPERBLOCK_BYTES, |unit| unit.superblock_bytes());
                config.array.geometry.bytes() / each.max(1)
            }
        }
    }

    /// The payload of a superblock of a file or block device.
    pub(super) fn superblock_bytes(&self) -> u64 {
        superblock_bytes_of(self.file_bytes())
    }

    /// The size of a file or block device; 0 where that cannot be found out.
    fn file_bytes(&self) -> u64 {
        match self {
            NewDevice::File { size_bytes: 0, block_device: Some(path), .. } => {
                let end = File::open(path).and_then(|mut file| file.seek(SeekFrom::End(0)));
                end.unwrap_or_default()
            }
            NewDevice::File { size_bytes, .. } => *size_bytes,
            NewDevice::Model(_) => 0,
        }
    }
}

/// The payload of a superblock of a file or block device of this size.
pub(super) fn superblock_bytes_of(file_bytes: u64) -> u64 {
    let wanted = file_bytes / FEWEST_SUPERBLOCKS;
    let power = 1 << wanted.max(1).ilog2();
    u64::clamp(power, LEAST_SUPERBLOCK_BYTES, SUPERBLOCK_BYTES)
}

/// How the device is formatted.
pub(super) enum DeviceFormat {
    File(FileFormat),
    Model(Box<ModelFormat>),
}

impl DeviceFormat {
    pub(super) fn check_place(&self, place: &Path) -> Result<(), FormatError> {
        match self {
            DeviceFormat::File(format) => format.check_place(place),
            DeviceFormat::Model(format) => format.check_place(place),
        }
    }

    pub(super) fn carry_out(&self, place: &Path) -> Result<(), FormatError> {
        match self {
            DeviceFormat::File(format) => format_file(place, format),
            DeviceFormat::Model(format) => format_model(place, format),
        }
    }
}

impl Plan {
    pub(super) fn block_device(&self) -> Option<PathBuf> {
        match &self.device {
            NewDevice::File { block_device, .. } => block_device.clone(),
            NewDevice::Model(_) => None,
        }
    }

    pub(super) fn device_format(&self) -> DeviceFormat {
        // A device in the directory is replaced where the directory may be taken.
        let force = self.force || self.block_device().is_none();
        match &self.device {
            NewDevice::File { size_bytes, discard, .. } => {
                let (size_bytes, discard) = (*size_bytes, *discard);
                let plain = self.file_format(self.device.superblock_bytes(), self.uuid);
                DeviceFormat::File(FileFormat { size_bytes, discard, force, ..plain })
            }
            NewDevice::Model(config) => {
                let config = (**config).clone();
                DeviceFormat::Model(Box::new(ModelFormat { config, force, uuid: self.uuid }))
            }
        }
    }

    /// A file device of this plan, without its size.
    pub(super) fn file_format(&self, superblock_bytes: u64, uuid: u128) -> FileFormat {
        FileFormat { units: self.units, superblock_bytes, ..FileFormat::new(0, uuid) }
    }
}
