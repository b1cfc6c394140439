//! The SLC cache of a drive: blocks that are written with one bit a cell.

use super::device::DeviceSpec;
use super::layout::PageMapped;
use crate::error::DriveError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_mapping::MapKind;
use softflash_nand::Cell;

/// A cache of blocks in SLC mode, which hold a third of their pages in TLC and are programmed in a
/// fraction of the time. The blocks belong to the cache alone (a static cache); they are no part of
/// the drive's capacity. Pages of the host are programmed there, and later move to other blocks
/// (folding). Its blocks are used in turn, and the oldest is folded first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlcCache {
    /// Bytes that it holds, rounded up to whole blocks of every write frontier, at least two of
    /// each.
    #[schemars(range(min = 1))]
    pub bytes: u64,
    /// When pages move out of it.
    #[serde(default)]
    pub folding: Folding,
    /// With `folding = "idle"`: the time without a request after which the drive folds.
    #[serde(default = "hundred_ms")]
    pub idle_ms: u32,
}

fn hundred_ms() -> u32 {
    100
}

/// When the pages of an SLC cache move to other blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Folding {
    /// While the host is idle. When the cache is full, writes go past it.
    #[default]
    Idle,
    /// All writes go through the cache. When it is full, the oldest block is folded while the host
    /// writes, so that both keep in step.
    InOrder,
}

impl SlcCache {
    /// The fewest blocks of a write frontier: one is written while another one is folded.
    pub(crate) const LEAST_BLOCKS: u32 = 2;

    /// Fails if a layout has parts, or a device has flash, that its cache cannot work with.
    pub(crate) fn check(device: &DeviceSpec, layout: &PageMapped) -> Result<(), DriveError> {
        let Some(cache) = layout.slc_cache else { return Ok(()) };
        let refused = |problem: &str, remedy: &str| {
            let (problem, remedy) = (problem.to_owned(), remedy.to_owned());
            Err(DriveError::SlcCache { problem, remedy })
        };
        if device.die.cell == Cell::Slc {
            return refused("the cells of the device hold one bit anyway", "leave it out");
        }
        if device.die.slc_mode.is_none() {
            return refused(
                "the device does not state the times of SLC mode",
                "give it die.slc_mode with read_ns and program_ns",
            );
        }
        if cache.bytes == 0 {
            return refused("it holds 0 bytes", "give it bytes, or leave it out");
        }
        if layout.parity_data_pages > 0 {
            return refused("parity spans whole blocks", "use parity_data_pages = 0");
        }
        if layout.copyback {
            return refused("folding crosses the channel", "use copyback = false");
        }
        if layout.map != MapKind::Page {
            return refused("a map on flash has blocks of its own", "use map = \"page\"");
        }
        if layout.classes() > 1 {
            return refused(
                "the cache mixes classes of pages",
                "use another placement than \"by-hint\", and lifetime = \"none\"",
            );
        }
        Ok(())
    }
}
