//! Versions: the value or deletion that a write gives a key, sealed when it enters the store.
//!
//! Log, memtable and patches keep the checksums that a version got on entry, so that the next read
//! detects damage, also damage in memory.

use super::FormatError;
use super::record::{Body, Fields, MAX_FRAGMENT_BYTES, Record, fragments_of};
use crate::value::{Entry, Value};
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::cast::saturating_u16;

/// One version of a key, with the checksums that it got when it entered the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its sequence number.
    pub seq: u64,
    /// The value, in fragments as they are stored; `None` for a deletion.
    pub entry: Option<Entry>,
    /// One for each fragment, or one for the deletion.
    checksums: Checksums,
}

/// Checksums of a version's records.
pub type Checksums = SmallVec<[u64; 1]>;

impl Version {
    /// Seals a version on entry to the store: cuts the value into fragments and computes their
    /// checksums.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for a key or value over its limit.
    pub fn seal(key: &Bytes, seq: u64, entry: Option<Entry>) -> Result<Version, FormatError> {
        Version::seal_in(key, seq, entry, MAX_FRAGMENT_BYTES)
    }

    /// As [`seal`](Version::seal), in fragments of at most `longest` bytes.
    ///
    /// # Errors
    /// As [`seal`](Version::seal).
    pub fn seal_in(
        key: &Bytes,
        seq: u64,
        entry: Option<Entry>,
        longest: usize,
    ) -> Result<Version, FormatError> {
        let entry = match entry {
            Some(entry) if !is_cut(&entry.value, longest) => {
                let value = Value::from_fragments(fragments_of(&entry, longest)?);
                Some(Entry { value, ..entry })
            }
            kept => kept,
        };
        let mut version = Version { seq, entry, checksums: Checksums::new() };
        // From borrowed fields: a record would clone the handles of key and value, which costs more
        // than the checksum.
        let checksums: Result<Checksums, FormatError> = version
            .fields(key)
            .map(|fields| fields.check_limits().map(|()| fields.checksum()))
            .collect();
        version.checksums = checksums?;
        Ok(version)
    }

    /// A version that was sealed before.
    pub fn sealed(seq: u64, entry: Option<Entry>, checksums: Checksums) -> Version {
        Version { seq, entry, checksums }
    }

    /// The checksums of its records.
    pub fn checksums(&self) -> &[u64] {
        &self.checksums
    }

    /// Its records: one, or one for each fragment of a large value.
    pub fn records<'a>(&'a self, key: &'a Bytes) -> impl Iterator<Item = Record> + 'a {
        self.bodies()
            .zip(&self.checksums)
            .map(|(body, checksum)| Record::sealed(key.clone(), self.seq, body, *checksum))
    }

    fn fields<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = Fields<'a>> {
        let values = self.entry.as_ref().map_or(&[][..], |entry| entry.value.fragments());
        let fragments = saturating_u16(values.len());
        let expires_at_ms = self.entry.as_ref().map_or(0, |entry| entry.expires_at_ms);
        let puts = values.iter().zip(0..).map(move |(value, fragment)| Fields {
            key,
            seq: self.seq,
            put: true,
            expires_at_ms,
            fragment,
            fragments,
            value,
        });
        puts.chain(self.entry.is_none().then(|| Fields::delete(key, self.seq)))
    }

    fn bodies(&self) -> impl Iterator<Item = Body> {
        let values = self.entry.as_ref().map_or(&[][..], |entry| entry.value.fragments());
        let fragments = saturating_u16(values.len());
        let expires_at_ms = self.entry.as_ref().map_or(0, |entry| entry.expires_at_ms);
        let puts = values.iter().cloned().zip(0..).map(move |(value, fragment)| Body::Put {
            value,
            expires_at_ms,
            fragment,
            fragments,
        });
        puts.chain(self.entry.is_none().then_some(Body::Delete))
    }
}

/// Whether a value is one piece that can be stored unchanged.
fn is_cut(value: &Value, longest: usize) -> bool {
    matches!(value.fragments(), [one] if one.len() <= longest.min(MAX_FRAGMENT_BYTES))
}
