//! A volume gets the contents of its newest snapshot again.
//!
//! The snapshot holds exactly what the volume has replaced since, so these entries go back to the
//! volume, and nothing is copied. Where a snapshot between holds other data, a mapping unit would
//! have two holders: so this is possible for the newest snapshot only.

use super::{DomainMap, HOLE, INHERITED, UNSET, logical_of, zeros};
use crate::image::ImageId;
use softflash_base::planted::{self, Bug};

impl DomainMap {
    /// Gives what a snapshot holds back to its volume. Without effect unless the snapshot is the
    /// newest one of the volume.
    pub(super) fn roll_back(&mut self, volume: ImageId, snapshot: ImageId) {
        let Some(image) = self.images.get(volume).filter(|it| it.older == Some(snapshot)) else {
            return;
        };
        let zeros = zeros(image);
        let Some(image) = self.images.get_mut(snapshot) else { return };
        let leaves = std::mem::take(&mut image.leaves);
        for (position, leaf) in (0..).zip(leaves) {
            let Some(leaf) = leaf else { continue };
            self.take_entries(leaf, position, |map, lba, entry, checksum| match entry {
                HOLE if planted::bug(Bug::RolledBackZerosKept) => {}
                INHERITED => map.put(volume, lba, UNSET, 0),
                HOLE => map.put(volume, lba, zeros, 0),
                entry => map.put(volume, lba, entry, checksum),
            });
            self.free_if_unset(volume, position);
        }
    }

    /// Replaces the entry of a mapping unit that an image holds itself: by a slot that nothing
    /// holds, by a mark or by nothing.
    pub(super) fn put(&mut self, image: ImageId, lba: u32, entry: u32, checksum: u32) {
        let found = self.images.get(image).and_then(|image| logical_of(image, lba));
        let logical = match (found, entry) {
            (None, UNSET) => None,
            (None, _) => self.logical(image, lba),
            (found, _) => found,
        };
        let Some(logical) = logical else { return };
        self.detach(logical, UNSET);
        if entry != UNSET {
            self.attach(logical, entry, checksum);
        }
    }
}
