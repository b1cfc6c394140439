//! Copies data from one domain of a pair to the other.

use super::putting::discard_at;
use crate::core::Shared;
use crate::domain_map::Found;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::image::ImageId;
use crate::reader;
use crate::tenant::Tenant;
use crate::writer;
use softflash_base::cast;
use softflash_ftl::Hint;
use std::ops::Range;
use std::rc::Rc;

/// Copies data of an image to the same mapping units of a volume. Those that cannot be read are
/// lost there, too: older data must not come back. Returns how many those are.
pub(super) async fn transfer(
    (from, image): (&Shared, ImageId),
    (to, tenant): (&Shared, &Rc<Tenant>),
    range: Range<u32>,
) -> Result<u64, VolumeError> {
    let mut data = vec![0; cast::index(range.end - range.start) * MAPPING_UNIT_BYTES];
    if reader::read(from, image, range.start, &mut data, Hint::COLLECTION).await.is_ok() {
        writer::write(to, tenant, range.start, &data, Hint::COLLECTION).await?;
        return Ok(0);
    }
    let mut lost = 0;
    for (lba, unit) in range.zip(data.chunks_exact_mut(MAPPING_UNIT_BYTES)) {
        match reader::read(from, image, lba, unit, Hint::COLLECTION).await {
            Ok(()) => writer::write(to, tenant, lba, unit, Hint::COLLECTION).await?,
            Err(VolumeError::DataLoss { reason, .. }) => {
                tracing::error!(%image, lba, reason, "the newest data of a pair are lost");
                writer::write_lost(to, tenant, lba).await?;
                lost += 1;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(lost)
}

/// Lets mapping units of a volume read as zeros, if they do not.
pub(super) async fn clear(
    core: &Shared,
    image: ImageId,
    range: Range<u32>,
) -> Result<(), VolumeError> {
    match range.clone().any(|lba| holds(core, image, lba)) {
        true => discard_at(core, image, range).await,
        false => Ok(()),
    }
}

/// Whether a mapping unit of an image holds data, also those that are lost.
pub(super) fn holds(core: &Shared, image: ImageId, lba: u32) -> bool {
    core.map.borrow().find(image, lba) != Found::Zeros
}
