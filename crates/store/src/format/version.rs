//! Versions: what a key maps to from one write on, sealed when it enters the store.
//!
//! Log, memtable and patches pass a version on with the checksums that it got at the door, so that damage on the way,
//! in memory too, is found by whoever reads it next.

use super::FormatError;
use super::record::{Body, Record, fragments_of};
use crate::value::{Entry, Value};
use bytes::Bytes;
use smallvec::SmallVec;

/// One version of a key, with the checksums that it got when it entered the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its sequence number.
    pub seq: u64,
    /// What the key maps to, in fragments as they are stored; `None` where it is deleted.
    pub entry: Option<Entry>,
    /// One for each fragment, or one for the deletion.
    checksums: Checksums,
}

/// Checksums of a version's records.
pub type Checksums = SmallVec<[u64; 1]>;

impl Version {
    /// A version on its way into the store: cuts the value into fragments and seals each.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for a key or value over its limit.
    pub fn seal(key: &Bytes, seq: u64, entry: Option<Entry>) -> Result<Version, FormatError> {
        let entry = match entry {
            None => None,
            Some(Entry { value, expires_at_ms }) => {
                let fragments = fragments_of(&Entry { value, expires_at_ms })?;
                Some(Entry { value: Value::from_fragments(fragments), expires_at_ms })
            }
        };
        let mut version = Version { seq, entry, checksums: Checksums::new() };
        let checksums: Result<Checksums, FormatError> = version
            .bodies()
            .map(|body| Ok(Record::seal(key.clone(), seq, body)?.checksum()))
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

    fn bodies(&self) -> impl Iterator<Item = Body> {
        let values = self.entry.as_ref().map_or(&[][..], |entry| entry.value.fragments());
        let fragments = values.len() as u16;
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
