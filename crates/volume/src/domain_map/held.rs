//! The slots that each volume holds with its snapshots.

use super::DomainMap;
use crate::image::{Image, ImageId, Role};
use std::collections::BTreeMap;

/// Slots held, by volume; without those that hold none.
#[derive(Debug, Default)]
pub(super) struct Held {
    slots: BTreeMap<ImageId, u32>,
}

impl Held {
    /// A change of a volume or of one of its snapshots has changed the slots in use of the domain.
    #[inline]
    pub fn changed(&mut self, volume: ImageId, before: u32, after: u32) {
        if before == after {
            return;
        }
        let held = self.slots.get(&volume).copied().unwrap_or(0);
        let held = held.wrapping_add(after).wrapping_sub(before);
        match held {
            0 => self.slots.remove(&volume),
            held => self.slots.insert(volume, held),
        };
    }
}

impl DomainMap {
    /// Slots that a volume holds with its snapshots.
    pub fn held(&self, volume: ImageId) -> u32 {
        self.held.slots.get(&volume).copied().unwrap_or(0)
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
        let slots = |image: &Image| -> u32 {
            let leaves = image.leaves.iter().flatten();
            leaves.map(|&leaf| u32::from(self.leaves.get(leaf).slots)).sum()
        };
        let mut held = Held::default();
        for (id, image) in self.images.iter() {
            held.changed(self.volume_of(id), 0, slots(image));
        }
        held
    }

    /// Compares the counts with the leaves.
    pub(super) fn check_held(&self) -> Result<(), String> {
        let (counted, found) = (&self.held.slots, self.held_in_leaves().slots);
        if *counted == found {
            return Ok(());
        }
        Err(format!("volumes are counted for slots {counted:?}, and hold {found:?}"))
    }
}
