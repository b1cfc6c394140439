//! The store of a run: how it is cut, what it stands on, and where its log is.

use super::run::failed;
use crate::error::LabError;
use crate::layout::{LayoutKind, Order, Scheduler};
use softflash_base::SliceId;
use softflash_device::{Contents, Device, ModelConfig, ModelDevice, UnitGeometry};
use softflash_ftl::FtlConfig;
use softflash_nand::{ArrayConfig, BusTiming, DieTiming, Geometry, presets};
use softflash_runtime::RuntimeHandle;
use softflash_store::{
    PlacementKind, Store, StoreLayout, StoreOptions, open_all, open_all_with_log,
};
use softflash_workload::{KvWorkload, Operation};
use std::sync::Arc;

/// Memory of each shard. A memtable gets 9/32 of it, 7.37 MB: with a value of 1 MB that makes it
/// full, what a patch holds. A slice of the SDF paper gathered 8 MB before it wrote a patch. The
/// read cache gets a quarter, too little to matter beside gigabytes of data.
const SHARD_MEMORY_BYTES: u64 = 25 << 20;
/// Superblocks of each unit of the log's device: more than a shard's log ever keeps.
const LOG_SUPERBLOCKS: u32 = 96;
/// Where the wall clock stands; nothing expires.
const WALL_MS: u64 = 1_000_000_000_000;

/// How a store is cut for a workload.
///
/// Reads and scans are served by one shard over all units, as the slices of the SDF paper shared
/// all channels. Every shard flushes and compacts by itself, one of each at a time, and so did
/// every slice of the paper; so a store that is written to has a shard for each slice, as long as
/// there are units, and each shard owns its part of them.
pub fn store_layout(workload: &KvWorkload, units: u16) -> StoreLayout {
    let slices = u16::try_from(workload.slices).unwrap_or(u16::MAX);
    let writes = match workload.operation {
        Operation::Write => true,
        Operation::Mixed { read_fraction } => read_fraction < 1.0,
        Operation::Read | Operation::Scan { .. } => false,
    };
    let shards = if writes { slices.min(units) } else { 1 };
    StoreLayout { shards, slices, units, compression: Vec::new(), copies: 1, parity: 0 }
}

/// The store's settings for a workload on a layout: units are used as the layout says. What
/// firmware does with its flash no store can choose, so on a conventional drive it runs as always.
pub fn store_options(workload: &KvWorkload, layout: &LayoutKind, shards: u16) -> StoreOptions {
    let memory_bytes = SHARD_MEMORY_BYTES * u64::from(shards);
    let value_threshold = workload.value_threshold.map(|least| least as usize);
    let options = StoreOptions { memory_bytes, value_threshold, ..StoreOptions::default() };
    match layout {
        LayoutKind::PageMapped(_) => options,
        LayoutKind::Units(units) => StoreOptions {
            placement: match units.scheduler {
                Scheduler::RoundRobin => PlacementKind::RoundRobin,
                Scheduler::LoadAware => PlacementKind::LeastLoaded,
            },
            ftl: FtlConfig {
                reads_first: units.order == Order::ReadsFirst,
                ..FtlConfig::default()
            },
            ..options
        },
    }
}

/// The wall clock of all runs.
pub fn wall_ms() -> u64 {
    WALL_MS
}

/// Opens the store on a new device, with the log on a device of its own if `log_apart`.
///
/// # Errors
/// [`LabError::Parameter`] where the layout does not fit the device.
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

/// A device for logs that takes next to no time: every operation takes a microsecond, a channel
/// moves 16 GB/s. The SDF paper does not say on which device its log was, only that it was not the
/// SDF.
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

/// The prefix of a slice's keys: a hash tag that the layout sends to the slice.
pub fn key_prefix(layout: &StoreLayout, slice: u16) -> Vec<u8> {
    (0_u32..)
        .map(|number| format!("{{{number}}}").into_bytes())
        .find(|tag| layout.slice_of(tag) == SliceId(slice))
        .unwrap_or_default()
}
