//! The smallest device that holds data, for the errors about smaller ones.

use super::device::{FEWEST_SUPERBLOCKS, LEAST_SUPERBLOCK_BYTES, superblock_bytes_of};
use super::{NewDevice, Plan, SUPERBLOCK_BYTES};
use crate::capacity;
use crate::manifest::Manifest;
use softflash_device::ModelConfig;
use softflash_device::geometry::UnitGeometry;

/// Superblocks of a unit up to which the size is searched.
const MOST_SEARCHED: u32 = 1 << 14;

impl Plan {
    /// The `--size` of the smallest device of this kind that holds data, of keys and of volumes;
    /// none if that is too large to be searched.
    pub(super) fn least_size(&self, manifest: &Manifest) -> Option<u64> {
        match &self.device {
            NewDevice::File { .. } => self.least_file(manifest),
            NewDevice::Model(config) => self.least_model(config, manifest),
        }
    }

    /// Larger files have larger superblocks, so the smallest is searched for each size of these.
    fn least_file(&self, manifest: &Manifest) -> Option<u64> {
        let powers = LEAST_SUPERBLOCK_BYTES.ilog2()..=SUPERBLOCK_BYTES.ilog2();
        powers.map(|power| 1 << power).find_map(|superblock_bytes| {
            let format = self.file_format(superblock_bytes, 0);
            let least = self.least_count(manifest, |count| format.geometry(count))?;
            let first_with_these = match superblock_bytes {
                LEAST_SUPERBLOCK_BYTES => 0,
                larger => larger * FEWEST_SUPERBLOCKS,
            };
            let size = format.bytes_for(least).max(first_with_these);
            (superblock_bytes_of(size) == superblock_bytes).then_some(size)
        })
    }

    fn least_model(&self, config: &ModelConfig, manifest: &Manifest) -> Option<u64> {
        let unit = config.unit_geometry().ok()?;
        let of = |blocks_per_plane| UnitGeometry { blocks_per_plane, ..unit };
        let least = self.least_count(manifest, of)?;
        Some(of(least).unit_bytes() * u64::from(self.units))
    }

    /// Superblocks of a unit of the smallest device that holds data.
    fn least_count(
        &self,
        manifest: &Manifest,
        geometry: impl Fn(u32) -> UnitGeometry,
    ) -> Option<u32> {
        (1..=MOST_SEARCHED)
            .find(|count| capacity::holds_data(manifest, self.units, &geometry(*count)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_device::file::Discard;
    use std::path::PathBuf;

    #[test]
    fn a_file_that_needs_many_superblocks_is_measured_with_the_larger_ones_that_it_gets() {
        let discard = Discard::None;
        let device = NewDevice::File { size_bytes: 1 << 30, discard, block_device: None };
        let plan = Plan { shards: Some(2), ..Plan::new(PathBuf::new(), device, 2, 1, 2) };
        let mut sizes = Vec::new();
        for slices in [4, 400, 1600, 5000] {
            let store = Plan { slices: Some(slices), ..plan.clone() }.store().unwrap();
            let manifest = Manifest::new("", store, None);
            let holds_data = |size: u64| {
                let format = plan.file_format(superblock_bytes_of(size), 0);
                let counts = (0..).take_while(|count| format.bytes_for(*count) <= size);
                let geometry = format.geometry(counts.last().unwrap());
                capacity::holds_data(&manifest, plan.units, &geometry)
            };
            let least = plan.least_size(&manifest).unwrap();
            assert!(holds_data(least) && !holds_data(least - 1), "{slices} slices: {least}");
            sizes.push(superblock_bytes_of(least) >> 20);
        }
        assert_eq!(sizes.first(), Some(&1));
        assert!(sizes.last() > Some(&1) && sizes.is_sorted(), "{sizes:?}");
    }
}
