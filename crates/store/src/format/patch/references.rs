//! The references of a patch: where the separated values of its keys are. The table stays in
//! memory, so that a read of a separated value needs no read of the tree, and a write knows at once
//! which value it supersedes.

use crate::format::FormatError;
use crate::format::codec::Reader;
use crate::format::record::Fields;
use crate::format::reference::{REFERENCE_BYTES, Reference};
use softflash_base::cast::low_u32;
use softflash_base::checksum::{checksum64, hash64};

/// Bytes of an encoded entry.
pub const ENTRY_BYTES: usize = 32 + REFERENCE_BYTES;

const WHAT: &str = "the references of a patch";

/// A key by two hashes, 96 bits together: keys with equal hashes do not occur in practice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyHashes {
    /// As for the filter.
    pub hash: u64,
    /// An independent one.
    pub check: u32,
}

impl KeyHashes {
    /// The hashes of a key.
    pub fn of(key: &[u8]) -> KeyHashes {
        KeyHashes { hash: hash64(key), check: low_u32(checksum64(0x7265_6665_7265_6e63, key)) }
    }
}

/// The reference to a value, or to a fragment of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReferenceEntry {
    /// The key.
    pub key: KeyHashes,
    /// The sequence number of the record.
    pub seq: u64,
    /// The number of the fragment, from 0.
    pub fragment: u16,
    /// Fragments of the value.
    pub fragments: u16,
    /// When the value expires, in milliseconds since the Unix epoch; 0 for never.
    pub expires_at_ms: u64,
    /// The place.
    pub reference: Reference,
}

impl ReferenceEntry {
    /// The entry of a record; `None` where it has no reference.
    pub(super) fn of(fields: &Fields<'_>) -> Option<ReferenceEntry> {
        let reference = fields.reference.then(|| Reference::decode(fields.value)).flatten()?;
        Some(ReferenceEntry {
            key: KeyHashes::of(fields.key),
            seq: fields.seq,
            fragment: fields.fragment,
            fragments: fields.fragments,
            expires_at_ms: fields.expires_at_ms,
            reference,
        })
    }
}

/// The references of the newest version of each key of a patch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReferenceTable(Box<[ReferenceEntry]>);

impl ReferenceTable {
    /// A table of these entries.
    pub(super) fn new(mut entries: Vec<ReferenceEntry>) -> ReferenceTable {
        entries.sort_unstable();
        ReferenceTable(entries.into())
    }

    /// The entries of a key, in order of their fragments.
    pub fn find(&self, key: KeyHashes) -> &[ReferenceEntry] {
        let start = self.0.partition_point(|entry| entry.key < key);
        let rest = self.0.get(start..).unwrap_or_default();
        let len = rest.partition_point(|entry| entry.key == key);
        rest.get(..len).unwrap_or_default()
    }

    /// All entries.
    pub fn entries(&self) -> &[ReferenceEntry] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for entry in &self.0 {
            out.extend_from_slice(&entry.key.hash.to_le_bytes());
            out.extend_from_slice(&entry.key.check.to_le_bytes());
            out.extend_from_slice(&entry.fragment.to_le_bytes());
            out.extend_from_slice(&entry.fragments.to_le_bytes());
            out.extend_from_slice(&entry.seq.to_le_bytes());
            out.extend_from_slice(&entry.expires_at_ms.to_le_bytes());
            out.extend_from_slice(entry.reference.bytes());
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<ReferenceTable, FormatError> {
        let mut reader = Reader::new(bytes, WHAT);
        let mut entries = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
        while reader.remaining() > 0 {
            let (hash, check) = (reader.u64()?, reader.u32()?);
            let (fragment, fragments) = (reader.u16()?, reader.u16()?);
            let (seq, expires_at_ms) = (reader.u64()?, reader.u64()?);
            let reference = Reference::decode(reader.take(REFERENCE_BYTES)?)
                .ok_or_else(|| reader.malformed("a reference has another length"))?;
            let key = KeyHashes { hash, check };
            entries.push(ReferenceEntry {
                key,
                seq,
                fragment,
                fragments,
                expires_at_ms,
                reference,
            });
        }
        if !entries.is_sorted_by(|a, b| a < b) {
            return Err(reader.malformed("its entries are not in order"));
        }
        Ok(ReferenceTable(entries.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &[u8], fragment: u16) -> ReferenceEntry {
        ReferenceEntry {
            key: KeyHashes::of(key),
            seq: 9,
            fragment,
            fragments: 2,
            expires_at_ms: 5,
            reference: Reference::new(3, u32::from(fragment), 7, 11),
        }
    }

    #[test]
    fn entries_are_found_by_key_in_order_of_fragments() {
        let table = ReferenceTable::new(vec![
            entry(b"b", 1),
            entry(b"a", 0),
            entry(b"b", 0),
            entry(b"a", 1),
        ]);
        assert_eq!(table.find(KeyHashes::of(b"b")), [entry(b"b", 0), entry(b"b", 1)]);
        assert_eq!(table.find(KeyHashes::of(b"c")), []);
        let mut bytes = Vec::new();
        table.encode(&mut bytes);
        assert_eq!(bytes.len(), 4 * ENTRY_BYTES);
        assert_eq!(ReferenceTable::decode(&bytes), Ok(table));
        assert!(ReferenceTable::decode(&bytes[..100]).is_err());
        bytes.rotate_left(ENTRY_BYTES);
        assert!(ReferenceTable::decode(&bytes).is_err());
    }
}
