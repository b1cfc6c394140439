//! What a volume is: its name, its contents as a whole, and its place among its relatives. None of
//! these changes copies data.

use crate::domain::Domain;
use crate::error::VolumeError;
use crate::format::operation::Operation;
use crate::image::{ImageId, Images, Role};
use crate::operations::{Change, check_name};

impl Domain {
    /// Gives a volume another name. Handles of it stay valid.
    ///
    /// # Errors
    /// [`VolumeError::Exists`] where a volume of the domain has that name.
    pub async fn rename(&self, name: &str, new: &str) -> Result<(), VolumeError> {
        check_name(new)?;
        self.change(|images| {
            let image = images.volume(name)?;
            if images.volume(new).is_ok() {
                return Err(VolumeError::Exists { name: new.to_owned() });
            }
            Ok((Change::Operation(Operation::Rename { image, name: new.to_owned() }), ()))
        })
        .await?;
        self.flush().await
    }

    /// Gives a volume the contents and the size of its newest snapshot: what was written since is
    /// lost. The snapshot stays.
    ///
    /// # Errors
    /// [`VolumeError::NotNewest`] where the volume has a newer snapshot.
    pub async fn roll_back(&self, volume: &str, snapshot: &str) -> Result<(), VolumeError> {
        self.change(|images| {
            let (image, found) = (images.volume(volume)?, images.snapshot(volume, snapshot)?);
            match images.snapshots_of(image).next() {
                Some((newest, _)) if newest == found => {
                    let operation = Operation::RollBack { image, snapshot: found };
                    Ok((Change::Operation(operation), ()))
                }
                newest => Err(VolumeError::NotNewest {
                    name: format!("{volume}@{snapshot}"),
                    newest: newest.map(|(_, newest)| newest.name.clone()).unwrap_or_default(),
                }),
            }
        })
        .await?;
        self.flush().await
    }

    /// Lets a clone own the snapshot that it was made from, and the older ones; the volume that
    /// owned them becomes a clone of that snapshot. All contents stay.
    ///
    /// # Errors
    /// [`VolumeError::NotClone`]; [`VolumeError::Exists`] where the clone has a snapshot of the
    /// same name; [`VolumeError::OutOfSpace`] where the map would leave too little for the data.
    pub async fn promote(&self, clone: &str) -> Result<(), VolumeError> {
        self.change(|images| {
            let image = images.volume(clone)?;
            let snapshot = images.get(image).and_then(|image| image.parent());
            let not_clone = || VolumeError::NotClone { name: clone.to_owned() };
            let snapshot = snapshot.ok_or_else(not_clone)?;
            if let Some(name) = name_of_two(images, image, snapshot) {
                return Err(VolumeError::Exists { name: format!("{clone}@{name}") });
            }
            self.check_room(image, snapshot)?;
            Ok((Change::Operation(Operation::Promote { clone: image, snapshot }), ()))
        })
        .await?;
        self.flush().await
    }

    /// The snapshots that a promotion would give to a clone, as volume and snapshot, the oldest
    /// first; none if the volume is no clone.
    pub fn to_promote(&self, clone: &str) -> Vec<(String, String)> {
        let map = self.core.map.borrow();
        let images = &map.images;
        let parent = images.volume(clone).ok().and_then(|id| images.get(id)?.parent());
        let of = parent.and_then(|parent| match images.get(parent)?.role {
            Role::Snapshot { of } => Some(images.get(of)?.name.clone()),
            Role::Volume { .. } => None,
        });
        let (Some(parent), Some(of)) = (parent, of) else { return Vec::new() };
        let names = from_snapshot(images, parent).map(|name| (of.clone(), name.to_owned()));
        let mut names: Vec<(String, String)> = names.collect();
        names.reverse();
        names
    }

    /// What was shared in one leaf may have two afterwards, and the map takes space from the data.
    fn check_room(&self, clone: ImageId, snapshot: ImageId) -> Result<(), VolumeError> {
        let core = &self.core;
        let (used, more) = {
            let map = core.map.borrow();
            (map.used(), map.promotion_adds(clone, snapshot))
        };
        match more > 0 && core.usable_with(more) < used {
            true => Err(core.out_of_space(used)),
            false => Ok(()),
        }
    }
}

/// The names of a snapshot and of the older ones of its volume.
fn from_snapshot(images: &Images, snapshot: ImageId) -> impl Iterator<Item = &str> {
    let first = images.get(snapshot);
    let all = std::iter::successors(first, |image| images.get(image.older?));
    all.map(|image| image.name.as_str())
}

/// A name that a snapshot of a clone has, and one that it would get with the snapshot.
fn name_of_two(images: &Images, clone: ImageId, snapshot: ImageId) -> Option<&str> {
    let has = |name: &&str| images.snapshots_of(clone).any(|(_, own)| own.name == *name);
    from_snapshot(images, snapshot).find(has)
}
