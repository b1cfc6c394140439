//! Reads that may meet lost data, and the rest after which losses are known.

use softflash_runtime::RuntimeHandle;
use softflash_volume::{MAPPING_UNIT_BYTES, Volume, VolumeError};
use std::time::Duration;

/// Bytes of a mapping unit.
pub const UNIT: u64 = MAPPING_UNIT_BYTES as u64;

/// Mapping units of an image; none of those whose data are lost, where that may be.
pub(super) async fn read_units(
    image: &Volume,
    lba: u32,
    count: u32,
    may_lose: bool,
) -> Result<Vec<Option<Vec<u8>>>, VolumeError> {
    let mut bytes = vec![0; count as usize * MAPPING_UNIT_BYTES];
    match image.read(u64::from(lba) * UNIT, &mut bytes).await {
        Ok(()) => {
            return Ok(bytes.chunks(MAPPING_UNIT_BYTES).map(|unit| Some(unit.to_vec())).collect());
        }
        Err(VolumeError::DataLoss { .. }) if may_lose => {}
        Err(error) => return Err(error),
    }
    let mut units = Vec::new();
    for lba in lba..lba + count {
        let mut unit = vec![0; MAPPING_UNIT_BYTES];
        match image.read(u64::from(lba) * UNIT, &mut unit).await {
            Ok(()) => units.push(Some(unit)),
            Err(VolumeError::DataLoss { .. }) => units.push(None),
            Err(error) => return Err(error),
        }
    }
    Ok(units)
}

/// Until the loss of what was flushed before would be known: a second, and the time that the proof
/// takes.
pub(super) async fn rest(runtime: &RuntimeHandle) {
    runtime.sleep_until(runtime.now() + Duration::from_secs(3)).await;
}
