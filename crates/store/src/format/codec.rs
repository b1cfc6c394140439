//! Encoding of integers: little-endian where the width is fixed, LEB128 varints where small values
//! are common.

use super::FormatError;
use softflash_base::cast::{index, low_u8};
use std::ops::Range;

/// The most bytes of a varint.
pub const MAX_VARINT_BYTES: usize = 10;

/// Appends `value` as a varint: seven bits a byte, lowest first, the top bit set on all but the
/// last.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_u8(value) | 0x80);
        value >>= 7;
    }
    out.push(low_u8(value));
}

/// Bytes of `value` as a varint.
pub fn varint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros();
    index(bits.div_ceil(7))
}

/// Writes `bytes` at `at` of a fixed-size header.
pub(crate) fn put_at(out: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(place) = out.get_mut(at..at + bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Reads integers and ranges from untrusted bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`; `what` names the structure in errors.
    pub fn new(bytes: &'a [u8], what: &'static str) -> Reader<'a> {
        Reader { bytes, at: 0, what }
    }

    /// A reader that starts at `at`.
    pub fn starting_at(bytes: &'a [u8], at: usize, what: &'static str) -> Reader<'a> {
        Reader { bytes, at: at.min(bytes.len()), what }
    }

    /// Bytes left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The error that names a broken rule of the structure.
    pub fn malformed(&self, reason: &'static str) -> FormatError {
        FormatError::Malformed { what: self.what, reason }
    }

    /// Skips the next `len` bytes and returns their place.
    pub fn range(&mut self, len: usize) -> Result<Range<usize>, FormatError> {
        if len > self.remaining() {
            return Err(FormatError::Truncated { what: self.what });
        }
        let range = self.at..self.at + len;
        self.at = range.end;
        Ok(range)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let range = self.range(len)?;
        self.bytes.get(range).ok_or(FormatError::Truncated { what: self.what })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let truncated = FormatError::Truncated { what: self.what };
        self.take(N)?.try_into().map_err(|_| truncated)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A varint in its shortest form.
    pub fn varint(&mut self) -> Result<u64, FormatError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if let Some(&first) = rest.first()
            && first < 0x80
        {
            self.at += 1;
            return Ok(u64::from(first));
        }
        let mut value = 0u64;
        for (place, byte) in (0u32..).zip(rest.iter().take(MAX_VARINT_BYTES)) {
            let bits = u64::from(byte & 0x7f);
            let shift = 7 * place;
            if (bits << shift) >> shift != bits {
                return Err(self.malformed("a number exceeds 64 bits"));
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                if *byte == 0 && place > 0 {
                    return Err(self.malformed("a number is not in its shortest form"));
                }
                self.at += index(place) + 1;
                return Ok(value);
            }
        }
        if rest.len() < MAX_VARINT_BYTES {
            Err(FormatError::Truncated { what: self.what })
        } else {
            Err(self.malformed("a number exceeds 64 bits"))
        }
    }

    /// A varint that fits the narrower type.
    pub fn varint_as<T: TryFrom<u64>>(&mut self) -> Result<T, FormatError> {
        let value = self.varint()?;
        T::try_from(value).map_err(|_| self.malformed("a number is out of range"))
    }

    /// Fails if bytes are left over.
    pub fn expect_end(&self) -> Result<(), FormatError> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.malformed("bytes are left over")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_back_at_every_width() {
        for bits in 0..=64u32 {
            let top = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            for value in [top, top.wrapping_add(1), top / 3] {
                let mut out = Vec::new();
                put_varint(&mut out, value);
                assert_eq!(out.len(), varint_len(value), "{value}");
                let mut reader = Reader::new(&out, "test");
                assert_eq!(reader.varint(), Ok(value));
                assert_eq!(reader.expect_end(), Ok(()));
                let cut = &out[..out.len() - 1];
                assert!(Reader::new(cut, "test").varint().is_err(), "{value} cut short");
            }
        }
    }

    #[test]
    fn long_forms_and_overflows_are_refused() {
        for bytes in [&[0x80, 0][..], &[0xff, 0x80, 0], &[0xff; 11], &{
            let mut over = [0xff; 10];
            over[9] = 2;
            over
        }] {
            assert!(Reader::new(bytes, "test").varint().is_err(), "{bytes:x?}");
        }
    }
}
