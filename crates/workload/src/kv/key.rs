//! Keys from numbers.

use crate::error::Problem;
use smallvec::SmallVec;

/// A key. Short ones need no allocation.
pub type Key = SmallVec<[u8; 32]>;

/// Makes the keys of a slice: a prefix, and the number in decimal digits with leading zeros, so
/// that keys are in the order of their numbers. A prefix such as `{tag}` maps all keys of a slice
/// to one slot.
#[derive(Debug, Clone)]
pub struct KeyMaker {
    /// The key of number 0.
    zero: Key,
    prefix_bytes: usize,
}

impl KeyMaker {
    /// Keys of `key_bytes` bytes, numbered from 0 to below `keys`.
    pub fn new(prefix: &[u8], key_bytes: u32, keys: u64) -> Result<KeyMaker, Problem> {
        let digits = keys.saturating_sub(1).max(1).ilog10() + 1;
        let prefix_bytes = prefix.len();
        if (key_bytes as usize) < prefix_bytes.saturating_add(digits as usize) {
            let prefix_bytes = u32::try_from(prefix_bytes).unwrap_or(u32::MAX);
            return Err(Problem::KeyTooShort { key_bytes, prefix_bytes, digits, keys });
        }
        let mut zero = Key::from_slice(prefix);
        zero.resize(key_bytes as usize, b'0');
        Ok(KeyMaker { zero, prefix_bytes })
    }

    /// The key of a number. A number with too many digits loses its leading digits.
    pub fn key(&self, number: u64) -> Key {
        let mut key = self.zero.clone();
        let mut left = number;
        for digit in key.iter_mut().skip(self.prefix_bytes).rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        key
    }

    /// The number of a key from this key maker; `None` for any other key.
    pub fn number(&self, key: &[u8]) -> Option<u64> {
        let (prefix, digits) = key.split_at_checked(self.prefix_bytes)?;
        if key.len() != self.zero.len() || !self.zero.starts_with(prefix) {
            return None;
        }
        digits.iter().try_fold(0_u64, |number, digit| {
            let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_have_the_length_and_the_prefix() {
        let maker = KeyMaker::new(b"{s7}", 16, 1000).unwrap();
        assert_eq!(&maker.key(999)[..], b"{s7}000000000999");
        assert_eq!(maker.number(b"{s7}000000000999"), Some(999));
        for strange in [&b"{s8}000000000999"[..], b"{s7}00000000099", b"{s7}00000000099x", b"{s7"] {
            assert_eq!(maker.number(strange), None);
        }
    }

    #[test]
    fn a_key_too_short_says_how_long_it_must_be() {
        assert!(KeyMaker::new(b"{s7}", 7, 1000).is_ok());
        let error = KeyMaker::new(b"{s7}", 7, 1001).unwrap_err().to_string();
        assert!(error.contains("at least 8"), "{error}");
    }

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_their_numbers(
            one: u64,
            other: u64,
            key_bytes in 22_u32..64,
        ) {
            let maker = KeyMaker::new(b"k:", key_bytes, u64::MAX).unwrap();
            prop_assert_eq!(maker.key(one).cmp(&maker.key(other)), one.cmp(&other));
            prop_assert_eq!(maker.number(&maker.key(one)), Some(one));
            prop_assert_eq!(maker.key(one).len(), key_bytes as usize);
        }
    }
}
