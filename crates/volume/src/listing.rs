//! The list of volumes.

use crate::domain_map::DomainMap;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::{Image, ImageId, Role};
use crate::settings::VolumeSettings;
use softflash_base::cast;

/// A volume, as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeInfo {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Bytes that the volume and its snapshots hold.
    pub used_bytes: u64,
    /// Its settings.
    pub settings: VolumeSettings,
    /// Its snapshots, the oldest first.
    pub snapshots: Vec<String>,
    /// Of a clone, the volume and the snapshot that it was made of.
    pub parent: Option<(String, String)>,
}

/// Brings each clone behind the volume that it was made of, if that is there, and changes nothing
/// else in the order. What `info` says of each decides.
pub fn parents_first<T>(all: Vec<T>, info: impl Fn(&T) -> &VolumeInfo) -> Vec<T> {
    let mut left = all;
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |one: &T| {
            let parent = info(one).parent.as_ref().map(|(parent, _)| parent);
            parent.is_some_and(|parent| left.iter().any(|other| info(other).name == *parent))
        };
        let next = left.iter().position(|one| !waits(one)).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// The volumes of a domain, by name.
pub(crate) fn volumes(map: &DomainMap) -> Vec<VolumeInfo> {
    let bytes = |units: u64| units * cast::wide(MAPPING_UNIT_BYTES);
    let name_of = |id: ImageId| map.images.get(id).map(|image| image.name.clone());
    let info = |(id, image): (ImageId, &Image)| {
        let snapshots: Vec<_> = map.images.snapshots_of(id).collect();
        let parent = match image.role {
            Role::Volume { parent } => parent,
            Role::Snapshot { .. } => None,
        };
        let parent = parent.and_then(|parent| match map.images.get(parent)?.role {
            Role::Snapshot { of } => Some((name_of(of)?, name_of(parent)?)),
            Role::Volume { .. } => None,
        });
        VolumeInfo {
            name: image.name.clone(),
            size_bytes: bytes(image.size.into()),
            used_bytes: bytes(map.held(id).into()),
            settings: image.settings,
            snapshots: snapshots.iter().rev().map(|(_, image)| image.name.clone()).collect(),
            parent,
        }
    };
    let mut all: Vec<VolumeInfo> =
        map.images.iter().filter(|(_, image)| image.is_volume()).map(info).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
