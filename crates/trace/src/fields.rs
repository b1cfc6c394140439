//! Splitting of a line into fields, as bytes without copies.

use crate::malformed::{FieldError, Problem};

/// Bytes of a sector, the unit of addresses in several formats.
pub(crate) const SECTOR_BYTES: u64 = 512;

type Parsed<T> = Result<T, FieldError>;

/// The rest of a line whose fields are separated by commas.
pub(crate) struct Commas<'a> {
    /// `None` after the last field.
    rest: Option<&'a [u8]>,
}

impl<'a> Commas<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Commas<'a> {
        Commas { rest: Some(line) }
    }

    /// The next field, without blanks around it.
    #[inline]
    pub(crate) fn next(&mut self, field: &'static str) -> Parsed<&'a [u8]> {
        let rest = self.rest.ok_or(Problem::Missing.of(field))?;
        // Fields are short: a loop over the bytes is faster than the call of a search.
        let end = rest.iter().position(|&byte| byte == b',');
        let (found, rest) = match end {
            Some(end) => (rest.get(..end).unwrap_or_default(), rest.get(end + 1..)),
            None => (rest, None),
        };
        self.rest = rest;
        Ok(found.trim_ascii())
    }

    /// The next field, a number.
    #[inline]
    pub(crate) fn number(&mut self, field: &'static str) -> Parsed<u64> {
        number(self.next(field)?, field)
    }

    /// The next field, a number that counts sectors, as bytes.
    #[inline]
    pub(crate) fn sectors(&mut self, field: &'static str) -> Parsed<u64> {
        bytes_of_sectors(self.number(field)?, field)
    }

    /// The next field, the number of a device.
    #[inline]
    pub(crate) fn device(&mut self, field: &'static str) -> Parsed<u32> {
        u32::try_from(self.number(field)?).map_err(|_| Problem::TooLarge.of(field))
    }

    /// Whether there is another field.
    pub(crate) fn more(&self) -> bool {
        self.rest.is_some()
    }

    /// Checks that no field is left.
    #[inline]
    pub(crate) fn end(&self) -> Parsed<()> {
        if self.more() { Err(Problem::Extra.of("line")) } else { Ok(()) }
    }
}

/// The rest of a line whose fields are separated by blanks.
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Words<'a> {
        Words { rest: line }
    }

    /// The next word; `None` at the end of the line.
    #[inline]
    pub(crate) fn word(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| !is_blank(*byte))?;
        let rest = self.rest.get(start..)?;
        let end = rest.iter().position(|byte| is_blank(*byte)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at_checked(end)?;
        self.rest = rest;
        Some(word)
    }

    /// The next word, which must be there.
    #[inline]
    pub(crate) fn next(&mut self, field: &'static str) -> Parsed<&'a [u8]> {
        self.word().ok_or(Problem::Missing.of(field))
    }

    /// The next word, a number.
    #[inline]
    pub(crate) fn number(&mut self, field: &'static str) -> Parsed<u64> {
        number(self.next(field)?, field)
    }

    /// The next word, a number that counts sectors, as bytes.
    #[inline]
    pub(crate) fn sectors(&mut self, field: &'static str) -> Parsed<u64> {
        bytes_of_sectors(self.number(field)?, field)
    }

    /// Checks that no word is left.
    #[inline]
    pub(crate) fn end(&mut self) -> Parsed<()> {
        if self.word().is_some() { Err(Problem::Extra.of("line")) } else { Ok(()) }
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn bytes_of_sectors(sectors: u64, field: &'static str) -> Parsed<u64> {
    sectors.checked_mul(SECTOR_BYTES).ok_or(Problem::TooLarge.of(field))
}

/// Digits that cannot overflow 64 bits.
const SAFE_DIGITS: usize = 19;

/// A decimal number, of digits only.
#[inline]
pub(crate) fn number(text: &[u8], field: &'static str) -> Parsed<u64> {
    let mut value: u64 = 0;
    if text.is_empty() {
        return Err(Problem::NotANumber.of(field));
    }
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(Problem::NotANumber.of(field));
        }
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    if text.len() <= SAFE_DIGITS { Ok(value) } else { long_number(text, field) }
}

/// As [`number`], for digits that may overflow.
#[cold]
fn long_number(digits: &[u8], field: &'static str) -> Parsed<u64> {
    let mut value: u64 = 0;
    for byte in digits {
        value = value
            .checked_mul(10)
            .and_then(|value| value.checked_add(u64::from(byte.wrapping_sub(b'0'))))
            .ok_or(Problem::TooLarge.of(field))?;
    }
    Ok(value)
}

/// A hexadecimal number of at most 8 digits.
pub(crate) fn hexadecimal(text: &[u8]) -> Option<u32> {
    if text.is_empty() || text.len() > 8 {
        return None;
    }
    text.iter().try_fold(0_u32, |value, byte| Some((value << 4) | char::from(*byte).to_digit(16)?))
}

/// Appends a decimal number.
#[inline]
pub(crate) fn put(line: &mut Vec<u8>, value: u64) {
    line.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// Appends numbers with a separator before each but the first.
#[inline]
pub(crate) fn put_all(line: &mut Vec<u8>, separator: u8, values: &[u64]) {
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            line.push(separator);
        }
        put(line, *value);
    }
}

/// First sector and number of sectors that hold a range: rounded outward.
#[inline]
pub(crate) fn sectors_of(offset_bytes: u64, bytes: u64) -> (u64, u64) {
    let first = offset_bytes / SECTOR_BYTES;
    let end = offset_bytes.saturating_add(bytes).div_ceil(SECTOR_BYTES);
    (first, if bytes == 0 { 0 } else { end - first })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_that_fit() {
        assert_eq!(number(b"0", "x"), Ok(0));
        assert_eq!(number(b"18446744073709551615", "x"), Ok(u64::MAX));
        assert_eq!(number(b"000000000000000000000000007", "x"), Ok(7));
        assert_eq!(number(b"18446744073709551616", "x"), Err(Problem::TooLarge.of("x")));
        for text in ["", "-1", "+1", "1.0", "0x1", " 1", "1e3", "\u{664}"] {
            assert_eq!(number(text.as_bytes(), "x"), Err(Problem::NotANumber.of("x")), "{text}");
        }
    }

    #[test]
    fn commas_and_words_cut_and_know_the_end() {
        let mut fields = Commas::new(b"1, b ,,");
        assert_eq!(fields.number("one"), Ok(1));
        assert_eq!(fields.next("two"), Ok(&b"b"[..]));
        assert_eq!(fields.next("three"), Ok(&b""[..]));
        assert_eq!(fields.end(), Err(Problem::Extra.of("line")));
        assert_eq!(fields.next("four"), Ok(&b""[..]));
        assert_eq!(fields.next("five"), Err(Problem::Missing.of("five")));
        let mut words = Words::new(b"  a\tb ");
        assert_eq!(
            (words.word(), words.word(), words.word()),
            (Some(&b"a"[..]), Some(&b"b"[..]), None)
        );
    }

    #[test]
    fn sectors_cover_what_they_stand_for() {
        assert_eq!(sectors_of(512, 1024), (1, 2));
        assert_eq!(sectors_of(511, 2), (0, 2));
        assert_eq!(sectors_of(5000, 0), (9, 0));
        assert_eq!(sectors_of(u64::MAX - 1, 1), (u64::MAX / 512, 1));
    }
}
