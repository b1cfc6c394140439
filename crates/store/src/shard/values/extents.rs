//! Extents: neighbouring values of a block that are read together, and batches of extents whose
//! values are written together.

use super::extent;
use std::ops::Range;

/// The most bytes of a read of neighbouring values, and the largest gap between them that is read
/// as well.
const READ_BYTES: usize = 1 << 20;
const READ_GAP: usize = 64 << 10;

/// The bytes of values from which on a batch takes no other extent: about those of a device write.
pub(super) const BATCH_BYTES: usize = 768 << 10;

/// Values of a block that are read together.
pub(super) struct Extent {
    /// The bytes of the block that have them.
    range: Range<usize>,
    /// The offset and the length of each.
    pub(super) values: Vec<(u32, u32)>,
}

impl Extent {
    /// The pages that have the values.
    pub(super) fn pages(&self, page_bytes: usize) -> Range<usize> {
        self.range.start / page_bytes..self.range.end.div_ceil(page_bytes)
    }

    /// The byte of the block at which its first page begins.
    pub(super) fn start(&self, page_bytes: usize) -> usize {
        self.pages(page_bytes).start * page_bytes
    }

    /// Bytes of the values.
    pub(super) fn live_bytes(&self) -> usize {
        self.values.iter().map(|place| extent(*place).1).sum()
    }
}

/// Groups values, in order of their offsets, for device writes of about a mebibyte.
pub(super) fn batches(live: &[(u32, u32)]) -> Vec<Vec<Extent>> {
    let mut batches: Vec<Vec<Extent>> = Vec::new();
    let mut bytes = BATCH_BYTES;
    for extent in extents(live) {
        if bytes >= BATCH_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        bytes += extent.live_bytes();
        if let Some(batch) = batches.last_mut() {
            batch.push(extent);
        }
    }
    batches
}

/// Groups values, in order of their offsets, for reads of at most [`READ_BYTES`].
fn extents(live: &[(u32, u32)]) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for place in live.iter().copied() {
        let (start, len) = extent(place);
        let end = start + len;
        match extents.last_mut() {
            Some(Extent { range, values })
                if start - range.end <= READ_GAP && end - range.start <= READ_BYTES =>
            {
                range.end = end;
                values.push(place);
            }
            _ => extents.push(Extent { range: start..end, values: vec![place] }),
        }
    }
    extents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_values_are_read_together_up_to_a_mebibyte() {
        let (kib, mib) = (1 << 10, 1 << 20);
        let live = [(0, 100), (100, 100), (70 * kib, 100), (2 * mib, mib), (3 * mib, 10)];
        let found: Vec<_> = extents(&live)
            .iter()
            .map(|e| (e.range.start, e.values.len(), e.live_bytes()))
            .collect();
        let expected = [(0, 2, 200), (70 << 10, 1, 100), (2 << 20, 1, 1 << 20), (3 << 20, 1, 10)];
        assert_eq!(found, expected);
    }

    #[test]
    fn values_that_are_far_apart_are_written_together() {
        let live: Vec<_> = (0..12).map(|number| (number << 18, 128 << 10)).collect();
        let found: Vec<_> = batches(&live).iter().map(Vec::len).collect();
        assert_eq!(found, [6, 6]);
        assert!(batches(&[]).is_empty());
    }

    #[test]
    fn an_extent_has_the_pages_of_its_values() {
        let [extent] = &extents(&[(5000, 100), (9000, 4000)])[..] else { unreachable!() };
        assert_eq!((extent.pages(4096), extent.start(4096)), (1..4, 4096));
    }
}
