//! Changes of one domain of a pair.

use crate::core::Shared;
use crate::error::VolumeError;
use crate::format::operation::Operation;
use crate::image::ImageId;
use crate::operations::{Change, change};
use std::ops::Range;

/// Discards a range of a volume of one domain.
pub(super) async fn discard_at(
    core: &Shared,
    image: ImageId,
    range: Range<u32>,
) -> Result<(), VolumeError> {
    let (lba, count) = (range.start, range.end - range.start);
    change(core, |images| match images.get(image) {
        Some(_) => Ok((Change::Discard { image, lba, count }, ())),
        None => Err(VolumeError::Deleted),
    })
    .await
}

/// Carries out an operation on one domain.
pub(super) async fn operate(core: &Shared, operation: &Operation) -> Result<(), VolumeError> {
    change(core, |_| Ok((Change::Operation(operation.clone()), ()))).await
}

/// Whether an error says that a domain takes no more writes at all.
pub(super) fn is_fatal(error: &VolumeError) -> bool {
    matches!(error, VolumeError::WornOut | VolumeError::Flash(_) | VolumeError::Damaged { .. })
}
