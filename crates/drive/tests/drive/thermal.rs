//! A drive with a thermal limit runs at its own speed until it is hot, then at the sustained rate.

#![expect(clippy::unwrap_used, reason = "tests end at the first thing that is wrong")]

use softflash_drive::spec::{DeviceSpec, PageMapped, ThermalSpec};
use softflash_drive::{AccessKind, Drive, HostRequest};
use softflash_nand::presets;

/// Reads so many megabytes at depth 32; returns bytes a second.
fn read(drive: &mut Drive, megabytes: u64) -> f64 {
    let bytes = 64 << 10;
    let (reads, begin) = (megabytes * 16, drive.now());
    let (mut submitted, mut done) = (0, Vec::new());
    while (done.len() as u64) < reads {
        while submitted < reads && submitted - (done.len() as u64) < 32 {
            let offset = submitted * bytes % (drive.capacity_bytes() - bytes);
            let request = HostRequest::new(submitted, AccessKind::Read, offset, bytes);
            drive.submit(drive.now(), request).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} reads ended", done.len());
    }
    (reads * bytes) as f64 * 1e9 / (drive.now().0 - begin.0) as f64
}

#[test]
fn a_hot_drive_runs_at_the_sustained_rate_and_cools_while_it_rests() {
    let cool = DeviceSpec::bare("cool", &presets::small());
    let mut drive = Drive::new(&cool, &PageMapped::default(), 20.0).unwrap();
    drive.fill();
    let full = read(&mut drive, 64);
    let sustained_bytes_per_second = (full / 4.0) as u64;
    let thermal = ThermalSpec { sustained_bytes_per_second, burst_bytes: 32 << 20 };
    let limited = DeviceSpec { thermal: Some(thermal), ..cool };
    let mut drive = Drive::new(&limited, &PageMapped::default(), 20.0).unwrap();
    drive.fill();
    // A burst of 32 MiB beyond the sustained rate is 42 MiB at four times that.
    let burst = read(&mut drive, 40);
    assert!((burst / full - 1.0).abs() < 0.05, "{burst} of {full} bytes a second while cool");
    read(&mut drive, 8);
    let hot = read(&mut drive, 64);
    let sustained = sustained_bytes_per_second as f64;
    assert!((hot / sustained - 1.0).abs() < 0.02, "{hot} bytes a second, sustained {sustained}");
    let mut done = Vec::new();
    drive.play_until(softflash_base::Time(drive.now().0 + 10_000_000_000), &mut done);
    let rested = read(&mut drive, 40);
    assert!((rested / full - 1.0).abs() < 0.05, "{rested} of {full} bytes a second after a rest");
}
