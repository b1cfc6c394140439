//! The set that volumes leave: reads them, in pieces that another thread may take.

use super::MoveProgress;
use super::error::MoveError;
use super::family::Family;
use softflash_ftl::Hint;
use softflash_volume::{Changed, Domain, Volume, VolumeError, VolumeInfo, VolumeSettings};
use std::sync::Arc;

/// The most data of a piece.
const MOST_BYTES: u64 = 1 << 20;

/// The most that may be left when clients have to wait.
const FEW_BYTES: u64 = 8 << 20;

/// Rounds over what clients have changed, after which they have to wait, whatever is left.
const MOST_ROUNDS: usize = 16;

/// A part of a volume on its way.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// A volume begins.
    Begin {
        /// Its name.
        name: String,
        /// Of a clone, the volume and the snapshot that it was made of.
        parent: Option<(String, String)>,
        /// The size of its first image.
        size_bytes: u64,
        /// Its settings, of which the hints count from now on.
        settings: VolumeSettings,
    },
    /// The size of its next image.
    Size {
        /// The volume.
        name: String,
        /// Its size.
        size_bytes: u64,
    },
    /// Data.
    Data {
        /// The volume.
        name: String,
        /// Where.
        offset: u64,
        /// Whole mapping units.
        data: Vec<u8>,
    },
    /// A range that reads as zeros.
    Zeros {
        /// The volume.
        name: String,
        /// Where.
        offset: u64,
        /// How much.
        bytes: u64,
    },
    /// The volume as it is now is a snapshot.
    Snapshot {
        /// The volume.
        name: String,
        /// The snapshot.
        snapshot: String,
    },
    /// All of the family was sent.
    End,
}

/// A family that leaves its domain.
pub struct Departure {
    domain: Domain,
    family: Family,
    progress: Arc<MoveProgress>,
}

impl Departure {
    /// Begins: what clients change from now on is kept in mind until this is dropped.
    ///
    /// # Errors
    /// Volumes that are gone.
    pub fn begin(
        domain: &Domain,
        family: Family,
        progress: Arc<MoveProgress>,
    ) -> Result<Departure, MoveError> {
        family.check_same(&domain.list())?;
        domain.watch(&family.names())?;
        Ok(Departure { domain: domain.clone(), family, progress })
    }

    /// Copies everything while clients use the volumes, until little is left of what they change.
    ///
    /// # Errors
    /// Data that cannot be read, and those of `sink`.
    pub async fn copy(
        &self,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        let mut left = self.family.used_bytes();
        for volume in self.family.volumes() {
            self.copy_volume(volume, &mut left, sink).await?;
        }
        for _ in 0..MOST_ROUNDS {
            if self.domain.changed_bytes() <= FEW_BYTES {
                break;
            }
            self.copy_changed(sink).await?;
        }
        Ok(())
    }

    /// Copies the rest. No client uses the volumes any more.
    ///
    /// # Errors
    /// As [`copy`](Departure::copy), and [`MoveError::Changed`].
    pub async fn finish(
        &self,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        while self.domain.changed_bytes() > 0 {
            self.copy_changed(sink).await?;
        }
        self.family.check_same(&self.domain.list())?;
        sink(Piece::End).await
    }

    /// The other domain has the volumes: nobody finds them here any more.
    pub fn hide(&self) {
        self.domain.set_guests(&self.family.names());
    }

    /// Deletes what the other domain has by now.
    ///
    /// # Errors
    /// Those of the flash; the next mount deletes it then.
    pub async fn leave(self) -> Result<(), VolumeError> {
        super::take_away(&self.domain, &self.family.names()).await
    }

    async fn copy_volume(
        &self,
        volume: &VolumeInfo,
        left: &mut u64,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        let VolumeInfo { name, settings, snapshots, parent, .. } = volume;
        let open = |of: &str, snapshot: &str| Ok(quiet(self.domain.open_snapshot(of, snapshot)?));
        let snapshots = snapshots.iter().map(|snapshot| open(name, snapshot));
        let mut images = snapshots.collect::<Result<Vec<Volume>, VolumeError>>()?;
        images.push(quiet(self.domain.volume(name)?));
        let mut before = match parent {
            Some((of, snapshot)) => Some(open(of, snapshot)?),
            None => None,
        };
        for (number, image) in images.into_iter().enumerate() {
            let size_bytes = image.size_bytes()?;
            let (name, settings) = (name.clone(), *settings);
            sink(match number {
                0 => Piece::Begin { name, parent: parent.clone(), size_bytes, settings },
                _ => Piece::Size { name, size_bytes },
            })
            .await?;
            self.copy_difference(volume, &image, before.as_ref(), left, sink).await?;
            if let Some(snapshot) = volume.snapshots.get(number) {
                let (name, snapshot) = (volume.name.clone(), snapshot.clone());
                sink(Piece::Snapshot { name, snapshot }).await?;
            }
            before = Some(image);
        }
        Ok(())
    }

    async fn copy_difference(
        &self,
        volume: &VolumeInfo,
        image: &Volume,
        before: Option<&Volume>,
        left: &mut u64,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        let mut at = 0;
        while let Some(changed) = image.next_change(before, at, MOST_BYTES)? {
            at = changed.offset + changed.bytes;
            self.send(volume, image, changed, sink).await?;
            if changed.has_data {
                *left = left.saturating_sub(changed.bytes);
            }
            self.progress.left(*left + self.domain.changed_bytes());
        }
        Ok(())
    }

    /// Copies once what clients have changed.
    async fn copy_changed(
        &self,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        for volume in self.family.volumes() {
            let image = quiet(self.domain.volume(&volume.name)?);
            let mut most = self.domain.changed_bytes();
            while let Some((offset, bytes)) = self.domain.take_changed(&volume.name, MOST_BYTES) {
                let mut offset = offset;
                for (bytes, has_data) in image.runs(offset, bytes)? {
                    self.send(volume, &image, Changed { offset, bytes, has_data }, sink).await?;
                    offset += bytes;
                }
                self.progress.left(self.domain.changed_bytes());
                most = most.saturating_sub(bytes);
                if most == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        volume: &VolumeInfo,
        image: &Volume,
        Changed { offset, bytes, has_data }: Changed,
        sink: &mut impl AsyncFnMut(Piece) -> Result<(), MoveError>,
    ) -> Result<(), MoveError> {
        let name = volume.name.clone();
        if !has_data {
            return sink(Piece::Zeros { name, offset, bytes }).await;
        }
        let mut data = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        image.read(offset, &mut data).await.map_err(|error| match error {
            VolumeError::DataLoss { .. } => MoveError::Unreadable { volume: name.clone(), error },
            error => error.into(),
        })?;
        self.progress.copied(bytes);
        sink(Piece::Data { name, offset, data }).await
    }
}

impl Drop for Departure {
    fn drop(&mut self) {
        self.domain.end_watch();
    }
}

/// An image that is read beside the requests of clients.
fn quiet(image: Volume) -> Volume {
    image.without_limits().hinted(Hint::COLLECTION)
}
