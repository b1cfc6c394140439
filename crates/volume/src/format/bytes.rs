//! Reads and writes little-endian numbers and strings; a read past the end is `None`.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use softflash_base::cast;

/// Reads from the front of some bytes.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(front)
    }

    pub fn u8(&mut self) -> Option<u8> {
        Some(u8::from_le_bytes(self.take(1)?.try_into().ok()?))
    }

    pub fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A string behind its length of 16 bits.
    pub fn text(&mut self) -> Option<String> {
        let bytes = self.u16()?;
        let text = self.take(cast::index(u32::from(bytes)))?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// A count of 32 bits, if as many elements of `element_bytes` can follow.
    pub fn count(&mut self, element_bytes: usize) -> Option<usize> {
        let count = cast::index(self.u32()?);
        (count.checked_mul(element_bytes)? <= self.0.len()).then_some(count)
    }
}

/// Appends numbers and strings.
pub(crate) trait Append {
    fn add(&mut self, bytes: &[u8]);

    fn add_u8(&mut self, value: u8) {
        self.add(&[value]);
    }

    fn add_u16(&mut self, value: u16) {
        self.add(&value.to_le_bytes());
    }

    fn add_u32(&mut self, value: u32) {
        self.add(&value.to_le_bytes());
    }

    fn add_u64(&mut self, value: u64) {
        self.add(&value.to_le_bytes());
    }

    /// A string behind its length. Longer ones than 65 535 bytes are cut; names are far shorter.
    fn add_text(&mut self, text: &str) {
        let bytes = cast::saturating_u16(text.len());
        self.add_u16(bytes);
        self.add(text.as_bytes().get(..cast::index(bytes.into())).unwrap_or_default());
    }

    /// A count of elements.
    fn add_count(&mut self, count: usize) {
        self.add_u32(cast::saturating_u32(count));
    }
}

impl Append for Vec<u8> {
    fn add(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
