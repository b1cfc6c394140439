//! What has changed in a domain of a pair since its state was written: the partner may lack it.

use super::DomainMap;
use crate::format::operation::Operation;
use crate::format::pair::PairRecord;
use crate::image::ImageId;

impl DomainMap {
    /// A range of a volume was written or discarded.
    #[inline]
    pub(super) fn note_changed(&mut self, volume: ImageId, lba: u32, count: u32) {
        // Of a partner that has not everything nobody asks what it lacks.
        if let Some(record) = self.pair.as_mut().filter(|record| record.state.is_partner_whole) {
            record.changed.insert(volume, lba..lba.saturating_add(count));
        }
    }

    /// An operation is applied.
    pub(super) fn note_operation(&mut self, operation: &Operation) {
        match operation {
            Operation::Pair(state) => {
                self.pair = (state.pair > 0).then(|| PairRecord::of(*state));
            }
            Operation::OfPair { number, operation } => {
                if let Some(record) = &mut self.pair {
                    record.state.operations = *number;
                    record.last = Some((**operation).clone());
                    if let Operation::Delete { image } = **operation {
                        record.changed.remove_image(image);
                    }
                }
            }
            _ => {}
        }
    }
}
