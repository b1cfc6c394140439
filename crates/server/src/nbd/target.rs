//! A volume to which clients write any bytes, although it takes whole mapping units only.

use super::range_locks::RangeLocks;
use softflash_runtime::yield_now;
use softflash_volume::{MAPPING_UNIT_BYTES, Volume, VolumeError};
use std::ops::Range;
use std::rc::Rc;

const UNIT: u64 = MAPPING_UNIT_BYTES as u64;

/// Zeros are written in pieces of this size.
const ZERO_BYTES: usize = 1 << 20;

/// Discards are carried out in parts, between which other tasks of the thread run.
const DISCARD_BYTES: u64 = 256 << 20;

/// A volume with the locks that all clients of it share.
#[derive(Clone)]
pub(super) struct Target {
    volume: Volume,
    locks: Rc<RangeLocks>,
}

/// Bytes that were read.
pub(super) struct ReadBytes {
    /// Whole mapping units.
    pub units: Vec<u8>,
    /// The part that was asked for.
    pub wanted: Range<usize>,
}

/// The bytes of the mapping units that these bytes are in.
fn units_around(bytes: &Range<u64>) -> Range<u64> {
    bytes.start / UNIT * UNIT..bytes.end.div_ceil(UNIT) * UNIT
}

/// The bytes of the mapping units that are wholly in these bytes; may be empty.
fn units_within(bytes: &Range<u64>) -> Range<u64> {
    let start = bytes.start.div_ceil(UNIT) * UNIT;
    start..(bytes.end / UNIT * UNIT).max(start)
}

fn length(bytes: &Range<u64>) -> usize {
    usize::try_from(bytes.end - bytes.start).unwrap_or(usize::MAX)
}

impl Target {
    pub fn new(volume: Volume, locks: Rc<RangeLocks>) -> Target {
        Target { volume, locks }
    }

    pub async fn read(&self, bytes: Range<u64>) -> Result<ReadBytes, VolumeError> {
        let around = units_around(&bytes);
        let mut units = vec![0; length(&around)];
        self.volume.read(around.start, &mut units).await?;
        let first = length(&(around.start..bytes.start));
        Ok(ReadBytes { units, wanted: first..first + length(&bytes) })
    }

    /// Counts a read of bytes that hold no data as a request, which waits for the limits, too.
    pub async fn read_hole(&self, offset: u64) -> Result<(), VolumeError> {
        self.volume.read(offset / UNIT * UNIT, &mut []).await
    }

    /// Whether these bytes hold data, in runs from front to back: their lengths, and whether they
    /// do.
    pub fn runs(&self, bytes: Range<u64>) -> Result<Vec<(u64, bool)>, VolumeError> {
        let around = units_around(&bytes);
        let mut runs = self.volume.runs(around.start, around.end - around.start)?;
        // The first and the last unit may be in the bytes in part only.
        if let Some((length, _)) = runs.first_mut() {
            *length -= bytes.start - around.start;
        }
        if let Some((length, _)) = runs.last_mut() {
            *length -= around.end - bytes.end;
        }
        Ok(runs)
    }

    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), VolumeError> {
        let bytes = offset..offset.saturating_add(data.len() as u64);
        let around = units_around(&bytes);
        if around == bytes {
            let _lock = self.locks.lock(around, false).await;
            return self.volume.write(offset, data).await;
        }
        let _lock = self.locks.lock(around.clone(), true).await;
        let mut units = vec![0; length(&around)];
        let last = around.end - UNIT;
        if around.start < bytes.start || last == around.start {
            self.read_unit(&around, around.start, &mut units).await?;
        }
        if bytes.end < around.end && last > around.start {
            self.read_unit(&around, last, &mut units).await?;
        }
        let first = length(&(around.start..bytes.start));
        if let Some(place) = units.get_mut(first..first + data.len()) {
            place.copy_from_slice(data);
        }
        self.volume.write(around.start, &units).await
    }

    /// Reads the unit at `offset` to its place in `units`, which begin with those `around`.
    async fn read_unit(
        &self,
        around: &Range<u64>,
        offset: u64,
        units: &mut [u8],
    ) -> Result<(), VolumeError> {
        let first = length(&(around.start..offset));
        match units.get_mut(first..first + MAPPING_UNIT_BYTES) {
            Some(place) => self.volume.read(offset, place).await,
            None => Ok(()),
        }
    }

    /// Lets whole mapping units read as zeros and frees their space. The rest of the bytes stays.
    pub async fn trim(&self, bytes: Range<u64>) -> Result<(), VolumeError> {
        let within = units_within(&bytes);
        let mut start = within.start;
        while start < within.end {
            let end = within.end.min(start + DISCARD_BYTES);
            let lock = self.locks.lock(start..end, false).await;
            self.volume.discard(start, end - start).await?;
            drop(lock);
            yield_now().await;
            start = end;
        }
        Ok(())
    }

    /// Lets bytes read as zeros, and frees the space of whole mapping units.
    pub async fn punch(&self, bytes: Range<u64>) -> Result<(), VolumeError> {
        let within = units_within(&bytes);
        if within.is_empty() {
            return self.fill(bytes).await;
        }
        self.fill(bytes.start..within.start).await?;
        self.trim(within.clone()).await?;
        self.fill(within.end..bytes.end).await
    }

    /// Writes zeros, which take space.
    pub async fn fill(&self, bytes: Range<u64>) -> Result<(), VolumeError> {
        let mut start = bytes.start;
        let zeros = vec![0; ZERO_BYTES.min(length(&bytes))];
        while start < bytes.end {
            let end = bytes.end.min(start + zeros.len() as u64);
            let piece = zeros.get(..length(&(start..end))).unwrap_or_default();
            self.write(start, piece).await?;
            start = end;
        }
        Ok(())
    }

    /// Returns when all completed writes and trims are durable.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        self.volume.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_within_and_around_whole_units() {
        assert_eq!(units_around(&(4096..8192)), 4096..8192);
        assert_eq!(units_within(&(4096..8192)), 4096..8192);
        assert_eq!(units_around(&(4097..8191)), 4096..8192);
        assert!(units_within(&(4097..8191)).is_empty());
        assert_eq!(units_around(&(1..12_289)), 0..16_384);
        assert_eq!(units_within(&(1..12_289)), 4096..12_288);
    }
}
