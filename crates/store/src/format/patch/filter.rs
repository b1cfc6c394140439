//! The filter: shows without a read that a key is not in a patch.
//!
//! A binary fuse filter (Graf and Lemire, 2022) with 16-bit fingerprints: about 18 bits a key, and
//! one absent key in 65,536 passes. The crate `xorf` builds it; the lookup is implemented here,
//! because it is part of the format and must not change with a crate. Each filter is verified with
//! all of its keys before it is written.

use crate::format::FormatError;
use crate::format::codec::Reader;
use softflash_base::cast::{index, low_u16, low_u32, saturating_u32, wide};
use xorf::BinaryFuse16;

const WHAT: &str = "the filter of a patch";
/// Bytes in front of the fingerprints.
const HEADER_BYTES: usize = 16;

/// A filter over 64-bit hashes of keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filter {
    seed: u64,
    segment_length: u32,
    segment_count_length: u32,
    fingerprints: Box<[u16]>,
}

impl Filter {
    /// A filter that `hashes` pass; sorts them and removes duplicates. `None` where it cannot be
    /// built, which only costs reads.
    pub fn build(hashes: &mut Vec<u64>) -> Option<Filter> {
        hashes.sort_unstable();
        hashes.dedup();
        let built = BinaryFuse16::try_from(hashes.as_slice()).ok()?;
        let filter = Filter {
            seed: built.descriptor.seed,
            segment_length: built.descriptor.segment_length,
            segment_count_length: built.descriptor.segment_count_length,
            fingerprints: built.fingerprints,
        };
        let sound = filter.is_sound() && hashes.iter().all(|hash| filter.contains(*hash));
        sound.then_some(filter)
    }

    /// Whether every position that a hash can map to lies inside.
    fn is_sound(&self) -> bool {
        let (segment, total) = (u64::from(self.segment_length), wide(self.fingerprints.len()));
        segment.is_power_of_two()
            && self.segment_count_length > 0
            && u64::from(self.segment_count_length) % segment == 0
            && u64::from(self.segment_count_length) + 2 * segment == total
    }

    /// Whether a key with this hash may be inside.
    pub fn contains(&self, hash: u64) -> bool {
        let hash = mix(hash.wrapping_add(self.seed));
        let mask = self.segment_length - 1;
        let (_, first) = hash.carrying_mul(self.segment_count_length.into(), 0);
        let first = low_u32(first);
        let second = (first + self.segment_length) ^ (low_u32(hash >> 18) & mask);
        let third = (first + 2 * self.segment_length) ^ (low_u32(hash) & mask);
        let at = |place: u32| self.fingerprints.get(index(place)).copied().unwrap_or_default();
        low_u16(hash ^ (hash >> 32)) == at(first) ^ at(second) ^ at(third)
    }

    pub fn memory_bytes(&self) -> usize {
        2 * self.fingerprints.len()
    }

    pub fn encoded_len(&self) -> usize {
        HEADER_BYTES + self.memory_bytes()
    }

    /// An upper bound of the bytes of a filter of up to `keys` keys.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive numbers, far below 2^53"
    )]
    pub fn encoded_bound(keys: usize) -> usize {
        let size = f64::from(saturating_u32(keys.max(2)));
        // As in the paper: segments of 2^(log_3.33(n) + 2.25), and an array of at least 1.125 times
        // the number of keys.
        let segment = 1u64 << ((size.ln() / 3.33f64.ln() + 2.25).floor() as u32).min(18);
        let factor = (0.875 + 0.25 * 1e6f64.ln() / size.ln()).max(1.125);
        let array = ((size * factor).round() as u64).div_ceil(segment).max(3) * segment;
        HEADER_BYTES + 2 * array as usize
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.seed.to_le_bytes());
        out.extend_from_slice(&self.segment_length.to_le_bytes());
        out.extend_from_slice(&self.segment_count_length.to_le_bytes());
        self.fingerprints.iter().for_each(|print| out.extend_from_slice(&print.to_le_bytes()));
    }

    pub fn decode(bytes: &[u8]) -> Result<Filter, FormatError> {
        let mut reader = Reader::new(bytes, WHAT);
        let (seed, segment_length) = (reader.u64()?, reader.u32()?);
        let segment_count_length = reader.u32()?;
        let prints = reader.take(reader.remaining())?;
        let fingerprints =
            prints.as_chunks().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        let filter = Filter { seed, segment_length, segment_count_length, fingerprints };
        if prints.len() % 2 == 0 && filter.is_sound() {
            Ok(filter)
        } else {
            Err(reader.malformed("its lengths do not fit together"))
        }
    }
}

/// MurmurHash3's finalizer.
fn mix(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
