//! What a domain keeps on its flash about the pair that it is one of.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};
use super::operation::Operation;
use super::pair_state::{PairState, STATE_BYTES};
use crate::image::ImageId;
use crate::unit_ranges::UnitRanges;
use softflash_base::planted::{self, Bug};

/// The state, and what has changed since it was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PairRecord {
    pub state: PairState,
    /// Mapping units of volumes that were written or discarded.
    pub changed: UnitRanges,
    /// The last operation, whose number is that of the state.
    pub last: Option<Operation>,
}

impl PairRecord {
    /// A state without changes.
    pub fn of(state: PairState) -> PairRecord {
        PairRecord { state, changed: UnitRanges::default(), last: None }
    }

    pub fn add(&self, bytes: &mut Vec<u8>) {
        self.state.add(bytes);
        let left_out = if planted::bug(Bug::ChangesNotInRoots) { usize::MAX } else { 0 };
        bytes.add_count(self.changed.len().saturating_sub(left_out));
        for (image, range) in self.changed.iter().skip(left_out) {
            [image.0, range.start, range.end].iter().for_each(|&it| bytes.add_u32(it));
        }
        let last = self.last.as_ref().map(Operation::encode).unwrap_or_default();
        bytes.add_count(last.len());
        bytes.add(&last);
    }

    pub fn read(reader: &mut Reader<'_>) -> Option<PairRecord> {
        let state = PairState::read(reader)?;
        let mut changed = UnitRanges::default();
        for _ in 0..reader.count(RANGE_BYTES)? {
            let (image, start, end) = (ImageId(reader.u32()?), reader.u32()?, reader.u32()?);
            changed.insert(image, start..end);
        }
        let bytes = reader.count(1)?;
        let last = match bytes {
            0 => None,
            bytes => Some(Operation::decode(reader.take(bytes)?)?),
        };
        Some(PairRecord { state, changed, last })
    }
}

/// Bytes of a range.
const RANGE_BYTES: usize = 12;

/// The most bytes of an operation: names have 64.
const OPERATION_BYTES: usize = 160;

/// The most bytes of a record of so many ranges.
pub(crate) fn most_bytes(ranges: usize) -> usize {
    STATE_BYTES + 8 + RANGE_BYTES * ranges + OPERATION_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_decode_to_what_was_encoded() {
        let state = PairState { pair: 7, epoch: 1 << 50, operations: 3, ..PairState::default() };
        for (is_whole, is_partner_whole) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let mut record = PairRecord::of(PairState { is_whole, is_partner_whole, ..state });
            for last in [None, Some(Operation::Delete { image: ImageId(4) })] {
                record.last = last;
                record.changed.insert(ImageId(2), 5..9);
                record.changed.insert(ImageId(3), 0..u32::MAX);
                let mut bytes = Vec::new();
                record.add(&mut bytes);
                assert!(bytes.len() <= most_bytes(2));
                assert_eq!(PairRecord::read(&mut Reader(&bytes)), Some(record.clone()));
                for cut in 0..bytes.len() {
                    assert_eq!(PairRecord::read(&mut Reader(&bytes[..cut])), None, "{cut} bytes");
                }
            }
        }
    }
}
