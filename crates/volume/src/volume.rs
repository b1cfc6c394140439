//! The handle of a volume or of a snapshot.

use crate::core::Shared;
use crate::domain_map;
use crate::error::VolumeError;
use crate::flusher;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::{Image, ImageId};
use crate::operations::{Change, change};
use crate::reader;
use crate::writer;
use softflash_base::cast;
use softflash_ftl::Hint;

/// A volume, or a snapshot, which can only be read. A clone is the same volume.
#[derive(Clone)]
pub struct Volume {
    core: Shared,
    image: ImageId,
}

impl Volume {
    pub(crate) fn new(core: Shared, image: ImageId) -> Volume {
        Volume { core, image }
    }

    /// The current size.
    pub fn size_bytes(&self) -> Result<u64, VolumeError> {
        let map = self.core.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        Ok(u64::from(image.size) * cast::wide(MAPPING_UNIT_BYTES))
    }

    /// Whether it is a snapshot.
    pub fn is_read_only(&self) -> bool {
        let map = self.core.map.borrow();
        map.images.get(self.image).is_none_or(|image| !image.is_volume())
    }

    /// Reads whole mapping units from `offset` on. Those that were never written, or were
    /// discarded, read as zeros.
    pub async fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), VolumeError> {
        let lba = self.check(offset, cast::wide(into.len()))?;
        reader::read(&self.core, self.image, lba, into, Hint::FOREGROUND).await
    }

    /// Writes whole mapping units from `offset` on. Each is written wholly or not at all, also if
    /// the power fails. Durable after a [`flush`](Volume::flush).
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        let lba = self.check_write(offset, cast::wide(data.len()))?;
        writer::write(&self.core, self.image, lba, data).await
    }

    /// Lets a range of whole mapping units read as zeros, and frees its space.
    pub async fn discard(&self, offset: u64, bytes: u64) -> Result<(), VolumeError> {
        let lba = self.check_write(offset, bytes)?;
        let count = u32::try_from(bytes / cast::wide(MAPPING_UNIT_BYTES)).unwrap_or(u32::MAX);
        if count == 0 {
            return Ok(());
        }
        let image = self.image;
        change(&self.core, |images| match images.get(image) {
            Some(_) => Ok((Change::Discard { image, lba, count }, ())),
            None => Err(VolumeError::Deleted),
        })
        .await
    }

    /// Returns when all completed writes and discards are durable.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        flusher::flush(&self.core).await
    }

    /// Whether each mapping unit of a range holds data; those that do not read as zeros.
    pub fn allocated(&self, offset: u64, bytes: u64) -> Result<Vec<bool>, VolumeError> {
        let lba = self.check(offset, bytes)?;
        let map = self.core.map.borrow();
        let count = u32::try_from(bytes / cast::wide(MAPPING_UNIT_BYTES)).unwrap_or(u32::MAX);
        let units = lba..lba.saturating_add(count);
        Ok(units.map(|lba| map.find(self.image, lba) != domain_map::Found::Zeros).collect())
    }

    fn check_write(&self, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
        self.core.check_running()?;
        let map = self.core.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        if !image.is_volume() {
            return Err(VolumeError::ReadOnly);
        }
        let first = first_unit(image, offset, bytes)?;
        map.expect(image, first);
        Ok(first)
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
        let map = self.core.map.borrow();
        let image = map.images.get(self.image).ok_or(VolumeError::Deleted)?;
        first_unit(image, offset, bytes)
    }
}

/// The first mapping unit of a range inside an image.
fn first_unit(image: &Image, offset: u64, bytes: u64) -> Result<u32, VolumeError> {
    let unit = cast::wide(MAPPING_UNIT_BYTES);
    if !offset.is_multiple_of(unit) || !bytes.is_multiple_of(unit) {
        return Err(VolumeError::Unaligned { offset, bytes });
    }
    let (end, size) = (offset.saturating_add(bytes), u64::from(image.size) * unit);
    if end > size {
        return Err(VolumeError::BeyondEnd { offset, end, size });
    }
    u32::try_from(offset / unit).map_err(|_| VolumeError::BeyondEnd { offset, end, size })
}
