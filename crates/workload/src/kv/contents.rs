//! The contents of values: one repeated 64-bit word, derived from the key and the version. They are
//! written and checked at memory speed, and compress to almost nothing in a model with compressed
//! pages.

use thiserror::Error;

/// Bytes of the word.
const WORD: usize = size_of::<u64>();

/// A value that differs from the written one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("version {version} of key {key} is wrong from byte {offset} on")]
pub struct ContentsError {
    /// The number of the key.
    pub key: u64,
    /// The expected version.
    pub version: u64,
    /// The offset of the first wrong word.
    pub offset: usize,
}

/// A bijection of 64 bits that leaves no pattern (the finalizer of SplitMix64).
#[inline]
pub(super) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The version is XORed into the word, so that [`version_of`] can recover it.
#[inline]
fn word(key: u64, version: u64) -> [u8; WORD] {
    (mix(key) ^ version).to_le_bytes()
}

/// Fills `value` with the contents of a version of a key.
pub fn fill_value(key: u64, version: u64, value: &mut [u8]) {
    let word = word(key, version);
    let mut words = value.chunks_exact_mut(WORD);
    words.by_ref().for_each(|chunk| chunk.copy_from_slice(&word));
    let rest = words.into_remainder();
    rest.copy_from_slice(&word[..rest.len()]);
}

/// Checks that `value` has the contents of a version of a key.
pub fn check_value(key: u64, version: u64, value: &[u8]) -> Result<(), ContentsError> {
    let word = word(key, version);
    let (words, rest) = value.as_chunks::<WORD>();
    // Without a branch per word, for memory speed; the wrong word is searched only after a
    // mismatch.
    let strange = words.iter().fold(0, |strange, found| strange | difference(found, &word));
    if strange == 0 && *rest == word[..rest.len()] {
        return Ok(());
    }
    let index = words.iter().position(|found| *found != word).unwrap_or(words.len());
    Err(ContentsError { key, version, offset: index * WORD })
}

#[inline]
fn difference(one: &[u8; WORD], other: &[u8; WORD]) -> u64 {
    u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other)
}

/// The version of a key in `value`, for readers that race with writers; `None` for a value below 8
/// bytes. A version that was never written means the value of another key, or damage.
pub fn version_of(key: u64, value: &[u8]) -> Option<u64> {
    value.first_chunk::<WORD>().map(|word| u64::from_le_bytes(*word) ^ mix(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_filled_passes_and_what_is_not_is_found(
            key: u64,
            version: u64,
            bytes in 1_usize..1000,
            at: prop::sample::Index,
            flip in 1_u8..,
        ) {
            let mut value = vec![0; bytes];
            fill_value(key, version, &mut value);
            prop_assert_eq!(check_value(key, version, &value), Ok(()));
            prop_assert_eq!(version_of(key, &value), (bytes >= WORD).then_some(version));
            let at = at.index(bytes);
            value[at] ^= flip;
            let offset = at / WORD * WORD;
            prop_assert_eq!(
                check_value(key, version, &value),
                Err(ContentsError { key, version, offset })
            );
        }
    }

    #[test]
    fn another_key_and_another_version_do_not_pass() {
        let mut value = [0; 64];
        fill_value(1, 2, &mut value);
        assert!(check_value(1, 3, &value).is_err() && check_value(2, 2, &value).is_err());
        assert!(version_of(2, &value).unwrap() > 1 << 32);
    }
}
