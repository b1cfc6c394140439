//! Values in value blocks: a header, the key, and the value or a fragment of it.

use super::codec::{Reader, put_at};
use super::reference::Reference;
use super::{Domain, FormatError, seed};
use crate::format::record::MAX_FRAGMENT_BYTES;
use crate::value::MAX_KEY_BYTES;
use bytes::Bytes;
use softflash_base::cast::{index, saturating_u32, wide};
use softflash_base::checksum64;

/// Bytes in front of the key.
pub const VALUE_HEADER_BYTES: usize = 56;
/// The version of the format that this program writes.
pub const VERSION: u8 = 1;

const MAGIC: u32 = u32::from_le_bytes(*b"SFVL");
const WHAT: &str = "a value in a value block";

/// A value, or a fragment of one, with the facts that its header records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredValue {
    /// The key.
    pub key: Bytes,
    /// The sequence number of the write that stored it first.
    pub seq: u64,
    /// When it expires, in milliseconds since the Unix epoch; 0 for never.
    pub expires_at_ms: u64,
    /// The number of the fragment, from 0.
    pub fragment: u16,
    /// Fragments of the value; at least 1.
    pub fragments: u16,
    /// The value or fragment.
    pub value: Bytes,
    /// The checksum of key and value, as [`checksum_of`] computes it.
    pub checksum: u64,
}

/// The checksum of a key and its value, which the value keeps wherever it is moved.
pub fn checksum_of(key: &[u8], value: &[u8]) -> u64 {
    checksum64(checksum64(Domain::Value as u64, key), value)
}

/// Bytes of a value in a value block.
pub fn stored_len(key_len: usize, value_len: usize) -> usize {
    VALUE_HEADER_BYTES + key_len + value_len
}

/// As a [`StoredValue`], in the bytes from which it was read: a value can be copied from block to
/// block without any other copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueBytes<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The sequence number of the write that stored it first.
    pub seq: u64,
    /// When it expires, in milliseconds since the Unix epoch; 0 for never.
    pub expires_at_ms: u64,
    /// The number of the fragment, from 0.
    pub fragment: u16,
    /// Fragments of the value; at least 1.
    pub fragments: u16,
    /// The value or fragment.
    pub value: &'a [u8],
    /// The checksum of key and value, as [`checksum_of`] computes it.
    pub checksum: u64,
}

impl<'a> ValueBytes<'a> {
    /// Bytes in the value block.
    pub fn stored_len(&self) -> usize {
        stored_len(self.key.len(), self.value.len())
    }

    /// Writes the value at the start of `out`, which has [`stored_len`] bytes and is at `offset` of
    /// the block with this identity.
    pub fn encode(&self, identity: u64, offset: u32, out: &mut [u8]) {
        let key_end = VALUE_HEADER_BYTES + self.key.len();
        put_at(out, 8, &MAGIC.to_le_bytes());
        put_at(out, 12, &[VERSION, 0]);
        put_at(out, 14, &self.fragment.to_le_bytes());
        put_at(out, 16, &self.fragments.to_le_bytes());
        put_at(out, 18, &[0; 2]);
        put_at(out, 20, &saturating_u32(self.key.len()).to_le_bytes());
        put_at(out, 24, &saturating_u32(self.value.len()).to_le_bytes());
        put_at(out, 28, &[0; 4]);
        put_at(out, 32, &self.seq.to_le_bytes());
        put_at(out, 40, &self.expires_at_ms.to_le_bytes());
        put_at(out, 48, &self.checksum.to_le_bytes());
        put_at(out, VALUE_HEADER_BYTES, self.key);
        put_at(out, key_end, self.value);
        let covered = out.get(8..key_end).unwrap_or_default();
        let sum = checksum64(seed(identity, Domain::ValueHeader, offset.into()), covered);
        put_at(out, 0, &sum.to_le_bytes());
    }

    /// Decodes and verifies the value at the start of `bytes`, which are at `offset` of the block
    /// with this identity.
    ///
    /// # Errors
    /// [`FormatError`] where the bytes are damaged, from another place, or of a newer version.
    pub fn decode(
        bytes: &'a [u8],
        identity: u64,
        offset: u32,
    ) -> Result<ValueBytes<'a>, FormatError> {
        let mut reader = Reader::new(bytes, WHAT);
        let sum = reader.u64()?;
        if reader.u32()? != MAGIC {
            return Err(FormatError::NotFound { what: "value header" });
        }
        let (version, reserved) = (reader.u8()?, reader.u8()?);
        let (fragment, fragments, also_reserved) = (reader.u16()?, reader.u16()?, reader.u16()?);
        let (key_len, value_len) = (index(reader.u32()?), index(reader.u32()?));
        let last_reserved = reader.u32()?;
        let (seq, expires_at_ms, checksum) = (reader.u64()?, reader.u64()?, reader.u64()?);
        if key_len > MAX_KEY_BYTES || value_len > MAX_FRAGMENT_BYTES {
            return Err(reader.malformed("its key or its value exceeds the limit"));
        }
        let (key, value) = (reader.take(key_len)?, reader.take(value_len)?);
        let covered = bytes.get(8..VALUE_HEADER_BYTES + key_len).unwrap_or_default();
        if sum != checksum64(seed(identity, Domain::ValueHeader, offset.into()), covered) {
            return Err(FormatError::Checksum { what: WHAT });
        }
        if version != VERSION {
            return Err(FormatError::Version {
                what: "a value block",
                found: version.into(),
                known: VERSION.into(),
            });
        }
        if reserved != 0 || also_reserved != 0 || last_reserved != 0 {
            return Err(reader.malformed("a reserved byte is not zero"));
        }
        if fragment >= fragments {
            return Err(reader.malformed("its fragment number is not below the count"));
        }
        if checksum_of(key, value) != checksum {
            return Err(FormatError::Checksum { what: WHAT });
        }
        Ok(ValueBytes { key, seq, expires_at_ms, fragment, fragments, value, checksum })
    }
}

impl StoredValue {
    /// The same, borrowed.
    pub fn as_bytes(&self) -> ValueBytes<'_> {
        ValueBytes {
            key: &self.key,
            seq: self.seq,
            expires_at_ms: self.expires_at_ms,
            fragment: self.fragment,
            fragments: self.fragments,
            value: &self.value,
            checksum: self.checksum,
        }
    }

    /// Bytes in the value block.
    pub fn stored_len(&self) -> usize {
        stored_len(self.key.len(), self.value.len())
    }

    /// Decodes and verifies the value at the start of `bytes`, without a copy.
    ///
    /// # Errors
    /// As [`ValueBytes::decode`].
    pub fn decode(bytes: &Bytes, identity: u64, offset: u32) -> Result<StoredValue, FormatError> {
        let found = ValueBytes::decode(bytes, identity, offset)?;
        Ok(StoredValue {
            key: bytes.slice_ref(found.key),
            seq: found.seq,
            expires_at_ms: found.expires_at_ms,
            fragment: found.fragment,
            fragments: found.fragments,
            value: bytes.slice_ref(found.value),
            checksum: found.checksum,
        })
    }

    /// Decodes the value that `reference` names, and verifies that it is the one of `key`.
    ///
    /// # Errors
    /// As [`decode`](StoredValue::decode), and [`FormatError::Checksum`] where it is another value.
    pub fn decode_as(
        bytes: &Bytes,
        identity: u64,
        reference: &Reference,
        key: &[u8],
    ) -> Result<StoredValue, FormatError> {
        let stored = StoredValue::decode(bytes, identity, reference.offset())?;
        let is_named = stored.key == key
            && wide(stored.stored_len()) == u64::from(reference.len())
            && stored.checksum == reference.checksum();
        if is_named { Ok(stored) } else { Err(FormatError::Checksum { what: WHAT }) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored() -> StoredValue {
        let (key, value) = (Bytes::from_static(b"key"), Bytes::from_static(b"the value"));
        let checksum = checksum_of(&key, &value);
        StoredValue { key, seq: 7, expires_at_ms: 9, fragment: 1, fragments: 3, value, checksum }
    }

    fn encoded(identity: u64, offset: u32) -> Vec<u8> {
        let stored = stored();
        let mut out = vec![0; stored_len(stored.key.len(), stored.value.len())];
        stored.as_bytes().encode(identity, offset, &mut out);
        out
    }

    #[test]
    fn a_value_decodes_only_at_its_place() {
        let bytes = Bytes::from(encoded(5, 4096));
        assert_eq!(StoredValue::decode(&bytes, 5, 4096), Ok(stored()));
        assert!(StoredValue::decode(&bytes, 6, 4096).is_err());
        assert!(StoredValue::decode(&bytes, 5, 4095).is_err());
    }

    #[test]
    fn every_changed_byte_and_every_shorter_input_is_refused() {
        let whole = encoded(5, 0);
        for place in 0..whole.len() {
            let mut changed = whole.clone();
            changed[place] ^= 0x40;
            assert!(StoredValue::decode(&changed.into(), 5, 0).is_err(), "byte {place}");
            let shorter = Bytes::copy_from_slice(&whole[..place]);
            assert!(StoredValue::decode(&shorter, 5, 0).is_err(), "{place} bytes");
        }
    }

    #[test]
    fn version_1_has_these_bytes() {
        let bytes = encoded(5, 0);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            &hex[16..96],
            "5346564c01000100030000000300000009000000000000000700000000000000\
             0900000000000000"
        );
        assert_eq!(&bytes[VALUE_HEADER_BYTES..], b"keythe value");
    }

    #[test]
    fn a_reference_names_one_value() {
        let bytes = Bytes::from(encoded(5, 0));
        let checksum = checksum_of(b"key", b"the value");
        let named = |reference, key: &[u8]| StoredValue::decode_as(&bytes, 5, &reference, key);
        assert_eq!(named(Reference::new(1, 0, 68, checksum), b"key"), Ok(stored()));
        assert!(named(Reference::new(1, 0, 68, checksum), b"kez").is_err());
        assert!(named(Reference::new(1, 0, 67, checksum), b"key").is_err());
        assert!(named(Reference::new(1, 0, 68, checksum + 1), b"key").is_err());
    }
}
