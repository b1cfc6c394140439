use super::*;
use crate::creation::{GROWING, NewDataDir, is_free};
use crate::directory::DEVICE_NAME;
use crate::manifest::{FORMAT_VERSION, Manifest, SETS_FORMAT_VERSION, StoreSection};
use crate::open::block_on;
use crate::set_table::{SetError, SetTable};
use crate::volume_units::VolumeSection;
use softflash_base::UnitSet;
use softflash_device::{
    DeviceInfo, FileFormat, GrowthError, ModelConfig, ModelFormat, OpenError, QueuePair,
    bytes_with, format_file, format_model, inspect,
};
use softflash_flash::erase_units;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const UNITS: u16 = 4;

/// A directory of four units, each of 64 superblocks of 256 KiB: two for keys, two for volumes.
fn make(path: &Path) {
    let store =
        StoreSection { shards: 1, slices: 4, compression: Vec::new(), copies: 1, parity: 0 };
    let volumes = Some(VolumeSection { units: 2, op_percent: 7 });
    let mut new = NewDataDir::begin(path, false).unwrap();
    new.clear(Manifest::new(DEVICE_NAME, store, volumes)).unwrap();
    let format = FileFormat { superblock_bytes: 256 << 10, ..FileFormat::new(0, 7) };
    let format = FileFormat { size_bytes: format.bytes_for(64), ..format };
    format_file(&new.device_path(), &format).unwrap();
    new.finish().unwrap();
}

fn device_of(path: &Path) -> DeviceInfo {
    inspect(&path.join(DEVICE_NAME)).unwrap()
}

/// The size for so many units.
fn size_of(path: &Path, units: u16) -> Option<u64> {
    Some(bytes_with(units, &device_of(path).geometry))
}

fn file_bytes(path: &Path) -> u64 {
    fs::metadata(path.join(DEVICE_NAME)).unwrap().len()
}

fn sets(manifest: &Manifest, device_units: u16) -> Vec<String> {
    let SetTable { store, mapped, .. } = manifest.table(device_units);
    let store = store.iter().map(UnitSet::to_string);
    store.chain(mapped.iter().map(|set| set.slots.to_string())).collect()
}

fn erase(device: &Arc<dyn Device>, units: &UnitSet) {
    let queue = device.open_queue_pair(units).unwrap();
    block_on::<_, DataDirError, _>(|runtime| async move {
        erase_units(queue, 1, runtime).await.unwrap();
        Ok(())
    })
    .unwrap();
}

/// A device that copies the directory before and behind each step of a growth.
struct Witness {
    inner: Arc<dyn Device>,
    directory: PathBuf,
    copies: Arc<Mutex<Vec<(String, PathBuf)>>>,
}

impl Witness {
    fn of(directory: &OpenDir) -> Witness {
        let inner = Arc::clone(&directory.device);
        Witness { inner, directory: directory.path.clone(), copies: Arc::default() }
    }

    /// What a crash at this moment leaves: everything that was written is there. What was not
    /// flushed may be, or not: the order of flushes is that of the calls.
    fn copy(&self, moment: &str) {
        let mut copies = self.copies.lock().unwrap();
        let to = self.directory.with_extension(copies.len().to_string());
        fs::create_dir(&to).unwrap();
        for entry in fs::read_dir(&self.directory).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        copies.push((moment.to_owned(), to));
    }
}

impl Device for Witness {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn open_queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, OpenError> {
        self.inner.open_queue_pair(units)
    }

    fn enlarge(&self, units: u16) -> Result<Arc<dyn Device>, GrowthError> {
        self.copy("before the room is reserved");
        let inner = self.inner.enlarge(units)?;
        self.copy("behind the reservation");
        let (directory, copies) = (self.directory.clone(), Arc::clone(&self.copies));
        Ok(Arc::new(Witness { inner, directory, copies }))
    }

    fn record_units(&self) -> Result<(), GrowthError> {
        self.copy("before the label");
        self.inner.record_units()?;
        self.copy("behind the label");
        Ok(())
    }

    fn give_back_room(&self) -> Result<(), GrowthError> {
        self.inner.give_back_room()
    }
}

#[test]
fn a_crash_at_any_step_leaves_the_old_directory_or_the_new_one() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    make(&path);
    let had = file_bytes(&path);
    let directory = OpenDir::open(&path).unwrap();
    let growth = directory.plan_growth(size_of(&path, 8), Shares::default()).unwrap().unwrap();
    let witness = Witness::of(&directory);
    let OpenDir { mut data, device, .. } = directory;
    data.announce_growth(&witness, &growth).unwrap();
    let larger = growth.enlarge(&witness).unwrap();
    erase(&larger, &growth.grown.joining());
    data.finish_growth(&*larger, &growth).unwrap();
    witness.copy("at the end");
    drop((larger, data, device));

    let copies = witness.copies.lock().unwrap().clone();
    assert_eq!(copies.len(), 5);
    for (number, (moment, copy)) in copies.iter().enumerate() {
        let is_recorded = number >= 3;
        // Whoever only looks finds each unit where it was, or where it is.
        let looked = OpenDir::open_to_look(copy).unwrap();
        let units = looked.device.info().units;
        let seen = sets(looked.data.manifest(), units);
        drop(looked);
        assert_eq!(copy.join(GROWING).exists(), number < 4, "{moment}");
        let staged = copy.join("softflash.toml.tmp");
        assert_eq!(staged.exists(), matches!(number, 2 | 3), "{moment}");
        let long_ago = UNIX_EPOCH + Duration::from_secs(77);
        if staged.exists() {
            File::options().write(true).open(&staged).unwrap().set_modified(long_ago).unwrap();
        }
        let opened = OpenDir::open(copy).unwrap();
        assert!(!copy.join(GROWING).exists() && !staged.exists(), "{moment}");
        // Behind the label nothing is written, as nothing may fit a full file system.
        let written = fs::metadata(copy.join("softflash.toml")).unwrap().modified().unwrap();
        assert_eq!(written == long_ago, number == 3, "{moment}");
        let manifest = opened.data.manifest();
        assert_eq!(manifest.format_version, SETS_FORMAT_VERSION, "{moment}");
        let expected: &[&str] = if is_recorded { &["0-1,4-5", "2,3,6,7"] } else { &["0-1", "2,3"] };
        assert_eq!(sets(manifest, units), expected, "{moment}");
        let expected = if number == 4 { &["0-1,4-5", "2,3,6,7"] } else { &["0-1", "2,3"] };
        assert_eq!(seen, expected, "{moment}");
        assert_eq!(opened.device.info().units, if is_recorded { 8 } else { UNITS }, "{moment}");
        let bytes = if is_recorded { size_of(&path, 8).unwrap() } else { had };
        assert_eq!(file_bytes(copy), bytes, "{moment}");

        // The command again completes it, or has nothing to do.
        match opened.plan_growth(size_of(&path, 8), Shares::default()).unwrap() {
            None => assert!(is_recorded, "{moment}"),
            Some(again) => {
                assert!(!is_recorded, "{moment}");
                let opened = opened.begin_growth(&again).unwrap();
                let opened = opened.finish_growth(&again).unwrap();
                assert_eq!(sets(opened.data.manifest(), 8), ["0-1,4-5", "2,3,6,7"], "{moment}");
            }
        }
    }
}

#[test]
fn a_growth_that_is_undone_leaves_neither_room_nor_record() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    make(&path);
    let had = file_bytes(&path);
    let directory = OpenDir::open(&path).unwrap();
    let growth = directory.plan_growth(size_of(&path, 6), Shares::default()).unwrap().unwrap();
    let directory = directory.begin_growth(&growth).unwrap();
    directory.data.stage_growth(&*directory.device, &growth).unwrap();
    assert!(file_bytes(&path) > had && path.join(GROWING).exists());
    directory.undo_growth();
    assert!(file_bytes(&path) == had && !path.join(GROWING).exists());
    assert!(!path.join("softflash.toml.tmp").exists());
    let directory = OpenDir::open(&path).unwrap();
    assert_eq!((directory.device.info().units, directory.spare().len()), (UNITS, 0));
}

#[test]
fn a_record_of_another_table_gives_nothing_away() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    make(&path);
    let directory = OpenDir::open(&path).unwrap();
    let growth = directory.plan_growth(size_of(&path, 8), Shares::default()).unwrap().unwrap();
    let directory = directory.begin_growth(&growth).unwrap();
    directory.device.record_units().unwrap();
    let record = fs::read(path.join(GROWING)).unwrap();
    drop(directory);
    // A program that knows no such record changes the sets.
    fs::remove_file(path.join(GROWING)).unwrap();
    let directory = OpenDir::open(&path).unwrap();
    let table = directory.table().without_units("vol-0", &"3".parse().unwrap()).unwrap();
    drop(directory.replace_table(&table).unwrap());
    fs::write(path.join(GROWING), record).unwrap();
    let directory = OpenDir::open(&path).unwrap();
    assert_eq!(directory.spare().to_string(), "3-7");
    assert!(!path.join(GROWING).exists());
    drop(directory);
    fs::write(path.join(GROWING), "device_units = ").unwrap();
    assert_eq!(OpenDir::open(&path).unwrap().spare().to_string(), "3-7");
    assert!(!path.join(GROWING).exists());
}

#[test]
fn what_a_directory_cannot_grow_to_is_refused_and_changes_nothing() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    make(&path);
    let directory = OpenDir::open(&path).unwrap();
    let plan = |size, shares| directory.plan_growth(size, shares);
    let refused = |size, shares| plan(size, shares).unwrap_err();
    let none = Shares::default();
    let error = refused(Some(1 << 20), none).to_string();
    assert!(error.contains("cannot become smaller") && error.contains("at least"), "{error}");
    let error = refused(None, none).to_string();
    assert!(error.contains("--size"), "{error}");
    let error = refused(Some(u64::MAX / 2), none);
    assert!(matches!(error, DataDirError::Growth { .. }), "{error}");
    let shares = Shares { store: Some(9), ..none };
    let error = refused(size_of(&path, 8), shares);
    let is_share =
        |error| matches!(error, DataDirError::Set { error: SetError::BadShares { .. }, .. });
    assert!(is_share(error));
    // Less than one unit more is none.
    let almost = size_of(&path, 5).map(|size| size - 1);
    assert!(plan(almost, none).unwrap().is_none());
    assert!(plan(size_of(&path, UNITS), none).unwrap().is_none());
    drop(directory);
    assert_eq!(DataDir::inspect(&path).unwrap().format_version, FORMAT_VERSION);
    assert!(!path.join(GROWING).exists());
}

#[test]
fn a_model_keeps_its_size() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let store =
        StoreSection { shards: 1, slices: 4, compression: Vec::new(), copies: 1, parity: 0 };
    let mut new = NewDataDir::begin(&path, false).unwrap();
    new.clear(Manifest::new(DEVICE_NAME, store, None)).unwrap();
    let config = ModelConfig::preset("small").unwrap();
    format_model(&new.device_path(), &ModelFormat { config, force: false, uuid: 7 }).unwrap();
    new.finish().unwrap();
    let directory = OpenDir::open(&path).unwrap();
    let units = directory.device.info().units;
    let error = directory.plan_growth(size_of(&path, 2 * units), Shares::default()).unwrap_err();
    let error = error.to_string();
    assert!(error.contains("`model` device keeps the units"), "{error}");
    assert!(directory.device.enlarge(2 * units).is_err());
}

#[test]
fn a_record_is_deleted_with_the_directory() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    make(&path);
    let directory = OpenDir::open(&path).unwrap();
    let growth = directory.plan_growth(size_of(&path, 8), Shares::default()).unwrap().unwrap();
    drop(directory.begin_growth(&growth).unwrap());
    assert!(path.join(GROWING).exists());
    let mut new = NewDataDir::begin(&path, true).unwrap();
    let manifest = DataDir::inspect(&path).unwrap();
    new.clear(Manifest::new(DEVICE_NAME, manifest.store, None)).unwrap();
    assert!(!path.join(GROWING).exists());
    drop(new);
    assert!(is_free(&path));
}
