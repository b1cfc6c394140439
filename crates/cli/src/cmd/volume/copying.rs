//! Images compared and copied as far as the map says that they differ.

use crate::volume_export::{Digest, MOST_DATA_BYTES};
use softflash_base::cast::{index, saturating_u32};
use softflash_base::checksum::{checksum64, identity};
use softflash_volume::{Changed, MAPPING_UNIT_BYTES, Volume, VolumeError};

/// Data of a range, in a buffer that is used again.
pub async fn read<'a>(
    from: &Volume,
    changed: Changed,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], VolumeError> {
    let bytes = u32::try_from(changed.bytes).unwrap_or(u32::MAX);
    buffer.resize(index(bytes), 0);
    from.read(changed.offset, buffer).await?;
    Ok(buffer)
}

/// The digest of a snapshot: of its size and its mapped mapping units, and of their data unless it
/// shall be quick. `shown` is called with the number of bytes after each step.
pub async fn digest(
    snapshot: &Volume,
    is_quick: bool,
    shown: impl Fn(u64),
) -> Result<Digest, VolumeError> {
    let mut digest = identity(&[snapshot.size_bytes()?]);
    let (mut at, mut buffer) = (0, Vec::new());
    while let Some(changed) = snapshot.next_change(None, at, MOST_DATA_BYTES)? {
        let offsets = (changed.offset..).step_by(MAPPING_UNIT_BYTES);
        at = changed.offset + changed.bytes;
        if is_quick {
            digest = offsets
                .take_while(|&offset| offset < at)
                .fold(digest, |digest, offset| identity(&[digest, offset]));
        } else {
            let data = read(snapshot, changed, &mut buffer).await?;
            digest = offsets
                .zip(data.chunks_exact(MAPPING_UNIT_BYTES))
                .fold(digest, |digest, (offset, unit)| {
                    checksum64(identity(&[digest, offset]), unit)
                });
        }
        shown(changed.bytes);
    }
    Ok(if is_quick { Digest::Quick(digest) } else { Digest::Full(digest) })
}

/// Whether two images have the same size and contents. Where the map says so, nothing is read.
pub async fn are_equal(one: &Volume, other: &Volume) -> Result<bool, VolumeError> {
    if one.size_bytes()? != other.size_bytes()? {
        return Ok(false);
    }
    let (mut at, mut buffers) = (0, (Vec::new(), Vec::new()));
    while let Some(changed) = one.next_change(Some(other), at, MOST_DATA_BYTES)? {
        let data = read(one, changed, &mut buffers.0).await?;
        if data != read(other, changed, &mut buffers.1).await? {
            return Ok(false);
        }
        at = changed.offset + changed.bytes;
    }
    Ok(true)
}

/// Gives a volume the contents of an image of the same size.
pub async fn copy(from: &Volume, to: &Volume) -> Result<(), VolumeError> {
    let (mut at, mut buffer) = (0, Vec::new());
    while let Some(changed) = from.next_change(Some(to), at, MOST_DATA_BYTES)? {
        match changed.has_data {
            true => to.write(changed.offset, read(from, changed, &mut buffer).await?).await?,
            false => to.discard(changed.offset, changed.bytes).await?,
        }
        at = changed.offset + changed.bytes;
    }
    to.flush().await
}

/// A number of things, as messages have it.
pub fn count(things: usize) -> u64 {
    saturating_u32(things).into()
}
