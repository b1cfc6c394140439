//! References: the place, the length and the checksum of a separated value.

use super::codec::put_at;
use softflash_base::cast::index;

/// Bytes of an encoded reference.
pub const REFERENCE_BYTES: usize = 24;

/// The place of a value, or of a fragment of one, in a value block. It is kept encoded, so that a
/// record can borrow its bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Reference([u8; REFERENCE_BYTES]);

impl Reference {
    /// A stored value of `len` bytes, header and key included, at `offset` of `block`, with this
    /// checksum.
    pub fn new(block: u64, offset: u32, len: u32, checksum: u64) -> Reference {
        let mut bytes = [0; REFERENCE_BYTES];
        put_at(&mut bytes, 0, &block.to_le_bytes());
        put_at(&mut bytes, 8, &offset.to_le_bytes());
        put_at(&mut bytes, 12, &len.to_le_bytes());
        put_at(&mut bytes, 16, &checksum.to_le_bytes());
        Reference(bytes)
    }

    /// Decodes a reference; `None` for another number of bytes.
    pub fn decode(bytes: &[u8]) -> Option<Reference> {
        bytes.try_into().ok().map(Reference)
    }

    /// The encoded reference.
    pub fn bytes(&self) -> &[u8; REFERENCE_BYTES] {
        &self.0
    }

    /// The value block.
    pub fn block(&self) -> u64 {
        self.word(0)
    }

    /// The byte offset of the value's header in the block.
    pub fn offset(&self) -> u32 {
        self.half(8)
    }

    /// Bytes of the stored value: header, key, and the value or fragment.
    pub fn len(&self) -> u32 {
        self.half(12)
    }

    /// Always false: a stored value has a header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that it occupies in the block.
    pub fn range(&self) -> std::ops::Range<usize> {
        index(self.offset())..index(self.offset()) + index(self.len())
    }

    /// The checksum of key and value.
    pub fn checksum(&self) -> u64 {
        self.word(16)
    }

    fn word(&self, at: usize) -> u64 {
        let bytes = self.0.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    }

    fn half(&self, at: usize) -> u32 {
        let bytes = self.0.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    }
}

impl std::fmt::Debug for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (block, offset, len) = (self.block(), self.offset(), self.len());
        write!(f, "{len} bytes at {offset} of block {block:#x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_has_these_bytes() {
        let reference = Reference::new(0x0102, 0x0304, 0x0506, 0x0708);
        let expected = [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 6, 5, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0];
        assert_eq!(reference.bytes(), &expected);
        assert_eq!(Reference::decode(&expected), Some(reference));
        assert_eq!((reference.block(), reference.offset()), (0x0102, 0x0304));
        assert_eq!((reference.len(), reference.checksum()), (0x0506, 0x0708));
        assert_eq!(Reference::decode(&expected[1..]), None);
    }
}
