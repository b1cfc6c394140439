//! The places that each volume holds with its snapshots.

use super::DomainMap;
use crate::image::{Image, ImageId, Role};
use std::collections::BTreeMap;

/// Places held, by volume; without those that hold none.
#[derive(Debug, Default)]
pub(super) struct Held {
    places: BTreeMap<ImageId, u32>,
}

impl Held {
    /// A change of a volume or of one of its snapshots has changed the places in use of the domain.
    #[inline]
    pub fn changed(&mut self, volume: ImageId, before: u32, after: u32) {
        if before == after {
            return;
        }
        let held = self.places.get(&volume).copied().unwrap_or(0);
        let held = held.wrapping_add(after).wrapping_sub(before);
        match held {
            0 => self.places.remove(&volume),
            held => self.places.insert(volume, held),
        };
    }
}

impl DomainMap {
    /// Places that a volume holds with its snapshots.
    pub fn held(&self, volume: ImageId) -> u32 {
        self.held.places.get(&volume).copied().unwrap_or(0)
    }

    /// The volume itself, or that of a snapshot.
    pub fn volume_of(&self, image: ImageId) -> ImageId {
        match self.images.get(image).map(|image| image.role) {
            Some(Role::Snapshot { of }) => of,
            _ => image,
        }
    }

    /// Computes the counts from the leaves, after a recovery.
    pub(super) fn count_held(&mut self) {
        self.held = self.held_in_leaves();
    }

    fn held_in_leaves(&self) -> Held {
        let places = |image: &Image| -> u32 {
            let leaves = image.leaves.iter().flatten();
            leaves.map(|&leaf| u32::from(self.leaves.get(leaf).places)).sum()
        };
        let mut held = Held::default();
        for (id, image) in self.images.iter() {
            held.changed(self.volume_of(id), 0, places(image));
        }
        held
    }

    /// Compares the counts with the leaves.
    pub(super) fn check_held(&self) -> Result<(), String> {
        let (counted, found) = (&self.held.places, self.held_in_leaves().places);
        if *counted == found {
            return Ok(());
        }
        Err(format!("volumes are counted for places {counted:?}, and hold {found:?}"))
    }
}
