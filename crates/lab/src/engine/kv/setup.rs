//! The store of a run: its layout, its options, its device and the device of its log.

use super::run::failed;
use crate::error::LabError;
use crate::layout::LayoutKind;
use softflash_base::SliceId;
use softflash_device::{Contents, Device, ModelConfig, ModelDevice, UnitGeometry};
use softflash_ftl::FtlConfig;
use softflash_nand::{ArrayConfig, BusTiming, DieTiming, Geometry, presets};
use softflash_runtime::RuntimeHandle;
use softflash_store::opening::open_all_with_log;
use softflash_store::{Store, StoreLayout, StoreOptions, open_all};
use softflash_workload::{KvWorkload, Operation};
use std::sync::Arc;

/// Memory of each shard. A memtable gets 9/32 of it, 7.37 MB: with the value of 1 MB that fills it,
/// the contents of a patch. A slice of the SDF paper gathered 8 MB before it wrote a patch. The
/// read cache gets at most a half, too little to matter beside gigabytes of data.
const SHARD_MEMORY_BYTES: u64 = 25 << 20;
/// Superblocks of each unit of the log's device, more than the log of a shard uses.
const LOG_SUPERBLOCKS: u32 = 96;
/// The constant wall clock of all runs; no key expires.
const WALL_MS: u64 = 1_000_000_000_000;

/// The layout of a store for a workload.
///
/// Reads and scans are served by one shard over all units, as the slices of the SDF paper shared
/// all channels. Each shard runs one flush and one compaction at a time, as each slice of the paper
/// did. So a store with writes has one shard for each slice, up to the number of units, and each
/// shard owns a part of the units.
pub fn store_layout(workload: &KvWorkload, units: u16) -> StoreLayout {
    let slices = u16::try_from(workload.slices).unwrap_or(u16::MAX);
    let writes = match workload.operation {
        Operation::Write => true,
        Operation::Mixed { read_fraction } => read_fraction < 1.0,
        Operation::Read | Operation::Scan { .. } => false,
    };
    let shards = if writes { slices.min(units) } else { 1 };
    StoreLayout::new(shards, slices, units)
}

/// The store's settings for a workload on a layout: the layout selects placement and scheduling on
/// units of flash. On a conventional drive the firmware decides both, so the store keeps its
/// defaults.
pub fn store_options(workload: &KvWorkload, layout: &LayoutKind, shards: u16) -> StoreOptions {
    let memory_bytes = SHARD_MEMORY_BYTES * u64::from(shards);
    let value_threshold = workload.value_threshold.map(|least| least as usize);
    let options = StoreOptions { memory_bytes, value_threshold, ..StoreOptions::default() };
    match layout {
        LayoutKind::PageMapped(_) => options,
        LayoutKind::Units(units) => StoreOptions {
            placement: units.scheduler,
            ftl: FtlConfig { order: units.order, ..FtlConfig::default() },
            ..options
        },
    }
}

/// The wall clock of all runs.
pub fn wall_ms() -> u64 {
    WALL_MS
}

/// Opens the store on a new device. With `log_apart`, the log has a separate device.
///
/// # Errors
/// [`LabError::Parameter`] if the layout does not fit the device.
pub async fn open(
    device: Arc<dyn Device>,
    layout: &StoreLayout,
    options: &StoreOptions,
    log_apart: bool,
    runtime: &RuntimeHandle,
) -> Result<Vec<Store>, LabError> {
    if let Some(problem) = layout.problem() {
        return Err(LabError::Parameter(problem));
    }
    let opened = if log_apart {
        let log = log_device(&device.info().geometry, layout.shards)?;
        open_all_with_log(device, log, layout, options, runtime).await
    } else {
        open_all(device, layout, options, runtime).await
    };
    opened.map_err(failed)
}

/// A very fast device for logs: every operation takes a microsecond, a channel transfers 16 GB/s.
/// The SDF paper does not name the device of its log, only that it was not the SDF.
fn log_device(like: &UnitGeometry, units: u16) -> Result<Arc<dyn Device>, LabError> {
    let sdf = presets::sdf();
    let array = ArrayConfig {
        geometry: Geometry {
            channels: units,
            chips_per_channel: like.dies,
            dies_per_chip: 1,
            planes_per_die: like.planes,
            blocks_per_plane: LOG_SUPERBLOCKS,
            pages_per_block: like.pages_per_block,
            page_bytes: like.page_bytes,
            spare_bytes: 0,
        },
        die: DieTiming { read_ns: vec![1000], program_ns: vec![1000], erase_ns: 1000, ..sdf.die },
        bus: BusTiming { bytes_per_second: 16_000_000_000, ..sdf.bus },
    };
    let device = ModelDevice::in_memory_keeping(ModelConfig::new(array), Contents::Packed)
        .map_err(|error| LabError::Parameter(format!("the log's device: {error}")))?;
    Ok(Arc::new(device))
}

/// The prefix of a slice's keys: a hash tag that the layout maps to the slice.
pub fn key_prefix(layout: &StoreLayout, slice: u16) -> Vec<u8> {
    (0_u32..)
        .map(|number| format!("{{{number}}}").into_bytes())
        .find(|tag| layout.slice_of(tag) == SliceId(slice))
        .unwrap_or_default()
}
