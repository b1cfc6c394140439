//! The data that fit a data directory.

use crate::manifest::Manifest;
use softflash_base::{ShardId, cast};
use softflash_device::{DeviceInfo, UnitGeometry};
use softflash_store::StoreOptions;
use softflash_store::capacity::{Capacity, FlashSize};
use softflash_volume::room_bytes;

/// Of the store of a data directory.
pub fn of(manifest: &Manifest, device: &DeviceInfo) -> Capacity {
    of_units(manifest, device.units, &device.geometry)
}

/// Of the store of a data directory on a device of these units.
pub fn of_units(manifest: &Manifest, units: u16, geometry: &UnitGeometry) -> Capacity {
    Capacity::of(&manifest.layout(units), &StoreOptions::default(), flash_size(geometry))
}

/// The room for volumes in each domain, in bytes; empty without sets for volumes.
pub fn volume_rooms(manifest: &Manifest, units: u16, geometry: &UnitGeometry) -> Vec<u64> {
    let domains = manifest.domains(units).into_iter();
    domains
        .map(|it| room_bytes(cast::saturating_u16(it.units.len()), geometry, &it.config))
        .collect()
}

/// Whether a directory with units of this geometry holds keys, and volumes in each of its domains.
pub(crate) fn holds_data(manifest: &Manifest, units: u16, geometry: &UnitGeometry) -> bool {
    of_units(manifest, units, geometry).usable_bytes > 0
        && volume_rooms(manifest, units, geometry).iter().all(|room| *room > 0)
}

/// The bytes of data, redundancy and metadata that each shard of the store has room for.
pub(crate) fn data_bytes_of_shards(
    manifest: &Manifest,
    units: u16,
    geometry: &UnitGeometry,
) -> Vec<u64> {
    let (layout, flash) = (manifest.layout(units), flash_size(geometry));
    let room = |shard| {
        let all = Capacity::of_shard(&layout, &StoreOptions::default(), flash, ShardId(shard));
        all.total_bytes() - all.kept_bytes
    };
    (0..layout.shards).map(room).collect()
}

fn flash_size(geometry: &UnitGeometry) -> FlashSize {
    FlashSize {
        superblocks_of_unit: geometry.blocks_per_plane,
        payload_bytes: softflash_ftl::payload_bytes(geometry),
    }
}

/// The size of a device in bytes.
pub fn device_bytes(device: &DeviceInfo) -> u64 {
    device.geometry.unit_bytes() * u64::from(device.units)
}
