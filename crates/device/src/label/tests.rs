use super::codec::{Fault, decode, encode, seal};
use super::*;
use crate::access::Access;
use crate::file::{self, FileDevice, FileFormat, format_file};
use crate::queue_pair::{Device, OpenError};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

pub(super) fn configuration() -> Configuration {
    Configuration {
        backend: "file".to_owned(),
        uuid: 0x0123_4567_89ab_cdef_0011_2233_4455_6677,
        units: 3,
        geometry: UnitGeometry {
            dies: 1,
            planes: 1,
            blocks_per_plane: 9,
            pages_per_block: 18,
            page_bytes: 4096,
            die_queue_depth: 64,
        },
        options: toml::Table::new(),
    }
}

fn label() -> Label {
    let bad = |unit, block| BadBlock { unit, die: 1, plane: 2, block };
    let bad_blocks = [bad(2, 7), bad(0, 70_000)].into_iter().collect();
    Label { sequence: 5, configuration: configuration(), bad_blocks }
}

fn create(path: &Path) -> LabelStore {
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(LABEL_AREA_BYTES).unwrap();
    let file = Arc::new(LockedFile::lock(file, path).unwrap());
    LabelStore::create(path, file, Label::new(configuration())).unwrap()
}

fn flip(path: &Path, offset: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
}

#[test]
fn a_label_reads_back_as_it_was_written() {
    let bytes = encode(&label()).unwrap();
    let mut place = bytes.clone();
    place.resize(COPY_BYTES, 0xee);
    assert_eq!(decode(&place), Ok(label()), "what follows the copy does not matter");
}

#[test]
fn any_damaged_byte_is_noticed() {
    let bytes = encode(&label()).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let expect_magic = at < 8;
        match decode(&damaged) {
            Err(Fault::NoMagic) => assert!(expect_magic, "byte {at}"),
            Err(Fault::Damaged(_)) => assert!(!expect_magic, "byte {at}"),
            other => panic!("byte {at}: {other:?}"),
        }
    }
}

#[test]
fn a_whole_label_of_a_later_version_is_told_from_a_damaged_one() {
    let mut bytes = encode(&label()).unwrap();
    bytes[8] = 9;
    assert!(matches!(decode(&bytes), Err(Fault::Damaged(_))));
    seal(&mut bytes);
    assert_eq!(decode(&bytes), Err(Fault::Newer(9)));
}

#[test]
fn more_bad_blocks_than_the_table_holds_are_an_error() {
    let mut label = label();
    label.bad_blocks =
        (0..70_000).map(|block| BadBlock { unit: 0, die: 0, plane: 0, block }).collect();
    assert!(encode(&label).unwrap_err().to_string().contains("70000 bad blocks"));
}

#[test]
fn a_damaged_copy_is_repaired_from_the_other() {
    for (offset, name) in [(50, 'A'), (COPY_OFFSETS[1] + 3, 'B')] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("device");
        let mut store = create(&path);
        store.mark_bad(&[BadBlock { unit: 1, die: 0, plane: 0, block: 4 }]).unwrap();
        let before = store.label().clone();
        drop(store);
        flip(&path, offset);
        let damaged = fs::read(&path).unwrap();
        let (mut store, note) = open_label(&path, Access::Write).unwrap();
        assert_eq!(store.label(), &before);
        assert!(note.unwrap().contains(&format!("copy {name}: ")));
        assert!(fs::read(&path).unwrap() == damaged, "nothing is written until the owner says so");
        store.mend().unwrap();
        drop(store);
        let (mut store, note) = open_label(&path, Access::Write).unwrap();
        assert_eq!(note, None, "repaired for good");
        let whole = fs::read(&path).unwrap();
        store.mend().unwrap();
        assert!(fs::read(&path).unwrap() == whole, "nothing is left to repair");
    }
}

#[test]
fn the_newer_of_two_whole_copies_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    let mut store = create(&path);
    let old = encode(store.label()).unwrap();
    store.mark_bad(&[BadBlock { unit: 1, die: 0, plane: 0, block: 4 }]).unwrap();
    let newer = store.label().clone();
    drop(store);
    for offset in COPY_OFFSETS {
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(&old, offset).unwrap();
        file.write_all_at(&[0; 8], offset + old.len() as u64).unwrap();
        let (mut store, note) = open_label(&path, Access::Write).unwrap();
        assert_eq!(store.label(), &newer);
        assert!(note.unwrap().contains("older"));
        store.mend().unwrap();
    }
}

/// As after a misdirected write, or a restored beginning of another device.
#[test]
fn copies_of_two_devices_are_a_damaged_label_whichever_is_newer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    drop(create(&path));
    for (copy, sequence) in [(0, 0), (0, 9), (1, 0), (1, 9)] {
        let mut other = label();
        other.configuration.uuid = !other.configuration.uuid;
        other.sequence = sequence;
        let bytes = encode(&other).unwrap();
        let mut device = fs::read(&path).unwrap();
        let place = usize::try_from(COPY_OFFSETS[copy]).unwrap();
        device[place..place + bytes.len()].copy_from_slice(&bytes);
        let changed = directory.path().join("changed");
        fs::write(&changed, device).unwrap();
        match open_label(&changed, Access::Write) {
            Err(OpenError::DamagedLabel { reason, .. }) => {
                assert!(reason.contains("copy A names device"), "{reason}");
            }
            opened => panic!("copy {copy}, sequence {sequence}: {opened:?}"),
        }
    }
}

#[test]
fn two_damaged_copies_are_a_damaged_label_and_none_is_no_device() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    drop(create(&path));
    flip(&path, 60);
    flip(&path, COPY_OFFSETS[1] + 60);
    assert!(matches!(open_label(&path, Access::Write), Err(OpenError::DamagedLabel { .. })));
    File::create(&path).unwrap().set_len(LABEL_AREA_BYTES).unwrap();
    assert!(matches!(open_label(&path, Access::Write), Err(OpenError::NotADevice { .. })));
    File::create(&path).unwrap();
    assert!(matches!(open_label(&path, Access::Write), Err(OpenError::NotADevice { .. })));
    assert!(matches!(open_label(&path.join("no"), Access::Write), Err(OpenError::Io { .. })));
    assert!(matches!(
        open_label(&directory.path().join("no"), Access::Write),
        Err(OpenError::Missing { .. })
    ));
}

#[test]
fn a_later_version_is_named_even_if_only_one_copy_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    let store = create(&path);
    let mut bytes = encode(store.label()).unwrap();
    drop(store);
    bytes[8] = 2;
    seal(&mut bytes);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&bytes, COPY_OFFSETS[1]).unwrap();
    match open_label(&path, Access::Write) {
        Err(OpenError::NewerVersion { found: 2, supported: FORMAT_VERSION, .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_lock_ends_with_the_device_and_not_with_every_copy_of_its_handle() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    let store = create(&path);
    // As in a child process that another thread is starting.
    let inherited = store.file().try_clone().unwrap();
    assert!(matches!(open_label(&path, Access::Write), Err(OpenError::Busy { .. })));
    drop(store);
    open_label(&path, Access::Write).unwrap();
    drop(inherited);
}

#[test]
fn a_failed_rewrite_leaves_the_other_copy_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    drop(create(&path));
    let read_only = Arc::new(LockedFile::lock(File::open(&path).unwrap(), &path).unwrap());
    let mut store = LabelStore::for_test(&path, read_only);
    let before = store.label().clone();
    assert!(store.mark_bad(&[BadBlock { unit: 0, die: 0, plane: 0, block: 1 }]).is_err());
    assert_eq!(store.label(), &before);
    drop(store);
    let (store, note) = open_label(&path, Access::Write).unwrap();
    assert_eq!((store.label(), note), (&before, None));
}

#[test]
fn a_device_whose_larger_label_was_half_written_opens_also_after_its_undo() {
    let directory = tempfile::tempdir().unwrap();
    for (failing, fails_again) in [(0, false), (0, true), (1, false), (1, true)] {
        let path = directory.path().join(format!("{failing}-{fails_again}"));
        let small =
            FileFormat { units: 2, superblock_bytes: 64 << 10, ..FileFormat::new(4 << 20, 77) };
        format_file(&path, &small).unwrap();
        let had = fs::metadata(&path).unwrap().len();
        let (store, note) = open_label(&path, Access::Write).unwrap();
        let fails = Arc::clone(&store.failing);
        let device = FileDevice::from_label(store, note, file::OpenOptions::default()).unwrap();
        let larger = device.enlarge(3).unwrap();
        *fails.lock().unwrap() = Some(failing);
        larger.record_units().unwrap_err();
        if !fails_again {
            *fails.lock().unwrap() = None;
        }
        // The undo of a growth.
        let undone = device.give_back_room();
        assert_eq!(undone.is_err(), fails_again, "copy {failing}");
        drop((device, larger));
        let device = FileDevice::open(&path, file::OpenOptions::default()).unwrap();
        device.mend_label().unwrap();
        let (units, bytes) = (device.info().units, fs::metadata(&path).unwrap().len());
        match fails_again {
            false => assert_eq!((units, bytes), (2, had), "copy {failing}"),
            true => assert!(bytes > had, "copy {failing}: {units} units"),
        }
    }
}

#[test]
fn a_change_behind_one_that_failed_counts_and_not_the_failed_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("device");
    let mut store = create(&path);
    *store.failing.lock().unwrap() = Some(1);
    store.set_units(4).unwrap_err();
    // A crash comes when the first copy of the next change is written.
    *store.failing.lock().unwrap() = Some(0);
    store.mark_bad(&[BadBlock { unit: 1, die: 0, plane: 0, block: 4 }]).unwrap_err();
    drop(store);
    let (store, _) = open_label(&path, Access::Write).unwrap();
    assert_eq!((store.label().configuration.units, store.label().bad_blocks.len()), (3, 1));
}
