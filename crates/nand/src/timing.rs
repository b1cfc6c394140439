//! Durations of operations: the configuration as in a preset, and the tables that the array uses.

use crate::cell::{Cell, Pairing};
use crate::geometry::{Geometry, MAX_PLANES};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The longest configurable time of one step: ten minutes.
pub const LONGEST_STEP_NS: u64 = 600_000_000_000;

/// Entries of a table by level, a power of two: the levels of a cell, and SLC mode.
pub(crate) const LEVELS: usize = 8;

/// The level of the pages of a block in SLC mode.
pub(crate) const SLC_LEVEL: u8 = 4;

/// Times of a die.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DieTiming {
    /// Bits per cell, which is also the pages of a word line.
    pub cell: Cell,
    /// The order in which pages of a word line are programmed.
    #[serde(default)]
    pub pairing: Pairing,
    /// tR, from command to data in the page register: one time for all pages, or one for each level
    /// of the cell from the lower page up.
    #[schemars(inner(range(min = 1, max = 600_000_000_000_u64)))]
    pub read_ns: Vec<u64>,
    /// tPROG, from data in the register to programmed: one time, or one for each level.
    #[schemars(inner(range(min = 1, max = 600_000_000_000_u64)))]
    pub program_ns: Vec<u64>,
    /// tBERS, the time to erase a block.
    #[schemars(range(min = 1, max = 600_000_000_000_u64))]
    pub erase_ns: u64,
    /// One further read of a page with shifted thresholds; tR where absent.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600_000_000_000_u64))]
    pub retry_ns: Option<u64>,
    /// A second register lets a die sense the next page while the last one is transferred.
    #[serde(default)]
    pub cache_read: bool,
    /// A second register lets a die load the next page while the last one is programmed.
    #[serde(default)]
    pub cache_program: bool,
    /// A read may suspend a program.
    #[serde(default)]
    pub program_suspend: Option<SuspendTiming>,
    /// A read may suspend an erase.
    #[serde(default)]
    pub erase_suspend: Option<SuspendTiming>,
    /// Times of blocks that are used with one bit a cell, as those of an SLC cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_mode: Option<SlcTiming>,
}

/// Times of a block in SLC mode: with one bit a cell, whatever its cells can hold. It has as many
/// pages as word lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcTiming {
    /// tR.
    #[schemars(range(min = 1, max = 600_000_000_000_u64))]
    pub read_ns: u64,
    /// tPROG.
    #[schemars(range(min = 1, max = 600_000_000_000_u64))]
    pub program_ns: u64,
}

/// The times to suspend an operation for a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuspendTiming {
    /// From the read's arrival until the array is free for it. An operation with at most this time
    /// left is not suspended.
    #[schemars(range(max = 600_000_000_000_u64))]
    pub suspend_ns: u64,
    /// From the time when the array is free again until the operation continues.
    #[schemars(range(max = 600_000_000_000_u64))]
    pub resume_ns: u64,
    /// The most suspensions of one operation; further reads wait for its end, so that writes do not
    /// starve.
    pub at_most: u16,
}

/// Times of a channel's bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BusTiming {
    /// Transfer rate of the channel, for data in both directions.
    #[schemars(range(min = 1))]
    pub bytes_per_second: u64,
    /// Command and address cycles: bus time of every transfer in addition to its data.
    #[serde(default)]
    pub command_overhead_ns: u64,
    /// Whether the spare area is transferred with the page.
    #[serde(default)]
    pub transfer_spare: bool,
    /// The most transfers of reads in a row while a transfer of a program waits for the bus; then
    /// the program is next.
    #[serde(default = "eight")]
    pub reads_ahead: u8,
}

fn eight() -> u8 {
    8
}

/// Why a timing configuration is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimingError {
    /// A list of times has neither one entry nor one for each level.
    #[error("timing: {field} has {given} entries; give one, or {levels} (one for each level)")]
    Levels {
        /// The field.
        field: &'static str,
        /// Entries given.
        given: usize,
        /// Levels of the cell.
        levels: usize,
    },
    /// A step takes longer than the model's limit, or no time where 0 is not possible.
    #[error("timing: {field} is {given} ns; it must be 1 to {LONGEST_STEP_NS}")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The given value, in nanoseconds.
        given: u64,
    },
    /// A bus without a transfer rate.
    #[error("timing: bytes_per_second is 0; state the channel's transfer rate")]
    NoRate,
}

/// Used instead of the number of planes if only the beginning of one page is transferred.
pub(crate) const HEAD: u8 = 0;

/// The most parts that a page is transferred in.
pub const MAX_PARTS: u8 = 32;

/// Used instead of the number of planes if so many parts of one page are transferred.
pub(crate) const fn parts(number: u8) -> u8 {
    MAX_PLANES as u8 + number
}

/// Times compiled for look-up.
#[derive(Debug, Clone)]
pub(crate) struct Timing {
    pub(crate) read_ns: [u64; LEVELS],
    pub(crate) program_ns: [u64; LEVELS],
    pub(crate) retry_ns: [u64; LEVELS],
    pub(crate) erase_ns: u64,
    /// Bus time of a transfer, by the number of planes; at [`HEAD`], for the beginning of a page;
    /// at [`parts`], for so many parts of a page.
    transfer_ns: [u64; MAX_PLANES + 1 + MAX_PARTS as usize],
    /// Bus time of the data of a part, and of the commands of a transfer.
    part_ns: u64,
    command_ns: u64,
    pub(crate) cache_read: bool,
    pub(crate) cache_program: bool,
    pub(crate) program_suspend: Option<SuspendTiming>,
    pub(crate) erase_suspend: Option<SuspendTiming>,
    pub(crate) reads_ahead: u8,
    /// Commands that a die accepts in addition to one suspending read.
    pub(crate) die_queue_depth: u8,
    /// Whether anything can be suspended.
    pub(crate) suspends: bool,
}

impl Timing {
    pub(crate) fn new(
        geometry: &Geometry,
        die: &DieTiming,
        bus: &BusTiming,
    ) -> Result<Timing, TimingError> {
        let mut read_ns = levels("read_ns", die.cell, &die.read_ns)?;
        let mut program_ns = levels("program_ns", die.cell, &die.program_ns)?;
        if let Some(slc) = die.slc_mode {
            let level = usize::from(SLC_LEVEL);
            read_ns[level] = in_range("slc_mode.read_ns", slc.read_ns)?;
            program_ns[level] = in_range("slc_mode.program_ns", slc.program_ns)?;
        }
        let retry_ns = match die.retry_ns {
            Some(ns) => [in_range("retry_ns", ns)?; LEVELS],
            None => read_ns,
        };
        for suspend in [die.program_suspend, die.erase_suspend].into_iter().flatten() {
            at_most("suspend_ns", suspend.suspend_ns)?;
            at_most("resume_ns", suspend.resume_ns)?;
        }
        let spare = if bus.transfer_spare { u64::from(geometry.spare_bytes) } else { 0 };
        let page = u64::from(geometry.page_bytes);
        let mut transfer_ns = [0; MAX_PLANES + 1 + MAX_PARTS as usize];
        for (planes, ns) in transfer_ns.iter_mut().enumerate().take(MAX_PLANES + 1).skip(1) {
            let bytes = planes as u64 * (page + spare);
            *ns = in_range("a page's bus time", bus_ns(bus, bytes)?)?;
        }
        // A sector is transferred with its share of the spare bytes.
        let head = u64::from(geometry.sector_bytes());
        transfer_ns[usize::from(HEAD)] = bus_ns(bus, head + (spare * head).div_ceil(page))?;
        Ok(Timing {
            read_ns,
            program_ns,
            retry_ns,
            erase_ns: in_range("erase_ns", die.erase_ns)?,
            transfer_ns,
            part_ns: 0,
            command_ns: bus.command_overhead_ns,
            cache_read: die.cache_read,
            cache_program: die.cache_program,
            program_suspend: die.program_suspend,
            erase_suspend: die.erase_suspend,
            reads_ahead: bus.reads_ahead,
            die_queue_depth: 1 + u8::from(die.cache_read || die.cache_program),
            suspends: die.program_suspend.is_some() || die.erase_suspend.is_some(),
        })
    }

    /// Pages are transferred in so many equal parts from now on.
    pub(crate) fn set_parts(&mut self, geometry: &Geometry, bus: &BusTiming, number: u8) {
        let spare = if bus.transfer_spare { geometry.spare_bytes } else { 0 };
        let bytes = u64::from(geometry.page_bytes + spare);
        let of = |parts: u64| {
            (bytes * parts * 1_000_000_000).div_ceil(bus.bytes_per_second * u64::from(number))
        };
        self.part_ns = of(1);
        for part in 1..=number {
            self.transfer_ns[usize::from(parts(part))] = self.command_ns + of(part.into());
        }
    }

    #[inline]
    pub(crate) fn transfer_ns(&self, planes: u8) -> u64 {
        self.transfer_ns[usize::from(planes)]
    }

    /// Bus time of so many parts that come from so many pages, one page after the other.
    pub(crate) fn parts_ns(&self, parts: u16, pages: u16) -> u64 {
        u64::from(pages) * self.command_ns + u64::from(parts) * self.part_ns
    }
}

fn bus_ns(bus: &BusTiming, bytes: u64) -> Result<u64, TimingError> {
    if bus.bytes_per_second == 0 {
        return Err(TimingError::NoRate);
    }
    let data_ns = (bytes * 1_000_000_000).div_ceil(bus.bytes_per_second);
    Ok(data_ns.saturating_add(bus.command_overhead_ns))
}

fn levels(field: &'static str, cell: Cell, times: &[u64]) -> Result<[u64; LEVELS], TimingError> {
    let mut filled = [0; LEVELS];
    match times {
        [all] => filled.fill(*all),
        each if each.len() == cell.bits() => filled[..each.len()].copy_from_slice(each),
        _ => {
            let (given, levels) = (times.len(), cell.bits());
            return Err(TimingError::Levels { field, given, levels });
        }
    }
    for ns in &filled[..cell.bits()] {
        in_range(field, *ns)?;
    }
    Ok(filled)
}

fn in_range(field: &'static str, ns: u64) -> Result<u64, TimingError> {
    if ns == 0 { Err(TimingError::OutOfRange { field, given: 0 }) } else { at_most(field, ns) }
}

fn at_most(field: &'static str, ns: u64) -> Result<u64, TimingError> {
    if ns > LONGEST_STEP_NS {
        return Err(TimingError::OutOfRange { field, given: ns });
    }
    Ok(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn sdf_bus_time_follows_from_rate_and_page() {
        let sdf = presets::sdf();
        let timing = Timing::new(&sdf.geometry, &sdf.die, &sdf.bus).unwrap();
        assert_eq!((timing.transfer_ns(1), timing.transfer_ns(2)), (204_800, 409_600));
        let spare = BusTiming { transfer_spare: true, command_overhead_ns: 500, ..sdf.bus };
        let timing = Timing::new(&sdf.geometry, &sdf.die, &spare).unwrap();
        assert_eq!(timing.transfer_ns(1), 216_500);
        // 1 KiB and an eighth of the 448 spare bytes.
        assert_eq!(timing.transfer_ns(HEAD), 500 + (1024 + 56) * 25);
    }

    #[test]
    fn sdf_program_time_follows_from_the_raw_write_rate() {
        let sdf = presets::sdf();
        // A channel's two chips of two planes program 4 pages in one cycle of loading two pages
        // over the bus and programming; 44 channels at that pace are the paper's 1.01 GB/s.
        let cycle_ns = 2.0 * 204_800.0 + sdf.die.program_ns[0] as f64;
        let rate = 44.0 * 4.0 * 8192.0 / cycle_ns;
        assert!((rate - 1.01).abs() < 1e-4, "{rate} GB/s");
    }

    #[test]
    fn impossible_times_are_named() {
        let sdf = presets::sdf();
        let told = |die: DieTiming, bus: BusTiming| {
            Timing::new(&sdf.geometry, &die, &bus).unwrap_err().to_string()
        };
        assert_eq!(
            told(DieTiming { read_ns: vec![1, 2, 3], ..sdf.die.clone() }, sdf.bus),
            "timing: read_ns has 3 entries; give one, or 2 (one for each level)"
        );
        assert!(told(DieTiming { erase_ns: 0, ..sdf.die.clone() }, sdf.bus).contains("erase_ns"));
        let years = DieTiming { program_ns: vec![1 << 60], ..sdf.die.clone() };
        assert!(told(years, sdf.bus).contains("program_ns"));
        let dead = BusTiming { bytes_per_second: 0, ..sdf.bus };
        assert!(told(sdf.die.clone(), dead).contains("bytes_per_second"));
    }
}
