//! Creates a data directory by the options of a user, which are checked before anything is made or
//! deleted.

mod device;
mod least_size;
mod shards;

pub use device::{NewDevice, SUPERBLOCK_BYTES};

use crate::capacity;
use crate::creation::{NewDataDir, leftovers};
use crate::directory::{DEVICE_NAME, DataDir};
use crate::domains::Domains;
use crate::error::DataDirError;
use crate::manifest::{Manifest, StoreSection};
use crate::open::block_on;
use crate::volume_units::VolumeSection;
use bytesize::ByteSize;
use device::DeviceFormat;
use softflash_device::{FormatError, OpenOptions, UnitGeometry, open_with};
use softflash_store::layout::{Compression, LEAST_UNITS_OF_PARITY};
use softflash_volume::VolumeError;
use std::io;
use std::path::{Path, PathBuf};

/// Parameters of a new data directory.
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
    /// The identity of the device, unique in the world.
    pub uuid: u128,
    /// Cores of the machine, for the default number of shards.
    pub cores: u16,
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
    fn list(&self, slices: u16) -> Result<Vec<Compression>, DataDirError> {
        let mut list = vec![self.all; usize::from(slices)];
        for (slice, compression) in &self.of_slice {
            let place = list.get_mut(usize::from(*slice)).ok_or_else(|| {
                DataDirError::Options(format!(
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

/// A data directory whose options were checked. Nothing is made yet.
pub struct PreparedDataDir {
    plan: Plan,
    manifest: Manifest,
    format: DeviceFormat,
    place: PathBuf,
}

/// A data directory that is complete but for the name of its manifest.
pub struct UnfinishedDataDir(NewDataDir);

impl Plan {
    /// A data directory with the defaults of everything else.
    pub fn new(path: PathBuf, device: NewDevice, units: u16, uuid: u128, cores: u16) -> Plan {
        Plan {
            path,
            device,
            units,
            shards: None,
            slices: None,
            compression: Compressions::default(),
            copies: 1,
            parity: 0,
            volumes: None,
            force: false,
            uuid,
            cores,
        }
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`DataDirError::Options`] and [`DataDirError::Format`]: no such directory can be.
    pub fn prepare(self) -> Result<PreparedDataDir, DataDirError> {
        let store = self.store()?;
        let format = self.device_format();
        let place = self.place()?;
        let manifest = Manifest::new(self.name_in_manifest(&place)?, store, self.volumes);
        let geometry = self.geometry(&format, &place, &manifest)?;
        self.check_capacity(&geometry, &manifest)?;
        self.check_rooms(&geometry, &manifest)?;
        Ok(PreparedDataDir { plan: self, manifest, format, place })
    }

    /// The path of the device.
    fn place(&self) -> Result<PathBuf, DataDirError> {
        let Some(path) = self.block_device() else { return Ok(self.path.join(DEVICE_NAME)) };
        if path.exists() {
            return Ok(path);
        }
        // Of a mistyped name, a file would be made.
        let source = io::ErrorKind::NotFound.into();
        Err(DataDirError::Format(FormatError::Io { path, source }))
    }

    /// The store's section of the manifest, checked against the device's units.
    fn store(&self) -> Result<StoreSection, DataDirError> {
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
            Some(problem) => Err(DataDirError::Options(problem)),
            None => Ok(section),
        }
    }

    fn volume_units(&self) -> u16 {
        self.volumes.map_or(0, |volumes| volumes.units)
    }

    /// The geometry of each unit, or the size of the smallest device that holds data.
    fn geometry(
        &self,
        format: &DeviceFormat,
        place: &Path,
        manifest: &Manifest,
    ) -> Result<UnitGeometry, DataDirError> {
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
        geometry.map_err(DataDirError::from)
    }

    /// Refuses a device that no data fit, with the size of the smallest that holds some.
    fn check_capacity(
        &self,
        geometry: &UnitGeometry,
        manifest: &Manifest,
    ) -> Result<(), DataDirError> {
        if capacity::of_units(manifest, self.units, geometry).usable_bytes > 0 {
            return Ok(());
        }
        let bytes = geometry.unit_bytes() * u64::from(self.units);
        Err(DataDirError::Options(too_small(manifest, bytes, self.least_size(manifest))))
    }

    /// Refuses units for volumes that leave no room for their data.
    fn check_rooms(
        &self,
        geometry: &UnitGeometry,
        manifest: &Manifest,
    ) -> Result<(), DataDirError> {
        let rooms = capacity::volume_rooms(manifest, self.units, geometry);
        if rooms.iter().all(|room| *room > 0) {
            return Ok(());
        }
        let remedy = match self.least_size(manifest) {
            Some(bytes) => format!("use a size of at least {bytes} bytes"),
            None => "use more or larger units".to_owned(),
        };
        Err(DataDirError::Options(format!(
            "--volume-units {}: they cannot hold volumes: {} superblocks of each unit leave no \
             space for data; {remedy}",
            self.volume_units(),
            geometry.blocks_per_plane
        )))
    }

    /// A device in the directory is named by its file name, so that the directory can be moved.
    fn name_in_manifest(&self, device: &Path) -> Result<PathBuf, DataDirError> {
        match device.strip_prefix(&self.path) {
            Ok(name) => Ok(name.to_owned()),
            Err(_) => std::path::absolute(device)
                .map_err(|source| DataDirError::Io { path: device.to_owned(), source }),
        }
    }
}

impl PreparedDataDir {
    /// Paths that an interrupted [`create`](Self::create) may leave, in the order of removal.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let Plan { path, force, .. } = &self.plan;
        let busy_or_wrong = path.is_dir() && !force && DataDir::inspect(path).is_ok();
        if busy_or_wrong { Vec::new() } else { leftovers(path) }
    }

    /// Deletes an older directory, if that was asked for, and creates this one; a failure leaves
    /// nothing behind.
    ///
    /// # Errors
    /// [`DataDirError`].
    pub fn create(&self) -> Result<UnfinishedDataDir, DataDirError> {
        let mut new = NewDataDir::begin(&self.plan.path, self.plan.force)?;
        self.format.check_place(&self.place)?;
        new.clear(self.manifest.clone())?;
        self.format.carry_out(&self.place)?;
        self.check_domains()?;
        Ok(UnfinishedDataDir(new))
    }

    /// Mounts the domains of the new device, so that one that is too small is refused now.
    fn check_domains(&self) -> Result<(), DataDirError> {
        let Plan { path, units, .. } = &self.plan;
        let domains = self.manifest.domains(*units);
        if domains.is_empty() {
            return Ok(());
        }
        let device = open_with(&self.place, OpenOptions::default())?;
        let mounted = block_on(|runtime| async move {
            let mounted = Domains::mount(&device, &domains, &runtime).await?;
            mounted.stop();
            mounted.check_all(path)
        });
        mounted.map_err(|error| match error {
            DataDirError::Domain { error: VolumeError::Unsupported { reason }, .. } => {
                let units = self.plan.volume_units();
                DataDirError::Options(format!(
                    "--volume-units {units}: they cannot hold volumes: {reason}"
                ))
            }
            error => error,
        })
    }
}

impl UnfinishedDataDir {
    /// From now on this is a data directory, durably.
    ///
    /// # Errors
    /// Errors of the file system; then all created files are removed.
    pub fn finish(self) -> Result<DataDir, DataDirError> {
        self.0.finish()
    }
}

/// The reason why a device that no data fit is refused, with the size of the smallest one like it
/// that holds some, if that is known.
fn too_small(manifest: &Manifest, device_bytes: u64, least_bytes: Option<u64>) -> String {
    let remedy = match least_bytes {
        Some(bytes) => format!("use a size of at least {bytes} bytes, or fewer shards or slices"),
        None => "use a larger device, or fewer shards or slices".to_owned(),
    };
    let plural = |count: u16, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let StoreSection { shards, slices, .. } = manifest.store;
    format!(
        "a device of {} holds no data with {} and {}: all superblocks are kept free for flushes, the log and merges; \
         {remedy}",
        ByteSize::b(device_bytes).display().iec(),
        plural(shards, "shard"),
        plural(slices, "slice"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_device::ModelConfig;
    use softflash_device::file::Discard;
    use std::fs::File;

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
        let plan = |shards, volume_units| {
            let device = NewDevice::Model(Box::new(ModelConfig::preset("tssd").unwrap()));
            let volumes =
                (volume_units > 0).then_some(VolumeSection { units: volume_units, op_percent: 7 });
            Plan { shards, volumes, ..Plan::new(PathBuf::new(), device, 204, 1, 2) }
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
