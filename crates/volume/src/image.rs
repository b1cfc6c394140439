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
        Image { name, role, size, settings, older: None, newer: None, leaves: Vec::new() }
    }

    pub fn is_volume(&self) -> bool {
        matches!(self.role, Role::Volume { .. })
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
        match operation {
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
