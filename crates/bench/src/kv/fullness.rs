//! The size of a device by the share of it that the data take.

use softflash_console::CliError;
use softflash_console::sizes::human_bytes;
use softflash_datadir::{DataDirError, SUPERBLOCK_BYTES};
use softflash_device::file::MIN_BLOCKS_PER_UNIT;
use softflash_device::{FileFormat, FormatError};
use std::str::FromStr;

/// Number of units of a device, if nothing speaks for fewer.
const UNITS: u16 = 16;
/// The deviation from the wanted number of superblocks that is not worth having fewer units.
const TOLERANCE: f64 = 0.01;

/// Keys and values as a share of the payload of all superblocks, above 0 and below 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fullness(pub f64);

impl FromStr for Fullness {
    type Err = String;

    fn from_str(text: &str) -> Result<Fullness, String> {
        match percent(text) {
            Some(percent) if percent > 0.0 && percent < 100.0 => Ok(Fullness(percent / 100.0)),
            _ => Err(format!(
                "`{text}` is not a share of the device that data can take; write a percentage \
                 above 0 % and below 100 %, such as `70%`"
            )),
        }
    }
}

/// Names `--size` in the error of a device that is too small for its units.
pub fn name_size(error: DataDirError, units: u16) -> CliError {
    let DataDirError::Format(FormatError::TooSmall { bytes, minimum }) = error else {
        return error.into();
    };
    CliError::Usage(format!(
        "--size: {} are too few for {units} units of {MIN_BLOCKS_PER_UNIT} superblocks; use {}MiB \
         or more",
        human_bytes(bytes),
        minimum.div_ceil(1 << 20),
    ))
}

/// Parses a share from `0%` to `100%`.
pub fn parse_share(text: &str) -> Result<f64, String> {
    match percent(text) {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("`{text}` is not a share; write a percentage such as `50%`")),
    }
}

fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.trim_end().parse().ok()
}

/// Size and units of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of the device's file.
    pub size_bytes: u64,
    /// Number of units, a multiple of the number of threads.
    pub units: u16,
    /// Superblocks of all units.
    pub superblocks: u64,
}

impl Shape {
    /// The units of a device of a given size.
    pub fn units(threads: u16) -> u16 {
        UNITS.max(threads)
    }

    /// The device that `data_bytes` fill to this share. Every thread has the same number of units,
    /// and all units are equally large; with fewer units the size is met more closely.
    pub fn filled(data_bytes: u64, fullness: Fullness, threads: u16) -> Shape {
        let wanted = data_bytes as f64 / fullness.0 / SUPERBLOCK_BYTES as f64;
        let threads = threads.max(1);
        let most = (UNITS / threads).max(1);
        let mut best: Option<(f64, Shape)> = None;
        for units in (1..=most).rev().map(|each| each * threads) {
            let shape = Shape::of(units, (wanted / f64::from(units)).round() as u32);
            let deviation = (shape.superblocks as f64 / wanted - 1.0).abs();
            if deviation <= TOLERANCE {
                return shape;
            }
            if best.as_ref().is_none_or(|(least, _)| deviation < *least) {
                best = Some((deviation, shape));
            }
        }
        best.map_or_else(|| Shape::of(threads, MIN_BLOCKS_PER_UNIT), |(_, shape)| shape)
    }

    fn of(units: u16, superblocks_each: u32) -> Shape {
        let superblocks_each = superblocks_each.max(MIN_BLOCKS_PER_UNIT);
        let format =
            FileFormat { units, superblock_bytes: SUPERBLOCK_BYTES, ..FileFormat::new(0, 0) };
        let superblocks = u64::from(units) * u64::from(superblocks_each);
        Shape { size_bytes: format.bytes_for(superblocks_each), units, superblocks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_device_are_read_and_impossible_ones_are_refused_with_the_remedy() {
        assert_eq!("70%".parse(), Ok(Fullness(0.7)));
        assert_eq!("12.5%".parse(), Ok(Fullness(0.125)));
        for wrong in ["0%", "100%", "120%", "-5%", "70", "x%", "%", "NaN%"] {
            let error = wrong.parse::<Fullness>().unwrap_err();
            assert!(error.contains(&format!("`{wrong}`")) && error.contains("70%"), "{error}");
        }
        assert_eq!(parse_share("0%"), Ok(0.0));
        assert_eq!(parse_share("100%"), Ok(1.0));
        assert!(parse_share("101%").unwrap_err().contains("50%"));
    }

    #[test]
    fn the_device_is_as_large_as_wanted_and_its_units_are_shared_evenly() {
        for threads in [1, 2, 3, 4, 7, 16, 20] {
            for data_mib in [500_u64, 2_048, 3_000, 10_000, 100_000] {
                for percent in [25.0, 50.0, 70.0, 85.0, 90.0] {
                    let fullness = Fullness(percent / 100.0);
                    let shape = Shape::filled(data_mib << 20, fullness, threads);
                    assert_eq!(shape.units % threads, 0);
                    let payload = shape.superblocks * SUPERBLOCK_BYTES;
                    let found = (data_mib << 20) as f64 / payload as f64;
                    // With many threads the steps are large.
                    let step = f64::from(threads) / shape.superblocks as f64 / 2.0;
                    let off = (found / fullness.0 - 1.0).abs();
                    assert!(off <= TOLERANCE.max(step) * 1.2, "{shape:?} {percent}: {found}");
                    assert!(shape.size_bytes > payload);
                }
            }
        }
    }

    #[test]
    fn a_device_that_is_too_small_is_refused_with_the_least_size() {
        let too_small = FormatError::TooSmall { bytes: 512 << 20, minimum: 538_443_776 };
        let error = name_size(DataDirError::from(too_small), 16);
        assert_eq!(error.exit_code(), 2);
        assert_eq!(
            error.to_string(),
            "--size: 512.0 MiB are too few for 16 units of 4 superblocks; use 514MiB or more"
        );
        let other = DataDirError::Options("another error".to_owned());
        assert_eq!(name_size(other, 16).to_string(), "another error");
    }

    #[test]
    fn few_data_get_the_smallest_device() {
        let shape = Shape::filled(1000, Fullness(0.7), 2);
        assert_eq!((shape.units, shape.superblocks), (2, 2 * u64::from(MIN_BLOCKS_PER_UNIT)));
    }
}
