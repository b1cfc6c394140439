//! Another table of sets for an open data directory.

use crate::directory::DataDir;
use crate::error::DataDirError;
use crate::manifest::{MANIFEST_NAME, Manifest};
use crate::open::OpenDir;
use crate::set_table::{SetError, SetTable};
use crate::sets::{FlashSet, SetKind};
use crate::volume_units::ShardDomain;
use softflash_base::UnitSet;
use softflash_device::{Device, DeviceInfo};
use softflash_volume::fits_domain;
use std::path::Path;

impl DataDir {
    /// The sets on its device.
    pub fn sets(&self, device: &dyn Device) -> Vec<FlashSet> {
        self.manifest().sets(device.info())
    }

    /// The table of its sets.
    pub fn table(&self, device: &dyn Device) -> SetTable {
        self.manifest().table(device.info().units)
    }

    /// Checks that a table can be that of this directory.
    ///
    /// # Errors
    /// [`DataDirError::Layout`] where it does not fit the device, [`DataDirError::Device`] where
    /// units can only be used together with those of another set; [`SetError::NoRoom`] and
    /// [`SetError::NoRoomForKeys`] for a set that would hold nothing.
    pub fn check_table(&self, device: &dyn Device, table: &SetTable) -> Result<(), DataDirError> {
        self.with_table(device, table).map(|_| ())
    }

    /// Replaces the table durably: after a crash the old one or the new one is there. It comes
    /// last: a set must hold nothing in units that leave it, and units that join one are erased.
    ///
    /// # Errors
    /// As [`check_table`](DataDir::check_table), and errors of the file system.
    pub fn replace_table(
        &mut self,
        device: &dyn Device,
        table: &SetTable,
    ) -> Result<(), DataDirError> {
        let manifest = self.with_table(device, table)?;
        self.replace_manifest(manifest)
    }

    /// The manifest with a table that can be that of this directory.
    pub(crate) fn with_table(
        &self,
        device: &dyn Device,
        table: &SetTable,
    ) -> Result<Manifest, DataDirError> {
        let manifest = self.manifest().changed_to(table, device.info(), self.path())?;
        let device_units = device.info().units;
        let of_volumes = manifest.domains(device_units).into_iter().map(|domain| domain.units);
        for units in manifest.layout(device_units).units.into_iter().chain(of_volumes) {
            device.check_units(&units)?;
        }
        Ok(manifest)
    }
}

impl Manifest {
    /// This manifest of the directory at `path` with a table that fits a device.
    pub(crate) fn changed_to(
        &self,
        table: &SetTable,
        device: &DeviceInfo,
        path: &Path,
    ) -> Result<Manifest, DataDirError> {
        let manifest = self.with_sets(table.clone());
        if let Some(reason) = manifest.problem(device.units) {
            return Err(DataDirError::Layout { path: path.join(MANIFEST_NAME), reason });
        }
        let mut domains = manifest.domains(device.units).into_iter();
        let is_too_large = |it: &ShardDomain| {
            it.config.slots.as_ref().is_some_and(|slots| !fits_domain(slots, &device.geometry))
        };
        if let Some(ShardDomain { name, units, .. }) = domains.find(is_too_large) {
            let units = units.len();
            return Err(DataDirError::set(path)(SetError::TooLarge { name, units }));
        }
        let had_room = |set: &FlashSet| {
            let before = self.sets(device).into_iter().find(|before| before.name == set.name);
            before.is_none_or(|before| before.usable_bytes > 0)
        };
        let sets = manifest.sets(device);
        let mut full = sets.iter().filter(|set| set.usable_bytes == 0);
        let Some(full) = full.find(|set| had_room(set)) else { return Ok(manifest) };
        let (name, units) = (full.name.clone(), full.units.len());
        Err(DataDirError::set(path)(match full.kind {
            SetKind::Mapped => SetError::NoRoom { name, units },
            SetKind::Store => SetError::NoRoomForKeys { name, units },
        }))
    }
}

impl OpenDir {
    /// The table of its sets.
    pub fn table(&self) -> SetTable {
        self.data.table(&*self.device)
    }

    /// The units in no set.
    pub fn spare(&self) -> UnitSet {
        self.table().spare(self.device.info().units)
    }

    /// Checks that a table can be that of this directory.
    ///
    /// # Errors
    /// Those of [`DataDir::check_table`].
    pub fn check_table(&self, table: &SetTable) -> Result<(), DataDirError> {
        self.data.check_table(&*self.device, table)
    }

    /// Replaces the table durably.
    ///
    /// # Errors
    /// Those of [`DataDir::replace_table`].
    pub fn replace_table(self, table: &SetTable) -> Result<OpenDir, DataDirError> {
        let OpenDir { device, mut data, .. } = self;
        data.replace_table(&*device, table)?;
        let layout = data.manifest().layout(device.info().units);
        Ok(OpenDir::of(data, device, layout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::creation::NewDataDir;
    use crate::directory::DEVICE_NAME;
    use crate::manifest::{FORMAT_VERSION, SETS_FORMAT_VERSION, StoreSection};
    use crate::set_table::{NewSet, Shares};
    use crate::volume_units::VolumeSection;
    use softflash_device::{FileFormat, format_file};
    use softflash_volume::UnitSlots;
    use std::num::NonZeroU32;
    use tempfile::TempDir;

    /// A directory of four units, of which the last three are for volumes.
    fn make(path: &Path) {
        let store =
            StoreSection { shards: 1, slices: 4, compression: Vec::new(), copies: 1, parity: 0 };
        let volumes = Some(VolumeSection { units: 3, op_percent: 20 });
        let mut new = NewDataDir::begin(path, false).unwrap();
        new.clear(Manifest::new(DEVICE_NAME, store, volumes)).unwrap();
        format_file(&new.device_path(), &FileFormat::new(512 << 20, 7)).unwrap();
        new.finish().unwrap();
    }

    fn units(text: &str) -> UnitSet {
        text.parse().unwrap()
    }

    #[test]
    fn the_first_change_makes_a_directory_one_of_the_version_with_a_table() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("data");
        make(&path);
        let directory = OpenDir::open(&path).unwrap();
        assert_eq!((directory.table().epoch, directory.spare()), (0, units("")));
        assert_eq!(directory.domains[0].config.slots, None);
        assert_eq!(DataDir::inspect(&path).unwrap().format_version, FORMAT_VERSION);

        let table = directory.table().without_units("vol-0", &units("2")).unwrap();
        directory.check_table(&table).unwrap();
        assert_eq!(DataDir::inspect(&path).unwrap().sets, None, "a check changes nothing");
        let changed = directory.replace_table(&table).unwrap();
        assert!(matches!(OpenDir::open(&path), Err(DataDirError::Busy { .. })), "still locked");
        drop(changed);

        let manifest = DataDir::inspect(&path).unwrap();
        assert_eq!((manifest.format_version, manifest.volumes), (SETS_FORMAT_VERSION, None));
        let directory = OpenDir::open(&path).unwrap();
        assert_eq!((directory.table(), directory.spare()), (table, units("2")));
        assert_eq!((&directory.layout.units, directory.layout.epoch), (&vec![units("0")], 1));
        let [domain] = &directory.domains[..] else { panic!("there is one") };
        assert_eq!((domain.place(), domain.units.clone()), ("set `vol-0`".into(), units("1,3")));
        let slots = UnitSlots::new(NonZeroU32::MIN, vec![Some(1), None, Some(3)]);
        assert_eq!((domain.config.domain, &domain.config.slots), (1, &Some(slots)));
        assert_eq!(domain.config.op_percent, 20.0);
        let sets: Vec<_> = directory.sets.iter().map(|set| (set.id, set.name.as_str())).collect();
        assert_eq!(sets, [(0, "store-0"), (1, "vol-0")]);
    }

    #[test]
    fn sets_are_listed_with_the_space_of_their_units() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("data");
        make(&path);
        let directory = OpenDir::open(&path).unwrap();
        let table = directory.table().without_units("vol-0", &units("3")).unwrap();
        let new = NewSet { name: "fast".to_owned(), units: 1, shard: None, op_percent: 0 };
        let table = table.with_set(&new, 4).unwrap();
        let before = directory.sets[1].usable_bytes;
        let directory = directory.replace_table(&table).unwrap();
        let [_, slow, fast] = &directory.sets[..] else { panic!("there are three") };
        assert_eq!((fast.id, fast.units.clone(), fast.op_percent), (2, units("3"), Some(0)));
        assert!(slow.usable_bytes < before && fast.usable_bytes > 0);
        assert_eq!(directory.domains.len(), 2);
    }

    #[test]
    fn a_set_beyond_the_size_of_a_domain_is_refused() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("data");
        make(&path);
        let directory = OpenDir::open(&path).unwrap();
        let mut info = directory.device.info().clone();
        // Units of 4 TiB: with one more, the set has four. A fifth one is too much.
        let blocks = (4 << 40) / info.geometry.superblock_bytes();
        info.geometry.blocks_per_plane = u32::try_from(blocks).unwrap();
        info.units = 7;
        let manifest = directory.data.manifest();
        for (more, fits) in [(1, true), (2, false)] {
            let table = directory.table().pinned().unwrap();
            let shares = Shares { volumes: Some(more), ..Shares::default() };
            let grown = table.grown(4..4 + more, shares).unwrap().next;
            match manifest.changed_to(&grown, &info, &path) {
                Ok(_) => assert!(fits, "{more} units more"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(!fits && error.contains("`vol-0` would have 5 units"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_table_that_does_not_fit_changes_nothing() {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("data");
        make(&path);
        let directory = OpenDir::open(&path).unwrap();
        let empty = directory.table().without_units("vol-0", &units("1-3")).unwrap();
        let error = directory.check_table(&empty).unwrap_err().to_string();
        assert!(error.contains("`vol-0` has no units"), "{error}");
        let error = directory.replace_table(&empty).err().unwrap();
        assert!(matches!(error, DataDirError::Layout { .. }), "{error}");
        assert_eq!(DataDir::inspect(&path).unwrap().format_version, FORMAT_VERSION);
    }

    #[test]
    fn version_and_tables_go_together() {
        let store = "device = \"flash.sfd\"\n[store]\nshards = 1\nslices = 4\n";
        let volumes = "[volumes]\nunits = 1\n";
        let sets = "[sets]\nepoch = 3\nnext_id = 2\nstore = [\"0-2\"]\n";
        let parse = |version: u32, tables: &str| {
            let text = format!("format_version = {version}\n{store}{tables}");
            Manifest::parse(Path::new(MANIFEST_NAME), &text).map_err(|error| error.to_string())
        };
        let manifest = parse(SETS_FORMAT_VERSION, sets).unwrap();
        assert_eq!((manifest.domains(4).len(), manifest.table(4).spare(4)), (0, units("3")));
        let text = manifest.to_text().unwrap();
        assert_eq!(Manifest::parse(Path::new(MANIFEST_NAME), &text).unwrap(), manifest);
        let both = format!("{volumes}{sets}");
        for (version, tables, expected) in [
            (FORMAT_VERSION, sets, "format_version 4 has no table [sets]"),
            (SETS_FORMAT_VERSION, "", "format_version 5 needs the table [sets]"),
            (SETS_FORMAT_VERSION, volumes, "format_version 5 needs the table [sets]"),
            (SETS_FORMAT_VERSION, &both, "both say which units are for volumes"),
            (SETS_FORMAT_VERSION, &sets.replace('3', "0"), "epoch 0"),
        ] {
            let error = parse(version, tables).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
