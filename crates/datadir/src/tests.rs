use crate::creation::*;
use crate::directory::*;
use crate::error::DataDirError;
use crate::manifest::*;
use crate::volume_units::{DEFAULT_OP_PERCENT, ShardDomain, VolumeSection};
use softflash_base::UnitSet;
use softflash_device::{Access, FileFormat, OpenOptions, format_file};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn manifest() -> Manifest {
    Manifest::new(
        DEVICE_NAME,
        StoreSection { shards: 1, slices: 4, compression: Vec::new(), copies: 1, parity: 0 },
        None,
    )
}

fn make(path: &Path) -> DataDir {
    let mut new = NewDataDir::begin(path, false).unwrap();
    new.clear(manifest()).unwrap();
    format_file(&new.device_path(), &FileFormat::new(256 << 20, 7)).unwrap();
    new.finish().unwrap()
}

#[test]
fn a_finished_directory_opens_again() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    drop(make(&path));
    let opened = DataDir::open(&path).unwrap();
    assert_eq!(opened.manifest(), &manifest());
    let (device, layout) = opened.open_device(OpenOptions::default()).unwrap();
    assert_eq!(
        (device.info().units, layout.units, layout.slices),
        (4, vec![UnitSet::from(0..4)], 4)
    );
}

#[test]
fn an_unfinished_directory_leaves_nothing_behind() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let mut new = NewDataDir::begin(&path, false).unwrap();
    new.clear(manifest()).unwrap();
    format_file(&new.device_path(), &FileFormat::new(256 << 20, 7)).unwrap();
    drop(new);
    assert!(!path.exists());

    fs::create_dir(&path).unwrap();
    drop(NewDataDir::begin(&path, false).unwrap());
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0, "the directory itself was there before");
}

#[test]
fn a_directory_in_use_is_busy_and_names_the_holder() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let held = make(&path);
    let error = DataDir::open(&path).unwrap_err();
    assert!(
        matches!(error, DataDirError::Busy { holder: Some(pid), .. } if pid == std::process::id())
    );
    let error = NewDataDir::begin(&path, true).unwrap_err();
    assert!(matches!(error, DataDirError::Busy { .. }));
    assert!(path.join(DEVICE_NAME).exists(), "a busy directory keeps its contents");
    drop(held);
    DataDir::open(&path).unwrap();
}

#[test]
fn others_files_are_never_taken_over() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("thesis.tex"), "years of work").unwrap();
    for force in [false, true] {
        let error = NewDataDir::begin(temp.path(), force).unwrap_err();
        assert!(error.to_string().contains("thesis.tex"), "{error}");
    }
    assert!(temp.path().join("thesis.tex").exists());
    assert!(!temp.path().join(LOCK_NAME).exists());
}

#[test]
fn force_replaces_a_data_directory_and_nothing_less_does() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    drop(make(&path));
    assert!(matches!(NewDataDir::begin(&path, false), Err(DataDirError::Exists { .. })));
    let mut new = NewDataDir::begin(&path, true).unwrap();
    assert!(new.device_path().exists(), "nothing is deleted before everything is checked");
    new.clear(manifest()).unwrap();
    assert!(!new.device_path().exists());
}

/// What a format that is killed leaves behind each step.
#[test]
fn a_directory_whose_format_was_killed_is_free_again() {
    let steps: [(&str, &[&str]); 7] = [
        ("the directory", &[]),
        ("its lock", &[LOCK_NAME]),
        ("a look for room", &[LOCK_NAME, "flash.sfd.probe"]),
        ("a manifest without contents", &[LOCK_NAME, UNFINISHED_MANIFEST]),
        ("a probe", &[LOCK_NAME, UNFINISHED_MANIFEST, "flash.sfd.probe"]),
        ("a device", &[LOCK_NAME, UNFINISHED_MANIFEST, DEVICE_NAME]),
        ("old users", &[LOCK_NAME, UNFINISHED_MANIFEST, "users.acl"]),
    ];
    for (step, files) in steps {
        let temp = TempDir::new().unwrap();
        files.iter().for_each(|file| fs::write(temp.path().join(file), "").unwrap());
        assert!(is_free(temp.path()), "{step}");
        drop(make(temp.path()));
        DataDir::open(temp.path()).unwrap();
        let mut names: Vec<_> = fs::read_dir(temp.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [DEVICE_NAME, LOCK_NAME, MANIFEST_NAME], "{step}");
        assert!(!is_free(temp.path()), "it is a data directory now");
    }
}

/// A format with force that is killed before it deletes anything leaves its mark in a directory
/// that stays as it was.
#[test]
fn the_mark_of_a_killed_format_goes_when_the_directory_is_opened() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    drop(make(&path));
    let mark = path.join(UNFINISHED_MANIFEST);
    fs::write(&mark, "").unwrap();
    drop(DataDir::open(&path).unwrap());
    assert!(!mark.exists());
    fs::remove_file(path.join(MANIFEST_NAME)).unwrap();
    assert!(!is_free(&path), "a device without its manifest is no remains of a format");
    assert!(NewDataDir::begin(&path, false).is_err());
    assert!(path.join(DEVICE_NAME).exists());
}

#[test]
fn a_directory_is_read_where_it_cannot_be_written() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    drop(make(&path));
    let held = DataDir::open_to_look(&path).unwrap();
    assert!(matches!(DataDir::open(&path), Err(DataDirError::Busy { .. })), "readers lock, too");
    drop(held);
    let held = DataDir::open(&path).unwrap();
    assert!(matches!(DataDir::open_to_look(&path), Err(DataDirError::Busy { .. })));
    drop(held);
}

#[test]
fn each_kind_of_wrong_directory_has_its_own_error() {
    let temp = TempDir::new().unwrap();
    let missing = temp.path().join("missing");
    assert!(matches!(DataDir::open(&missing), Err(DataDirError::Missing { .. })));
    assert!(matches!(DataDir::open(temp.path()), Err(DataDirError::NotADataDir { .. })));
    let file = temp.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(DataDir::open(&file), Err(DataDirError::NotADirectory { .. })));
    fs::write(temp.path().join(DEVICE_NAME), "").unwrap();
    let orphan = DataDir::open(temp.path()).unwrap_err();
    assert!(matches!(orphan, DataDirError::NoManifest { .. }));
    assert!(!orphan.to_string().contains("softflash format"), "the advice destroys nothing");
}

#[test]
fn opening_the_device_for_writes_raises_the_version_and_looking_does_not() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let data = make(&path);
    let older = Manifest { format_version: 1, ..data.manifest().clone() };
    drop(data);
    write_manifest(&path, &older).unwrap();
    let version = || DataDir::inspect(&path).unwrap().format_version;
    let look = OpenOptions { access: Access::Look, ..OpenOptions::default() };
    DataDir::open(&path).unwrap().open_device(look).unwrap();
    assert_eq!(version(), 1);
    DataDir::open(&path).unwrap().open_device(OpenOptions::default()).unwrap();
    assert_eq!(version(), FORMAT_VERSION, "older programs refuse it");
}

#[test]
fn manifests_are_checked_field_by_field() {
    let good = "format_version = 1\ndevice = \"flash.sfd\"\n[store]\nshards = 2\nslices = 8\n";
    let path = Path::new("softflash.toml");
    let store = Manifest::parse(path, good).unwrap().store;
    assert_eq!((store.slices, store.copies), (8, 1));

    let newer = good.replace("version = 1", "version = 8").replace("slices", "ranges");
    let error = Manifest::parse(path, &newer).unwrap_err();
    assert!(matches!(error, DataDirError::NewerVersion { found: 8, supported: 7, .. }), "{error}");

    let replacements = [
        ("format_version = 1", ""),
        ("format_version = 1", "format_version = 0"),
        ("slices = 8", "slices = 8\ncolour = 3"),
        ("slices = 8", "slices = 1"),
        ("slices = 8", "slices = 70000"),
        ("shards = 2", "shards = 0"),
        ("slices = 8", "slices = 8\ncompression = [\"brotli\"]"),
        ("slices = 8", "slices = 8\ncopies = 3"),
        ("[store]", "[shop]"),
        ("slices = 8", "slices = 8\n[volumes]\nunits = 3"),
        ("slices = 8", "slices = 8\n[volumes]\nunits = 0"),
        ("slices = 8", "slices = 8\n[volumes]\nunits = 2\nop_percent = 101"),
        ("slices = 8", "slices = 8\n[volumes]\nop_percent = 7"),
    ];
    for (from, to) in replacements {
        let error = Manifest::parse(path, &good.replace(from, to)).unwrap_err();
        assert!(matches!(error, DataDirError::DamagedManifest { .. }), "{to}: {error}");
    }
}

#[test]
fn a_manifest_reads_back_as_it_was_written() {
    use softflash_store::layout::Compression;
    let volumes = VolumeSection { units: 2, op_percent: 0 };
    for (copies, parity, volumes) in [(2, 0, None), (1, 3, Some(volumes))] {
        let store = StoreSection {
            shards: 2,
            slices: 3,
            compression: vec![Compression::None, Compression::Lz4, Compression::Zstd],
            copies,
            parity,
        };
        let manifest = Manifest::new("/dev/nvme0n1", store, volumes);
        let text = manifest.to_text().unwrap();
        assert_eq!(Manifest::parse(Path::new("x"), &text).unwrap(), manifest);
    }
}

#[test]
fn a_manifest_without_volume_units_does_not_name_volumes() {
    let expected = "# A SoftFlash data directory. Written by `softflash format` and `softflash set`; do not edit it:\n\
                    # the layout of the data on the device depends on it.\n\n\
                    format_version = 4\ndevice = \"flash.sfd\"\n\n[store]\nshards = 1\nslices = 4\n";
    assert_eq!(manifest().to_text().unwrap(), expected);
}

#[test]
fn the_store_has_the_units_that_are_not_for_volumes() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let mut new = NewDataDir::begin(&path, false).unwrap();
    let store = manifest().store;
    let volumes = Some(VolumeSection { units: 3, op_percent: DEFAULT_OP_PERCENT });
    new.clear(Manifest::new(DEVICE_NAME, store.clone(), volumes)).unwrap();
    format_file(&new.device_path(), &FileFormat::new(256 << 20, 7)).unwrap();
    let data = new.finish().unwrap();
    assert_eq!(data.manifest().format_version, FORMAT_VERSION, "older programs refuse it");
    let (device, layout) = data.open_device(OpenOptions::default()).unwrap();
    assert_eq!(layout.units, [UnitSet::from(0..1)]);
    let domains = data.manifest().domains(device.info().units);
    assert_eq!((domains.len(), domains[0].units.to_string()), (1, "1-3".to_owned()));
    assert!(manifest().domains(4).is_empty());

    let all = Some(VolumeSection { units: 4, op_percent: 0 });
    let problem = Manifest::new(DEVICE_NAME, store, all).problem(4).unwrap();
    assert!(problem.contains("leaves 0") && problem.contains("fewer units aside"), "{problem}");
}

/// Texts that earlier versions wrote, with the owners on a device of 12 units.
#[test]
fn manifests_of_before_are_tables_of_owners_and_are_written_as_they_were() {
    let store = "device = \"flash.sfd\"\n\n[store]\nshards = 2\nslices = 8\n";
    let volumes = "\n[volumes]\nunits = 4\nop_percent = 7\n";
    let of_store = ["store: 0-5", "store: 6-11"];
    let of_both = ["store: 0-3", "store: 4-7", "shard 0: 8-9", "shard 1: 10-11"];
    for version in 1..=FORMAT_VERSION {
        for (volumes, owners) in [("", &of_store[..]), (volumes, &of_both[..])] {
            let text = format!("format_version = {version}\n{store}{volumes}");
            let manifest = Manifest::parse(Path::new("softflash.toml"), &text).unwrap();
            let layout = manifest.layout(12);
            let of_store = layout.units.iter().map(|units| format!("store: {units}"));
            let of_domain = |domain: ShardDomain| format!("{}: {}", domain.place(), domain.units);
            let of_volumes = manifest.domains(12).into_iter().map(of_domain);
            assert_eq!(of_store.chain(of_volumes).collect::<Vec<_>>(), owners, "{text}");
            assert_eq!((manifest.problem(12), layout.epoch), (None, 0));
            assert!(manifest.to_text().unwrap().ends_with(&text), "{text}");
        }
    }
}
