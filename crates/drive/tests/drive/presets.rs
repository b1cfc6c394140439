//! The devices that come with SoftFlash: all can be parsed and built, and have the capacity of the
//! original.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a preset that cannot be read fails its test"
)]

use softflash_drive::Drive;
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_nand::presets;
use std::collections::BTreeMap;
use std::path::Path;

const GIB: u64 = 1 << 30;

fn devices() -> BTreeMap<String, DeviceSpec> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets/devices");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let device = toml::from_str(&std::fs::read_to_string(&path).unwrap());
        (stem, device.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    files.map(read).collect()
}

#[test]
fn every_device_can_be_built_and_says_what_it_is() {
    for (file, device) in devices() {
        assert_eq!(device.name, file, "the name of a preset is that of its file");
        device.array().validate().unwrap_or_else(|error| panic!("{file}: {error}"));
        assert!(!device.title.is_empty() && !device.default_layout.is_empty(), "{file}");
        assert!(device.host.completions_per_interrupt >= 1, "{file}");
        let origin = &device.provenance;
        assert!(!origin.sources.is_empty(), "{file} names no source");
        assert!(!origin.assumptions.is_empty(), "{file} names no assumption");
    }
}

#[test]
fn every_default_layout_exists() {
    let layouts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../presets/layouts");
    for (file, device) in devices() {
        let layout = layouts.join(&device.default_layout).with_extension("toml");
        assert!(layout.is_file(), "{file}: no {}", layout.display());
    }
}

#[test]
fn capacities_are_those_of_the_originals() {
    let devices = devices();
    let capacities = [
        ("sdf", 704 * GIB),
        ("huawei-gen3", 704 * GIB),
        ("intel-320", 160 * GIB),
        ("memblaze-q520", 1024 * GIB),
        ("tssd", 204 * 8 * GIB),
        ("fusion-io", 800 * GIB),
        ("intel-ts8-2", 320 * GIB),
        ("mqsim-default", 512 * GIB),
        ("plan", 256 * GIB),
    ];
    for (name, bytes) in capacities {
        assert_eq!(devices[name].geometry.bytes(), bytes, "{name}");
    }
    // Whole blocks of 24 MiB come no closer to 1 TiB.
    let modern = &devices["tlc-modern"].geometry;
    assert_eq!(modern.bytes() / (1024 * GIB), 1);
    assert!(modern.bytes() - 1024 * GIB < 64 * modern.block_bytes(), "one block a plane too many");
}

#[test]
fn planes_of_a_channel_are_those_of_the_paper() {
    let devices = devices();
    for (name, planes) in [("sdf", 4), ("huawei-gen3", 4), ("intel-320", 4), ("memblaze-q520", 16)]
    {
        let geometry = &devices[name].geometry;
        let per_channel = geometry.dies_per_channel() * u32::from(geometry.planes_per_die);
        assert_eq!(per_channel, planes, "{name}");
    }
}

#[test]
fn sdf_and_gen3_have_the_same_flash() {
    let devices = devices();
    assert_eq!(devices["sdf"].array(), presets::sdf());
    assert_eq!(devices["huawei-gen3"].array(), presets::sdf());
    assert_eq!(devices["tssd"].array(), presets::tssd());
    assert_eq!(devices["huawei-gen3"].link, devices["sdf"].link);
}

#[test]
fn what_was_fitted_is_said() {
    let devices = devices();
    assert!(devices["sdf"].provenance.calibrated_on.is_empty());
    let fitted = &devices["huawei-gen3"].provenance.calibrated_on;
    assert_eq!(fitted, &["Table 4, read 8 KB", "Table 4, read 8 MB"]);
}

/// The raw bandwidth of the paper follows from geometry and times.
#[test]
fn raw_rates_are_those_of_the_paper() {
    let devices = devices();
    let sdf = &devices["sdf"];
    assert!((raw_read(sdf) / 1.67e9 - 1.0).abs() < 0.005, "{}", raw_read(sdf));
    assert!((raw_write(sdf) / 1.01e9 - 1.0).abs() < 0.005, "{}", raw_write(sdf));
    let intel = &devices["intel-320"];
    assert!((raw_write(intel) / 0.3e9 - 1.0).abs() < 0.03, "{}", raw_write(intel));
    let memblaze = &devices["memblaze-q520"];
    let buses = memblaze.bus.bytes_per_second * u64::from(memblaze.geometry.channels);
    assert_eq!(buses, 1_600_000_000);
}

/// The firmware of Fusion-io has the times of the rates that its maker quotes.
#[test]
fn quoted_rates_are_those_of_the_firmware() {
    let fusion = &devices()["fusion-io"];
    let firmware = fusion.controller;
    let rate = |ns: u64, of: f64| of * 1e9 / ns as f64;
    let near = |ours: f64, quoted: f64| {
        assert!((ours / quoted - 1.0).abs() < 0.002, "{ours}, quoted {quoted}");
    };
    let page = f64::from(fusion.geometry.page_bytes);
    near(rate(firmware.request_ns + firmware.read_page_ns, 1.0), 186_000.0);
    near(rate(firmware.read_page_ns, page), 1500e6);
    near(rate(firmware.write_page_ns, page), 1400e6);
    let intel = &devices()["intel-ts8-2"];
    near(rate(intel.controller.write_page_ns, f64::from(intel.geometry.page_bytes)), 205e6);
}

/// All channels sending pages with their spare bytes, in bytes a second.
fn raw_read(device: &DeviceSpec) -> f64 {
    let geometry = &device.geometry;
    let share =
        f64::from(geometry.page_bytes) / f64::from(geometry.page_bytes + geometry.spare_bytes);
    f64::from(geometry.channels) * device.bus.bytes_per_second as f64 * share
}

/// All dies loading and programming a page of every plane in turn, in bytes a second.
fn raw_write(device: &DeviceSpec) -> f64 {
    let geometry = &device.geometry;
    let program_bytes = f64::from(geometry.page_bytes * u32::from(geometry.planes_per_die));
    let load_s = program_bytes / device.bus.bytes_per_second as f64;
    let cycle_s = load_s + device.die.program_ns[0] as f64 / 1e9;
    f64::from(geometry.dies()) * program_bytes / cycle_s
}

#[test]
fn flash_that_suspends_runs_with_and_without() {
    let devices = devices();
    for suspend in [true, false] {
        let layout = PageMapped { suspend, ..PageMapped::default() };
        assert!(Drive::new(&devices["tlc-modern"], &layout, 7.0).is_ok());
    }
}
