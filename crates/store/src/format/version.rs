//! Versions: the value or deletion that a write gives a key, sealed when it enters the store.
//!
//! Log, memtable and patches keep the checksums that a version got on entry, so that the next read
//! detects damage, also damage in memory.

use super::FormatError;
use super::record::{Body, Fields, MAX_FRAGMENT_BYTES, Record, fragments_of};
use super::separated::{References, Separated};
use crate::value::{Entry, Value};
use bytes::Bytes;
use smallvec::SmallVec;
use softflash_base::cast::saturating_u16;
use std::rc::Rc;

/// One version of a key, with the checksums that it got when it entered the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Its sequence number.
    pub seq: u64,
    content: Content,
    /// One for each fragment of an inline value, or one for the deletion.
    checksums: Checksums,
}

/// The content of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The key is deleted.
    Deletion,
    /// The value, in fragments as they are stored.
    Inline(Entry),
    /// The value is in value blocks.
    Separated(Rc<Separated>),
}

impl Content {
    /// Whether the key has a value.
    pub fn is_put(&self) -> bool {
        !matches!(self, Content::Deletion)
    }

    /// When the value expires, in milliseconds since the Unix epoch, 0 for never; 0 for a
    /// deletion.
    pub fn expires_at_ms(&self) -> u64 {
        match self {
            Content::Deletion => 0,
            Content::Inline(entry) => entry.expires_at_ms,
            Content::Separated(separated) => separated.expires_at_ms,
        }
    }

    /// Whether it is a value that has expired at `now_ms`.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        let at_ms = self.expires_at_ms();
        at_ms != 0 && at_ms <= now_ms
    }
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
        let content = match entry {
            Some(entry) if !is_cut(&entry.value, longest) => {
                let value = Value::from_fragments(fragments_of(&entry, longest)?);
                Content::Inline(Entry { value, ..entry })
            }
            Some(kept) => Content::Inline(kept),
            None => Content::Deletion,
        };
        let mut version = Version { seq, content, checksums: Checksums::new() };
        // From borrowed fields: a record would clone the handles of key and value, which costs more
        // than the checksum.
        let checksums: Result<Checksums, FormatError> = version
            .fields(key)
            .map(|fields| fields.check_limits().map(|()| fields.checksum()))
            .collect();
        version.checksums = checksums?;
        Ok(version)
    }

    /// A version with a separated value that is not written yet, in fragments of at most `longest`
    /// bytes.
    ///
    /// # Errors
    /// As [`seal`](Version::seal).
    pub fn separate(
        key: &[u8],
        seq: u64,
        entry: Entry,
        longest: usize,
    ) -> Result<Version, FormatError> {
        let value = Value::from_fragments(fragments_of(&entry, longest)?);
        let separated = Separated::waiting(key, Entry { value, ..entry });
        Ok(Version::separated(seq, Rc::new(separated)))
    }

    /// A version with this separated value.
    pub fn separated(seq: u64, separated: Rc<Separated>) -> Version {
        Version { seq, content: Content::Separated(separated), checksums: Checksums::new() }
    }

    /// A version that was sealed before.
    pub fn sealed(seq: u64, entry: Option<Entry>, checksums: Checksums) -> Version {
        Version { seq, content: entry.map_or(Content::Deletion, Content::Inline), checksums }
    }

    /// The value or deletion.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Whether it gives the key a value.
    pub fn is_put(&self) -> bool {
        self.content.is_put()
    }

    /// The entry, if the value is not separated.
    pub fn inline(&self) -> Option<&Entry> {
        match &self.content {
            Content::Inline(entry) => Some(entry),
            Content::Deletion | Content::Separated(_) => None,
        }
    }

    /// The separated value, if it is one.
    pub fn as_separated(&self) -> Option<&Rc<Separated>> {
        match &self.content {
            Content::Separated(separated) => Some(separated),
            Content::Deletion | Content::Inline(_) => None,
        }
    }

    /// The references of a separated value that is written.
    pub fn references(&self) -> Option<References> {
        self.as_separated()?.references()
    }

    /// The checksums of its records.
    pub fn checksums(&self) -> &[u64] {
        &self.checksums
    }

    /// Its records: one, or one for each fragment of a large value.
    pub fn records<'a>(&'a self, key: &'a Bytes) -> impl Iterator<Item = Record> + 'a {
        let separated = self.as_separated().into_iter().flat_map(|separated| separated.bodies());
        let separated = separated.map(|body| Record::sealed_anew(key.clone(), self.seq, body));
        let inline = self.bodies().zip(&self.checksums);
        let inline =
            inline.map(|(body, checksum)| Record::sealed(key.clone(), self.seq, body, *checksum));
        inline.chain(separated)
    }

    fn fields<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = Fields<'a>> {
        let values = self.inline().map_or(&[][..], |entry| entry.value.fragments());
        let fragments = saturating_u16(values.len());
        let expires_at_ms = self.content.expires_at_ms();
        let puts = values.iter().zip(0..).map(move |(value, fragment)| Fields {
            key,
            seq: self.seq,
            put: true,
            reference: false,
            expires_at_ms,
            fragment,
            fragments,
            value,
        });
        puts.chain((!self.is_put()).then(|| Fields::delete(key, self.seq)))
    }

    fn bodies(&self) -> impl Iterator<Item = Body> {
        let values = self.inline().map_or(&[][..], |entry| entry.value.fragments());
        let fragments = saturating_u16(values.len());
        let expires_at_ms = self.content.expires_at_ms();
        let puts = values.iter().cloned().zip(0..).map(move |(value, fragment)| Body::Put {
            value,
            expires_at_ms,
            fragment,
            fragments,
        });
        puts.chain((!self.is_put()).then_some(Body::Delete))
    }
}

/// Whether a value is one piece that can be stored unchanged.
fn is_cut(value: &Value, longest: usize) -> bool {
    matches!(value.fragments(), [one] if one.len() <= longest.min(MAX_FRAGMENT_BYTES))
}
