use super::*;
use softflash_device::{FileFormat, format_file};
use tempfile::TempDir;

fn manifest() -> Manifest {
    Manifest::new(
        DEVICE_NAME,
        StoreSection { shards: 1, slices: 4, compression: Vec::new(), copies: 1, parity: 0 },
    )
}

fn make(path: &Path) -> DataDir {
    let new = NewDataDir::begin(path, false).unwrap();
    format_file(&new.device_path(), &FileFormat::new(256 << 20, 7)).unwrap();
    new.finish(manifest()).unwrap()
}

#[test]
fn a_finished_directory_opens_again() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    drop(make(&path));
    let opened = DataDir::open(&path).unwrap();
    assert_eq!(opened.manifest(), &manifest());
    let (device, layout) = opened.open_device(OpenOptions::default()).unwrap();
    assert_eq!((device.info().units, layout.units, layout.slices), (4, 4, 4));
}

#[test]
fn an_unfinished_directory_leaves_nothing_behind() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let new = NewDataDir::begin(&path, false).unwrap();
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
    let new = NewDataDir::begin(&path, true).unwrap();
    assert!(!new.device_path().exists());
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
}

#[test]
fn opening_the_device_for_writes_raises_the_version_and_looking_does_not() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("data");
    let data = make(&path);
    let older = Manifest { format_version: 1, ..data.manifest().clone() };
    drop(data);
    format::write_manifest(&path, &older).unwrap();
    let version = || DataDir::inspect(&path).unwrap().format_version;
    let look = OpenOptions { repair_label: false, ..OpenOptions::default() };
    DataDir::open(&path).unwrap().open_device(look).unwrap();
    assert_eq!(version(), 1);
    DataDir::open(&path).unwrap().open_device(OpenOptions::default()).unwrap();
    assert_eq!(version(), FORMAT_VERSION);
}

#[test]
fn manifests_are_checked_field_by_field() {
    let good = "format_version = 1\ndevice = \"flash.sfd\"\n[store]\nshards = 2\nslices = 8\n";
    let path = Path::new("softflash.toml");
    let store = Manifest::parse(path, good).unwrap().store;
    assert_eq!((store.slices, store.copies), (8, 1));

    let newer = good.replace("version = 1", "version = 3").replace("slices", "ranges");
    let error = Manifest::parse(path, &newer).unwrap_err();
    assert!(matches!(error, DataDirError::NewerVersion { found: 3, .. }), "{error}");

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
    ];
    for (from, to) in replacements {
        let error = Manifest::parse(path, &good.replace(from, to)).unwrap_err();
        assert!(matches!(error, DataDirError::DamagedManifest { .. }), "{to}: {error}");
    }
}

#[test]
fn a_manifest_reads_back_as_it_was_written() {
    use softflash_store::layout::Compression;
    for (copies, parity) in [(2, 0), (1, 3)] {
        let store = StoreSection {
            shards: 2,
            slices: 3,
            compression: vec![Compression::None, Compression::Lz4, Compression::Zstd],
            copies,
            parity,
        };
        let manifest = Manifest::new("/dev/nvme0n1", store);
        let text = manifest.to_text().unwrap();
        assert_eq!(Manifest::parse(Path::new("x"), &text).unwrap(), manifest);
    }
}
