//! Images: volumes and their snapshots, and the links between them.
//!
//! A snapshot holds only the mapping units that its volume has replaced since. A mapping unit that
//! a snapshot does not hold is found in the next newer snapshot of the volume, or in the volume. A
//! clone is a volume with a parent, a snapshot, in which it finds what it has not written.

use crate::error::VolumeError;
use crate::format::entry::LAST_IMAGE;
use crate::format::operation::Operation;
use crate::settings::VolumeSettings;
use std::collections::BTreeMap;
use std::fmt;

/// The number of an image in its domain, which is never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageId(pub u32);

impl fmt::Display for ImageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "image {}", self.0)
    }
}

/// The role of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A volume, perhaps a clone of a snapshot.
    Volume { parent: Option<ImageId> },
    /// A snapshot of a volume.
    Snapshot { of: ImageId },
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub name: String,
    pub role: Role,
    /// Mapping units.
    pub size: u32,
    /// Of a volume; a snapshot has the default ones, which have no effect.
    pub settings: VolumeSettings,
    /// Of a volume that was promoted: the volumes as whose data some of its data were written.
    /// Their checksums are bound to one of those, and not to this volume.
    pub other_seeds: Vec<ImageId>,
    /// The next older snapshot: of a volume its newest one.
    pub older: Option<ImageId>,
    /// The next newer snapshot of a snapshot; `None` for the newest, and for a volume.
    pub newer: Option<ImageId>,
    /// The leaf of each group of mapping units; `None` while nothing in it is mapped.
    pub leaves: Vec<Option<u32>>,
}

impl Image {
    fn new(name: String, role: Role, size: u32) -> Image {
        let settings = VolumeSettings::default();
        let (older, newer, leaves) = (None, None, Vec::new());
        Image { name, role, size, settings, other_seeds: Vec::new(), older, newer, leaves }
    }

    pub fn is_volume(&self) -> bool {
        matches!(self.role, Role::Volume { .. })
    }

    /// The snapshot that a clone was made from.
    pub fn parent(&self) -> Option<ImageId> {
        match self.role {
            Role::Volume { parent } => parent,
            Role::Snapshot { .. } => None,
        }
    }
}

/// All images of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Images {
    images: BTreeMap<ImageId, Image>,
    /// The greatest number ever used.
    last: u32,
}

impl Images {
    /// Images read from a root.
    pub fn of(images: BTreeMap<ImageId, Image>, last: u32) -> Images {
        Images { images, last }
    }

    pub fn get(&self, id: ImageId) -> Option<&Image> {
        self.images.get(&id)
    }

    pub fn get_mut(&mut self, id: ImageId) -> Option<&mut Image> {
        self.images.get_mut(&id)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ImageId, &Image)> {
        self.images.iter().map(|(&id, image)| (id, image))
    }

    /// The greatest number ever used.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// The volume of this name.
    pub fn volume(&self, name: &str) -> Result<ImageId, VolumeError> {
        let found = self.iter().find(|(_, image)| image.is_volume() && image.name == name);
        let (id, _) = found.ok_or_else(|| VolumeError::NoVolume { name: name.to_owned() })?;
        Ok(id)
    }

    /// The snapshots of a volume, the newest first.
    pub fn snapshots_of(&self, volume: ImageId) -> impl Iterator<Item = (ImageId, &Image)> {
        let newest = self.get(volume).and_then(|image| image.older);
        let with = |id: Option<ImageId>| id.and_then(|id| Some((id, self.get(id)?)));
        std::iter::successors(with(newest), move |(_, image)| with(image.older))
    }

    /// The snapshot of this name of a volume.
    pub fn snapshot(&self, volume: &str, name: &str) -> Result<ImageId, VolumeError> {
        let of = self.volume(volume)?;
        let found = self.snapshots_of(of).find(|(_, image)| image.name == name);
        let (id, _) = found.ok_or_else(|| VolumeError::NoSnapshot {
            volume: volume.to_owned(),
            name: name.to_owned(),
        })?;
        Ok(id)
    }

    /// The clones of a snapshot.
    pub fn clones_of(&self, snapshot: ImageId) -> impl Iterator<Item = (ImageId, &Image)> {
        let parent = Role::Volume { parent: Some(snapshot) };
        self.iter().filter(move |(_, image)| image.role == parent)
    }

    /// The number of the next image.
    pub fn next_id(&self) -> Result<ImageId, VolumeError> {
        if self.last >= LAST_IMAGE {
            return Err(VolumeError::TooManyImages { most: LAST_IMAGE });
        }
        Ok(ImageId(self.last + 1))
    }

    /// Applies an operation to names, sizes and links. The maps of images that it deletes or cuts
    /// are the caller's, before. An operation that does not fit the images has no effect: its frame
    /// was written twice, because the first program was reported as failed.
    pub fn apply(&mut self, operation: &Operation) {
        if operation.creates().is_some_and(|image| self.images.contains_key(&image)) {
            return;
        }
        match operation.inner() {
            Operation::Create { image, name, size, settings } => {
                let mut volume = Image::new(name.clone(), Role::Volume { parent: None }, *size);
                volume.settings = *settings;
                self.add(*image, volume);
            }
            Operation::Resize { image, size } => {
                if let Some(image) = self.get_mut(*image) {
                    image.size = *size;
                }
            }
            Operation::Snapshot { of, image, name } => self.add_snapshot(*of, *image, name),
            Operation::Clone { of, image, name } => {
                if let Some(size) = self.get(*of).map(|snapshot| snapshot.size) {
                    let role = Role::Volume { parent: Some(*of) };
                    self.add(*image, Image::new(name.clone(), role, size));
                }
            }
            Operation::Delete { image } => self.remove(*image),
            Operation::Set { image, settings } => {
                if let Some(volume) = self.get_mut(*image) {
                    volume.settings = *settings;
                }
            }
            Operation::Rename { image, name } => {
                if let Some(volume) = self.get_mut(*image) {
                    volume.name.clone_from(name);
                }
            }
            Operation::RollBack { image, snapshot } => {
                let size = self.get(*snapshot).map(|snapshot| snapshot.size);
                let volume = self.get_mut(*image).filter(|it| it.older == Some(*snapshot));
                if let (Some(volume), Some(size)) = (volume, size) {
                    volume.size = size;
                }
            }
            Operation::Promote { clone, snapshot } => self.promote(*clone, *snapshot),
            Operation::Pair(_) | Operation::OfPair { .. } => {}
        }
    }

    /// The former parent of a clone that is about to be promoted with this snapshot; `None` if the
    /// snapshot is not the one that the clone was made from.
    pub fn parent_to_replace(&self, clone: ImageId, snapshot: ImageId) -> Option<ImageId> {
        let is_parent = self.get(clone)?.parent() == Some(snapshot);
        match self.get(snapshot)?.role {
            Role::Snapshot { of } if is_parent => Some(of),
            _ => None,
        }
    }

    /// The snapshots of a clone go on with that which it was made from, and the former parent is a
    /// clone of that.
    fn promote(&mut self, clone: ImageId, snapshot: ImageId) {
        let Some(former) = self.parent_to_replace(clone, snapshot) else { return };
        let behind = self.get(snapshot).and_then(|snapshot| snapshot.newer);
        // What stays with the former parent ends before the snapshot.
        if let Some(first) = self.get_mut(behind.unwrap_or(former)) {
            first.older = None;
        }
        let mut moved = Some(snapshot);
        while let Some(image) = moved.and_then(|moved| self.get_mut(moved)) {
            let before = std::mem::replace(&mut image.role, Role::Snapshot { of: clone });
            assert_eq!(before, Role::Snapshot { of: former }, "a snapshot changes hands");
            moved = image.older;
        }
        let oldest = self.snapshots_of(clone).last().map(|(id, _)| id);
        if let Some(image) = self.get_mut(snapshot) {
            image.newer = oldest;
        }
        if let Some(image) = self.get_mut(oldest.unwrap_or(clone)) {
            image.older = Some(snapshot);
        }
        let mut seeds = vec![former];
        let mut parent = None;
        if let Some(image) = self.get_mut(former) {
            seeds.extend(&image.other_seeds);
            parent = image.parent();
            image.role = Role::Volume { parent: Some(snapshot) };
        }
        if let Some(image) = self.get_mut(clone) {
            image.role = Role::Volume { parent };
            seeds.retain(|seed| *seed != clone && !image.other_seeds.contains(seed));
            image.other_seeds.extend(seeds);
        }
    }

    fn add(&mut self, id: ImageId, image: Image) {
        self.last = self.last.max(id.0);
        self.images.insert(id, image);
    }

    fn add_snapshot(&mut self, of: ImageId, id: ImageId, name: &str) {
        let Some(volume) = self.get_mut(of) else { return };
        let mut snapshot = Image::new(name.to_owned(), Role::Snapshot { of }, volume.size);
        snapshot.older = volume.older.replace(id);
        if let Some(older) = snapshot.older.and_then(|older| self.get_mut(older)) {
            older.newer = Some(id);
        }
        self.add(id, snapshot);
    }

    fn remove(&mut self, id: ImageId) {
        let Some(removed) = self.images.remove(&id) else { return };
        let Role::Snapshot { of } = removed.role else { return };
        if let Some(older) = removed.older.and_then(|older| self.get_mut(older)) {
            older.newer = removed.newer;
        }
        if let Some(newer) = self.get_mut(removed.newer.unwrap_or(of)) {
            newer.older = removed.older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume_with_snapshots() -> Images {
        let mut images = Images::default();
        let (image, settings) = (ImageId(1), VolumeSettings::default());
        images.apply(&Operation::Create { image, name: "v".into(), size: 100, settings });
        for (id, name) in [(2, "old"), (3, "middle"), (4, "new")] {
            let (of, image) = (ImageId(1), ImageId(id));
            images.apply(&Operation::Snapshot { of, image, name: name.into() });
        }
        images
    }

    fn names(images: &Images) -> Vec<&str> {
        images.snapshots_of(ImageId(1)).map(|(_, image)| image.name.as_str()).collect()
    }

    #[test]
    fn snapshots_are_linked_from_the_newest_to_the_oldest_and_back() {
        let images = volume_with_snapshots();
        assert_eq!(names(&images), ["new", "middle", "old"]);
        assert_eq!(images.get(ImageId(2)).unwrap().newer, Some(ImageId(3)));
        assert_eq!(images.get(ImageId(4)).unwrap().newer, None);
        assert_eq!(images.snapshot("v", "middle").unwrap(), ImageId(3));
        assert!(images.snapshot("v", "none").is_err() && images.volume("w").is_err());
    }

    #[test]
    fn a_promoted_clone_has_the_snapshots_up_to_its_own_and_its_parent_the_others() {
        for own_snapshots in [0_u32, 1, 2] {
            let mut images = volume_with_snapshots();
            let (parent, clone, middle) = (ImageId(1), ImageId(5), ImageId(3));
            images.apply(&Operation::Clone { of: middle, image: clone, name: "c".into() });
            for number in 0..own_snapshots {
                let (image, name) = (ImageId(6 + number), format!("own{number}"));
                images.apply(&Operation::Snapshot { of: clone, image, name });
            }
            let promote = Operation::Promote { clone, snapshot: middle };
            images.apply(&promote);
            let once = images.clone();
            images.apply(&promote);
            assert_eq!(images, once, "the second frame of a promotion changes nothing");
            let own = (6..6 + own_snapshots).rev();
            assert_eq!(of_all(&images, clone), own.chain([3, 2]).collect::<Vec<u32>>());
            assert_eq!(of_all(&images, parent), [4]);
            assert_eq!(images.get(ImageId(4)).unwrap().older, None);
            let newer = (own_snapshots > 0).then_some(ImageId(6));
            assert_eq!(images.get(middle).unwrap().newer, newer);
            assert_eq!(images.get(clone).unwrap().parent(), None);
            assert_eq!(images.get(parent).unwrap().parent(), Some(middle));
            assert_eq!(images.get(clone).unwrap().other_seeds, [parent]);
            // The parent takes them back, with those that the clone has taken itself left to it.
            images.apply(&Operation::Promote { clone: parent, snapshot: middle });
            assert_eq!(of_all(&images, parent), [4, 3, 2]);
            assert_eq!(images.get(clone).unwrap().parent(), Some(middle));
        }
    }

    fn of_all(images: &Images, id: ImageId) -> Vec<u32> {
        images.snapshots_of(id).map(|(id, _)| id.0).collect()
    }

    #[test]
    fn links_close_over_a_deleted_snapshot() {
        for deleted in [2, 3, 4] {
            let mut images = volume_with_snapshots();
            images.apply(&Operation::Delete { image: ImageId(deleted) });
            let left: Vec<ImageId> = images.snapshots_of(ImageId(1)).map(|(id, _)| id).collect();
            let expected: Vec<ImageId> =
                [4, 3, 2].into_iter().filter(|&id| id != deleted).map(ImageId).collect();
            assert_eq!(left, expected);
            assert_eq!(images.get(left[0]).unwrap().newer, None);
            assert_eq!(images.get(left[1]).unwrap().newer, Some(left[0]));
            assert_eq!(images.next_id().unwrap(), ImageId(5));
        }
    }
}
