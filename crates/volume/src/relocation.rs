//! Volumes that move from one domain to another: what the handles of both do for it.

use crate::domain::Domain;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use softflash_base::cast;
use std::ops::Range;
use std::rc::Rc;

impl Domain {
    /// Names the volumes that the domain holds and that are not its own: they are being copied to
    /// it, or were copied from it. Nobody finds them but [those who see all](Domain::with_guests).
    pub fn set_guests<'a>(&self, names: impl IntoIterator<Item = &'a String>) {
        self.core.residence().set_guests(names.into_iter().cloned().collect());
    }

    /// The same domain, of which the handle finds all volumes, its own or not.
    pub fn with_guests(&self) -> Domain {
        Domain { core: Rc::clone(&self.core), sees_guests: true }
    }

    /// Deletes a volume and all of its snapshots, which have no clones.
    ///
    /// # Errors
    /// [`VolumeError::NoVolume`], [`VolumeError::HasClones`] and those of the flash; the snapshots
    /// that are newer than the one named are gone then.
    pub async fn delete_with_snapshots(&self, name: &str) -> Result<(), VolumeError> {
        let found = self.list().into_iter().find(|volume| volume.name == name);
        let volume = found.ok_or_else(|| VolumeError::NoVolume { name: name.to_owned() })?;
        for snapshot in volume.snapshots.iter().rev() {
            self.delete_snapshot(name, snapshot).await?;
        }
        self.delete(name).await
    }

    /// From now on the domain keeps in mind what clients change in these volumes.
    ///
    /// # Errors
    /// [`VolumeError::NoVolume`].
    pub fn watch<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), VolumeError> {
        let here = self.here();
        let map = here.map.borrow();
        let sized = |name: &'a String| {
            let volume = map.images.volume(name)?;
            Ok((volume, map.images.get(volume).map_or(0, |image| image.size)))
        };
        let volumes = names.into_iter().map(sized).collect::<Result<_, VolumeError>>()?;
        self.core.residence().watch(Some(volumes));
        Ok(())
    }

    /// Nothing is kept in mind any more.
    pub fn end_watch(&self) {
        self.core.residence().watch(None);
    }

    /// Bytes that clients have changed in the watched volumes, and nobody has
    /// [taken](Domain::take_changed).
    pub fn changed_bytes(&self) -> u64 {
        self.core.residence().changed_units() * cast::wide(MAPPING_UNIT_BYTES)
    }

    /// Takes a range that clients have changed in a watched volume, of at most so many bytes: its
    /// offset and length. Whoever copies it reads it afterwards.
    pub fn take_changed(&self, name: &str, most_bytes: u64) -> Option<(u64, u64)> {
        let unit = cast::wide(MAPPING_UNIT_BYTES);
        let most = u32::try_from(most_bytes / unit).unwrap_or(u32::MAX).max(1);
        let volume = self.here().map.borrow().images.volume(name).ok()?;
        let Range { start, end } = self.core.residence().take(volume, most)?;
        Some((u64::from(start) * unit, u64::from(end - start) * unit))
    }
}
