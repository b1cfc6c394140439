//! The set that volumes come to.

use super::departure::Piece;
use super::error::MoveError;
use super::family::Family;
use super::take_away;
use softflash_ftl::Hint;
use softflash_volume::{Domain, Setting, VolumeError, VolumeSettings};

/// A family that comes to a domain, where nobody finds it yet.
pub struct Arrival {
    /// It finds the family.
    domain: Domain,
    family: Family,
    is_complete: bool,
}

impl Arrival {
    /// Begins: the names are not the domain's until all is there.
    pub fn begin(domain: &Domain, family: Family) -> Arrival {
        domain.set_guests(&family.names());
        Arrival { domain: domain.with_guests(), family, is_complete: false }
    }

    /// Adds a piece.
    ///
    /// # Errors
    /// Those of the domain, which may be full.
    pub async fn take(&mut self, piece: Piece) -> Result<(), MoveError> {
        let domain = &self.domain;
        let quiet = |name: &str| {
            let volume = domain.volume(name)?;
            Ok::<_, VolumeError>(volume.without_limits().hinted(Hint::COLLECTION))
        };
        match piece {
            Piece::Begin { name, parent: None, size_bytes, settings } => {
                domain.create_with(&name, size_bytes, &hints(&settings)).await?;
            }
            Piece::Begin { name, parent: Some((of, snapshot)), size_bytes, settings } => {
                domain.clone_snapshot(&of, &snapshot, &name).await?;
                domain.set(&name, &hints(&settings)).await?;
                domain.shrink(&name, size_bytes).await?;
            }
            Piece::Size { name, size_bytes } => domain.shrink(&name, size_bytes).await?,
            Piece::Data { name, offset, data } => quiet(&name)?.write(offset, &data).await?,
            Piece::Zeros { name, offset, bytes } => quiet(&name)?.discard(offset, bytes).await?,
            Piece::Snapshot { name, snapshot } => {
                quiet(&name)?.flush().await?;
                domain.snapshot(&name, &snapshot).await?;
            }
            Piece::End => {
                // Limits come last: no copy waits for them, and a quota may be below the data.
                for volume in self.family.volumes() {
                    domain.set(&volume.name, &volume.settings.all()).await?;
                }
                self.is_complete = true;
            }
        }
        Ok(())
    }

    /// Makes all of it durable, so that its loss would be noticed.
    ///
    /// # Errors
    /// [`MoveError::Interrupted`] where pieces are missing; those of the domain.
    pub async fn finish(&self) -> Result<(), MoveError> {
        if !self.is_complete {
            return Err(MoveError::Interrupted);
        }
        self.domain.flush().await?;
        Ok(self.domain.prove().await?)
    }

    /// The family is the domain's from now on.
    pub fn show(self) {
        self.domain.set_guests(&[]);
    }

    /// Deletes what has come.
    ///
    /// # Errors
    /// Those of the flash; the next mount deletes it then.
    pub async fn undo(self) -> Result<(), VolumeError> {
        take_away(&self.domain, &self.family.names()).await
    }
}

/// What decides where data are written.
fn hints(settings: &VolumeSettings) -> [Setting; 2] {
    let lifetime = settings.lifetime;
    [Setting::Temperature(lifetime.temperature), Setting::Stream(lifetime.stream)]
}
