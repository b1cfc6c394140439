//! The data that fit a data directory, for people and for scripts.

use crate::counted::counted;
use crate::formatting::human_bytes;
use serde_json::{Value, json};
use softflash_base::cast;
use softflash_device::DeviceInfo;
use softflash_device::geometry::UnitGeometry;
use softflash_server::data_dir::Manifest;
use softflash_store::StoreOptions;
use softflash_store::capacity::{Capacity, FlashSize};
use softflash_volume::room_bytes;

/// Of the store of a data directory.
pub fn of(manifest: &Manifest, device: &DeviceInfo) -> Capacity {
    of_units(manifest, device.units, &device.geometry)
}

/// Of the store of a data directory on a device of these units.
pub fn of_units(manifest: &Manifest, units: u16, geometry: &UnitGeometry) -> Capacity {
    let flash = FlashSize {
        superblocks_of_unit: geometry.blocks_per_plane,
        payload_bytes: softflash_ftl::payload_bytes(geometry),
    };
    Capacity::of(&manifest.layout(units), &StoreOptions::default(), flash)
}

/// The room for volumes in each domain; empty without volume units.
pub fn volume_rooms(manifest: &Manifest, units: u16, geometry: &UnitGeometry) -> Vec<u64> {
    let domains = manifest.domains(units).into_iter();
    domains
        .map(|it| room_bytes(cast::saturating_u16(it.units.len()), geometry, &it.config))
        .collect()
}

/// The room for volumes, for people; none without volume units.
pub fn volume_sentence(rooms: &[u64]) -> Option<String> {
    let each = human_bytes(*rooms.iter().min()?);
    Some(match rooms.len() {
        1 => format!("about {each}"),
        shards => {
            format!("{shards} x about {each}, one for each shard; a volume is in one of them")
        }
    })
}

/// The size of a device in bytes.
pub fn device_bytes(device: &DeviceInfo) -> u64 {
    device.geometry.unit_bytes() * u64::from(device.units)
}

/// A sentence for people: the data that fit, and what takes the rest.
pub fn sentence(capacity: &Capacity) -> String {
    let Capacity { usable_bytes, kept_bytes, partly_filled_bytes, .. } = *capacity;
    let mut parts = vec![
        format!("{} stay free for flushes, the log and merges", human_bytes(kept_bytes)),
        format!("{} are partly filled superblocks", human_bytes(partly_filled_bytes)),
        format!("{} are metadata", human_bytes(capacity.metadata_bytes)),
    ];
    if capacity.redundancy_bytes > 0 {
        parts.push(format!("{} are redundancy", human_bytes(capacity.redundancy_bytes)));
    }
    format!(
        "usable about {} of {}, in keys and values of 1 KiB, because {}",
        human_bytes(usable_bytes),
        human_bytes(capacity.total_bytes()),
        parts.join(", "),
    )
}

/// The same by lines.
pub fn lines(capacity: &Capacity) -> Vec<(&'static str, String)> {
    let Capacity { usable_bytes, kept_bytes, partly_filled_bytes, .. } = *capacity;
    let mut lines = vec![
        ("usable", format!("about {} in keys and values of 1 KiB", human_bytes(usable_bytes))),
        ("kept free", format!("{} for flushes, the log and merges", human_bytes(kept_bytes))),
        ("partly filled", human_bytes(partly_filled_bytes)),
        ("metadata", human_bytes(capacity.metadata_bytes)),
    ];
    if capacity.redundancy_bytes > 0 {
        lines.push(("redundancy", human_bytes(capacity.redundancy_bytes)));
    }
    lines
}

/// Fields for scripts.
pub fn fields(capacity: &Capacity, device: &DeviceInfo) -> Value {
    json!({
        "size_bytes": device_bytes(device),
        "usable_bytes": capacity.usable_bytes,
        "kept_bytes": capacity.kept_bytes,
        "partly_filled_bytes": capacity.partly_filled_bytes,
        "redundancy_bytes": capacity.redundancy_bytes,
        "metadata_bytes": capacity.metadata_bytes,
    })
}

/// The reason why a device that no data fit is refused, with the size of the smallest one like it
/// that holds some, if that is known.
pub fn too_small(manifest: &Manifest, device_bytes: u64, least_bytes: Option<u64>) -> String {
    let remedy = match least_bytes {
        Some(bytes) => format!("use a size of at least {bytes} bytes, or fewer shards or slices"),
        None => "use a larger device, or fewer shards or slices".to_owned(),
    };
    let store = &manifest.store;
    format!(
        "a device of {} holds no data with {} and {}: all superblocks are kept free for flushes, the log and merges; \
         {remedy}",
        human_bytes(device_bytes),
        counted(store.shards.into(), "shard"),
        counted(store.slices.into(), "slice"),
    )
}
