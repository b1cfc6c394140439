//! Creates a data directory, for `format` and for the first `serve`.

mod least_size;

use crate::capacity;
use crate::cleanup::Cleanup;
use crate::domains::Domains;
use crate::embedded::block_on;
use crate::error::CliError;
use crate::host;
use bytesize::ByteSize;
use softflash_device::file::Discard;
use softflash_device::model::UnitKind;
use softflash_device::{
    FileFormat, FormatError, ModelConfig, ModelFormat, OpenOptions, UnitGeometry, format_file,
    format_model, open_with,
};
use softflash_server::data_dir::{
    DEVICE_NAME, Manifest, NewDataDir, StoreSection, VolumeSection, leftovers,
};
use softflash_server::{DataDir, DataDirError};
use softflash_store::layout::{Compression, LEAST_UNITS_OF_PARITY};
use softflash_volume::VolumeError;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// The payload of a superblock on a large file or block device.
pub const SUPERBLOCK_BYTES: u64 = 8 << 20;

/// The least payload of a superblock.
const LEAST_SUPERBLOCK_BYTES: u64 = 1 << 20;

/// The superblocks of a smaller device: what the store keeps free, and the last block of each run,
/// are whole superblocks, so with fewer and larger ones less of the device would hold data.
const FEWEST_SUPERBLOCKS: u64 = 2048;

/// Default limits of the slices per shard. A merge frees the space of one slice at its end, so more
/// slices need less free space; each fills memtables of its own, so on a small device more of them
/// would write partly filled superblocks.
const FEWEST_SLICES: u64 = 2;
const MOST_SLICES: u64 = 8;
/// Superblocks per slice.
const SUPERBLOCKS_PER_SLICE: u64 = 32;

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
    fn superblocks(&self) -> u64 {
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
    fn superblock_bytes(&self) -> u64 {
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
fn superblock_bytes_of(file_bytes: u64) -> u64 {
    let wanted = file_bytes / FEWEST_SUPERBLOCKS;
    let power = 1 << wanted.max(1).ilog2();
    u64::clamp(power, LEAST_SUPERBLOCK_BYTES, SUPERBLOCK_BYTES)
}

/// How the device is formatted.
enum DeviceFormat {
    File(FileFormat),
    Model(Box<ModelFormat>),
}

impl DeviceFormat {
    fn check_place(&self, place: &Path) -> Result<(), FormatError> {
        match self {
            DeviceFormat::File(format) => format.check_place(place),
            DeviceFormat::Model(format) => format.check_place(place),
        }
    }

    fn carry_out(&self, place: &Path) -> Result<(), FormatError> {
        match self {
            DeviceFormat::File(format) => format_file(place, format),
            DeviceFormat::Model(format) => format_model(place, format),
        }
    }
}

/// Parameters of the data directory.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The path.
    pub path: PathBuf,
    /// The device.
    pub device: NewDevice,
    /// Number of independent units.
    pub units: u16,
    /// Number of shards; none for one per core.
    pub shards: Option<u16>,
    /// Number of slices; none for two to eight per shard, by the size of the device.
    pub slices: Option<u16>,
    /// Compression of each slice.
    pub compression: Compressions,
    /// Number of copies of all data, on different units.
    pub copies: u8,
    /// Maximum number of patches that share a parity block; 0 for no parity.
    pub parity: u8,
    /// The units for volumes, if any.
    pub volumes: Option<VolumeSection>,
    /// Whether to delete an existing data directory.
    pub force: bool,
}

/// Compression of all slices, and of particular ones.
#[derive(Debug, Clone, Default)]
pub struct Compressions {
    /// Of all slices.
    pub all: Compression,
    /// Of particular slices.
    pub of_slice: Vec<(u16, Compression)>,
}

impl Compressions {
    fn list(&self, slices: u16) -> Result<Vec<Compression>, CliError> {
        let mut list = vec![self.all; usize::from(slices)];
        for (slice, compression) in &self.of_slice {
            let place = list.get_mut(usize::from(*slice)).ok_or_else(|| {
                CliError::Usage(format!(
                    "--slice-compression {slice}=...: there are {slices} slices, numbered from 0"
                ))
            })?;
            *place = *compression;
        }
        while list.last() == Some(&Compression::None) {
            list.pop();
        }
        Ok(list)
    }
}

impl Plan {
    /// The store's section of the manifest, checked against the device's units.
    fn store(&self) -> Result<StoreSection, CliError> {
        let units_each = match self.parity {
            0 => u16::from(self.copies.max(1)),
            _ => LEAST_UNITS_OF_PARITY,
        };
        let store_units = self.units.saturating_sub(self.volume_units());
        let shards = self.number_of_shards(store_units / units_each)?;
        let slices =
            self.slices.unwrap_or_else(|| shards.saturating_mul(self.slices_per_shard(shards)));
        let compression = self.compression.list(slices)?;
        let section =
            StoreSection { shards, slices, compression, copies: self.copies, parity: self.parity };
        match Manifest::new("", section.clone(), self.volumes).problem(self.units) {
            Some(problem) => Err(CliError::Usage(problem)),
            None => Ok(section),
        }
    }

    fn volume_units(&self) -> u16 {
        self.volumes.map_or(0, |volumes| volumes.units)
    }

    /// The requested number of shards, or one per core, `most` at most. Units that share a channel
    /// belong to one shard, and each shard has as many units for volumes.
    fn number_of_shards(&self, most: u16) -> Result<u16, CliError> {
        let default = host::cores().min(most).max(1);
        let volumes = self.volume_units();
        let (channels, each) = match &self.device {
            NewDevice::Model(config) if config.unit == UnitKind::Chip => {
                let geometry = &config.array.geometry;
                (geometry.channels, u16::from(geometry.chips_per_channel))
            }
            _ => (0, 0),
        };
        if each == 0 {
            return Ok(self.shards.unwrap_or_else(|| greatest(default, &[volumes])));
        }
        if !volumes.is_multiple_of(each) {
            return Err(CliError::Usage(format!(
                "--volume-units {volumes}: the {each} units of a channel are all for volumes or none of them is; use \
                 a multiple of {each}"
            )));
        }
        let of_volumes = volumes / each;
        let of_store = channels.saturating_sub(of_volumes);
        match self.shards {
            None => Ok(greatest(default, &[of_store, of_volumes])),
            Some(shards) if divides(shards, &[of_store, of_volumes]) => Ok(shards),
            Some(shards) => Err(CliError::Usage(match of_volumes {
                0 => format!(
                    "--shards {shards}: the units of a channel belong to one shard, and {of_store} channels cannot be \
                     divided by {shards}; use a divisor of {of_store}"
                ),
                _ => format!(
                    "--shards {shards}: the units of a channel belong to one shard, and {of_store} channels of the \
                     store and {of_volumes} for volumes cannot both be divided by {shards}; use a divisor of both"
                ),
            })),
        }
    }

    fn slices_per_shard(&self, shards: u16) -> u16 {
        let store_units = u64::from(self.units.saturating_sub(self.volume_units()));
        let superblocks = self.device.superblocks() * store_units / u64::from(self.units.max(1));
        let superblocks = superblocks / u64::from(shards.max(1));
        (superblocks / SUPERBLOCKS_PER_SLICE).clamp(FEWEST_SLICES, MOST_SLICES) as u16
    }

    /// Creates the directory; a failure leaves nothing behind. Everything is checked before an older
    /// directory is deleted.
    pub fn carry_out(self) -> Result<DataDir, CliError> {
        let store = self.store()?;
        let format = self.device_format(host::random_identity()?);
        let place = self.block_device().unwrap_or_else(|| self.path.join(DEVICE_NAME));
        let manifest = Manifest::new(self.name_in_manifest(&place)?, store, self.volumes);
        let geometry = self.geometry(&format, &place, &manifest)?;
        self.check_capacity(&geometry, &manifest)?;
        self.check_rooms(&geometry, &manifest)?;
        let cleanup = Cleanup::on_signal(self.leftovers())?;
        let mut new = NewDataDir::begin(&self.path, self.force)?;
        format.check_place(&place).map_err(DataDirError::from)?;
        new.clear(manifest.clone())?;
        format.carry_out(&place).map_err(DataDirError::from)?;
        self.check_domains(&place, &manifest)?;
        Ok(cleanup.finish(|| new.finish())?)
    }

    fn block_device(&self) -> Option<PathBuf> {
        match &self.device {
            NewDevice::File { block_device, .. } => block_device.clone(),
            NewDevice::Model(_) => None,
        }
    }

    fn device_format(&self, uuid: u128) -> DeviceFormat {
        // A device in the directory is replaced where the directory may be taken.
        let force = self.force || self.block_device().is_none();
        match &self.device {
            NewDevice::File { size_bytes, discard, .. } => {
                let (size_bytes, discard) = (*size_bytes, *discard);
                let plain = self.file_format(self.device.superblock_bytes(), uuid);
                DeviceFormat::File(FileFormat { size_bytes, discard, force, ..plain })
            }
            NewDevice::Model(config) => {
                let config = (**config).clone();
                DeviceFormat::Model(Box::new(ModelFormat { config, force, uuid }))
            }
        }
    }

    /// The geometry of each unit, or the size of the smallest device that holds data.
    fn geometry(
        &self,
        format: &DeviceFormat,
        place: &Path,
        manifest: &Manifest,
    ) -> Result<UnitGeometry, CliError> {
        let geometry = match format {
            DeviceFormat::File(format) => {
                format.available_at(place).and_then(|available| format.geometry_in(available))
            }
            DeviceFormat::Model(format) => return Ok(format.config.unit_geometry()?),
        };
        let geometry = geometry.map_err(|error| match (error, self.least_size(manifest)) {
            (FormatError::TooSmall { bytes, minimum }, Some(least)) => {
                FormatError::TooSmall { bytes, minimum: minimum.max(least) }
            }
            (error, _) => error,
        });
        Ok(geometry.map_err(DataDirError::from)?)
    }

    /// A file device of this plan, without its size.
    fn file_format(&self, superblock_bytes: u64, uuid: u128) -> FileFormat {
        FileFormat { units: self.units, superblock_bytes, ..FileFormat::new(0, uuid) }
    }

    /// Refuses a device that no data fit, with the size of the smallest that holds some.
    fn check_capacity(&self, geometry: &UnitGeometry, manifest: &Manifest) -> Result<(), CliError> {
        if capacity::of_units(manifest, self.units, geometry).usable_bytes > 0 {
            return Ok(());
        }
        let bytes = geometry.unit_bytes() * u64::from(self.units);
        Err(CliError::Usage(capacity::too_small(manifest, bytes, self.least_size(manifest))))
    }

    /// Refuses units for volumes that leave no room for their data.
    fn check_rooms(&self, geometry: &UnitGeometry, manifest: &Manifest) -> Result<(), CliError> {
        let rooms = capacity::volume_rooms(manifest, self.units, geometry);
        if rooms.iter().all(|room| *room > 0) {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "--volume-units {}: they cannot hold volumes: {} superblocks of each unit leave no \
             space for data; use more or larger units",
            self.volume_units(),
            geometry.blocks_per_plane
        )))
    }

    /// Mounts the domains of the new device, so that one that is too small is refused now.
    fn check_domains(&self, device: &Path, manifest: &Manifest) -> Result<(), CliError> {
        let domains = manifest.domains(self.units);
        if domains.is_empty() {
            return Ok(());
        }
        let device = open_with(device, OpenOptions::default())?;
        let mounted = block_on(|runtime| async move {
            Domains::mount(&self.path, &device, &domains, &runtime).await.map(|all| all.stop())
        });
        mounted.map_err(|error| match error {
            CliError::Domain { error: VolumeError::Unsupported { reason }, .. } => {
                let units = self.volume_units();
                CliError::Usage(format!(
                    "--volume-units {units}: they cannot hold volumes: {reason}"
                ))
            }
            error => error,
        })
    }

    /// Paths that a signal handler has to remove.
    fn leftovers(&self) -> Vec<PathBuf> {
        let busy_or_wrong =
            self.path.is_dir() && !self.force && DataDir::inspect(&self.path).is_ok();
        if busy_or_wrong { Vec::new() } else { leftovers(&self.path) }
    }

    /// A device in the directory is named by its file name, so that the directory can be moved.
    fn name_in_manifest(&self, device: &Path) -> Result<PathBuf, CliError> {
        match device.strip_prefix(&self.path) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => std::path::absolute(device).map_err(CliError::file(device)),
        }
    }
}

/// Whether each count can be divided by this number of shards.
fn divides(shards: u16, counts: &[u16]) -> bool {
    shards > 0 && counts.iter().all(|count| count.is_multiple_of(shards))
}

/// The greatest number of shards up to `most` that divides each count.
fn greatest(most: u16, counts: &[u16]) -> u16 {
    (1..=most).rev().find(|shards| divides(*shards, counts)).unwrap_or(1)
}

/// A number of bytes for people.
pub fn human_bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Parses a size such as `256MiB`, `8G` or `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse().map_err(|_| {
        format!("`{text}` is not a size; write bytes, or a number with KiB, MiB, GiB or TiB")
    })?;
    Ok(size.as_u64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block_device(path: &Path) -> NewDevice {
        let block_device = Some(path.to_owned());
        NewDevice::File { size_bytes: 0, discard: Discard::None, block_device }
    }

    #[test]
    fn all_of_a_block_device_counts_by_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("device");
        assert_eq!(block_device(&path).superblocks(), 0, "it does not exist");
        File::create(&path).unwrap().set_len((40 << 20) + 1).unwrap();
        assert_eq!(block_device(&path).superblocks(), 40, "of 1 MiB");
    }

    #[test]
    fn superblocks_of_a_small_device_are_smaller() {
        let of = |size_bytes| {
            let discard = Discard::None;
            NewDevice::File { size_bytes, discard, block_device: None }.superblock_bytes() >> 20
        };
        let sizes = [0, 256 << 20, 2 << 30, 4 << 30, (8 << 30) - 1, 8 << 30, 16 << 30, 1 << 40];
        assert_eq!(sizes.map(of), [1, 1, 1, 2, 2, 4, 8, 8]);
    }

    #[test]
    fn a_shard_has_whole_channels_and_as_many_for_volumes() {
        let plan = |shards, volume_units| Plan {
            path: PathBuf::new(),
            device: NewDevice::Model(Box::new(ModelConfig::preset("tssd").unwrap())),
            units: 204,
            shards,
            slices: None,
            compression: Compressions::default(),
            copies: 1,
            parity: 0,
            volumes: (volume_units > 0)
                .then_some(VolumeSection { units: volume_units, op_percent: 7 }),
            force: false,
        };
        assert_eq!(plan(Some(3), 0).number_of_shards(204).unwrap(), 3);
        assert_eq!(plan(None, 0).number_of_shards(2).unwrap(), 1);
        let problem = |shards, volume_units| {
            plan(Some(shards), volume_units).number_of_shards(204).unwrap_err().to_string()
        };
        let text = problem(2, 0);
        assert!(text.contains("--shards 2") && text.contains("a divisor of 51"), "{text}");
        // 51 channels of 4 units.
        assert!(plan(Some(2), 4 * 25).number_of_shards(104).is_err(), "25 and 26 channels");
        assert_eq!(plan(Some(3), 4 * 21).number_of_shards(120).unwrap(), 3);
        assert_eq!(plan(None, 4).number_of_shards(200).unwrap(), 1, "one channel for volumes");
        let text = problem(3, 5);
        assert!(text.contains("--volume-units 5") && text.contains("a multiple of 4"), "{text}");
        let text = problem(3, 4);
        assert!(text.contains("50 channels") && text.contains("a divisor of both"), "{text}");
    }

    #[test]
    fn superblocks_of_a_model_have_the_size_of_its_array() {
        let mut config = ModelConfig::model();
        assert_eq!(NewDevice::Model(Box::new(config.clone())).superblocks(), 4 * 64);
        config.array.geometry.pages_per_block *= 4;
        assert_eq!(NewDevice::Model(Box::new(config)).superblocks(), 4 * 64);
    }
}
