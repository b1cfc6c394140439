//! The block status of the context `base:allocation`: which parts are holes, or read as zeroes.

use crate::request::ByteRange;
use softflash_base::cast;

/// The name of the only metadata context.
pub(crate) const CONTEXT: &str = "base:allocation";
/// Its id in a session.
pub(crate) const CONTEXT_ID: u32 = 1;

const HOLE: u32 = 1 << 0;
const ZERO: u32 = 1 << 1;
/// Maximum number of descriptors in a reply.
const MOST_DESCRIPTORS: usize = 1 << 20;
/// Maximum length of a descriptor, aligned to every block size.
const LONGEST_BYTES: u32 = 0xffff_0000;

/// A part of an export with one status. A status of neither is always correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The length in bytes; it may reach beyond the request.
    pub bytes: u64,
    /// Not allocated: a write may find no space.
    pub is_hole: bool,
    /// Reads as zeroes.
    pub is_zero: bool,
}

/// A descriptor on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) bytes: u32,
    pub(crate) status: u32,
}

/// The descriptors for consecutive extents from the beginning of a range, as far as the protocol
/// allows: equal neighbours are joined, only the last one reaches beyond the range, and none does
/// if one is requested.
pub(crate) fn descriptors(
    extents: impl IntoIterator<Item = Extent>,
    range: ByteRange,
    one_extent: bool,
    export_bytes: u64,
    max_payload_bytes: u32,
) -> Vec<Descriptor> {
    let most = cast::index(max_payload_bytes / 8).min(MOST_DESCRIPTORS);
    let most = if one_extent { 1 } else { most };
    let requested = u64::from(range.bytes);
    let limit = if one_extent { requested } else { export_bytes.saturating_sub(range.offset) };
    let (mut found, mut covered): (Vec<Descriptor>, u64) = (Vec::new(), 0);
    for extent in extents {
        let status = if extent.is_hole { HOLE } else { 0 } | if extent.is_zero { ZERO } else { 0 };
        let mut left = extent.bytes.min(limit.saturating_sub(covered));
        while left > 0 && covered < requested {
            let last = found.last().filter(|last| last.status == status);
            let room = last.map_or(0, |last| LONGEST_BYTES.saturating_sub(last.bytes));
            if room == 0 {
                if found.len() == most {
                    return found;
                }
                found.push(Descriptor { bytes: 0, status });
                continue;
            }
            let bytes = u32::try_from(left).unwrap_or(u32::MAX).min(room);
            if let Some(last) = found.last_mut() {
                last.bytes += bytes;
            }
            left -= u64::from(bytes);
            covered += u64::from(bytes);
        }
        if covered >= requested {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: (bool, bool) = (false, false);
    const EMPTY: (bool, bool) = (true, true);

    fn found(extents: &[(u64, (bool, bool))], bytes: u32, one_extent: bool) -> Vec<(u32, u32)> {
        let extents =
            extents.iter().map(|&(bytes, (is_hole, is_zero))| Extent { bytes, is_hole, is_zero });
        let range = ByteRange { offset: 1000, bytes };
        let found = descriptors(extents, range, one_extent, 1 << 40, 1 << 25);
        found.iter().map(|found| (found.bytes, found.status)).collect()
    }

    #[test]
    fn neighbours_with_the_same_status_are_joined() {
        let extents = [(10, DATA), (20, DATA), (0, EMPTY), (5, EMPTY), (5, (false, true))];
        assert_eq!(found(&extents, 1000, false), [(30, 0), (5, 3), (5, 2)]);
        assert_eq!(found(&extents, 1000, true), [(30, 0)]);
    }

    #[test]
    fn only_the_last_descriptor_reaches_beyond_the_range() {
        let extents = [(60, DATA), (60, EMPTY), (60, DATA)];
        assert_eq!(found(&extents, 100, false), [(60, 0), (60, 3)]);
        assert_eq!(found(&extents, 60, false), [(60, 0)]);
        assert_eq!(found(&extents, 50, true), [(50, 0)]);
    }

    #[test]
    fn extents_after_the_range_are_not_asked_for() {
        let mut asked = 0;
        let extents = std::iter::repeat_with(|| {
            asked += 1;
            Extent { bytes: 512, is_hole: false, is_zero: false }
        });
        let range = ByteRange { offset: 0, bytes: 1024 };
        descriptors(extents, range, false, 1 << 40, 1 << 25);
        assert_eq!(asked, 2);
    }

    #[test]
    fn a_long_extent_is_cut_to_aligned_descriptors() {
        assert_eq!(found(&[(1 << 33, EMPTY)], u32::MAX, false), [(0xffff_0000, 3); 2]);
        let joined = [(0xffff_0000 - 10, DATA), (100, DATA)];
        assert_eq!(found(&joined, u32::MAX, false), [(0xffff_0000, 0), (90, 0)]);
        let limit = descriptors(
            [Extent { bytes: u64::MAX, is_hole: false, is_zero: true }],
            ByteRange { offset: 90, bytes: 5 },
            false,
            100,
            1 << 16,
        );
        assert_eq!(limit, [Descriptor { bytes: 10, status: 2 }], "not beyond the export");
    }

    #[test]
    fn there_are_no_more_descriptors_than_a_payload_holds_nor_than_a_million() {
        let count = |max_payload: u32| {
            let extents =
                (0..1_200_000).map(|i| Extent { bytes: 1, is_hole: i % 2 == 0, is_zero: false });
            let range = ByteRange { offset: 0, bytes: 1 << 25 };
            descriptors(extents, range, false, 1 << 30, max_payload).len()
        };
        assert_eq!(count(1 << 16), 8192);
        assert_eq!(count(1 << 25), 1 << 20);
    }
}
