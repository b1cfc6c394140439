//! Records: one version of one key, or a fragment of it.

mod encoding;
#[cfg(test)]
mod tests;

pub(crate) use encoding::{Fields, MIN_ENCODED_BYTES, Parsed};

use super::FormatError;
use super::reference::Reference;
use crate::value::{Entry, MAX_VALUE_BYTES};
use bytes::Bytes;
use softflash_base::cast::wide;
use std::cmp::Ordering;

/// The longest fragment that a value may be cut into.
pub const MAX_FRAGMENT_BYTES: usize = 1 << 20;

/// The contents of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// The key has this value, or this is a fragment of the value.
    Put {
        /// The value, or one fragment of it.
        value: Bytes,
        /// When it expires, in milliseconds since the Unix epoch; 0 for never.
        expires_at_ms: u64,
        /// The number of the fragment, from 0.
        fragment: u16,
        /// Fragments of the value; at least 1.
        fragments: u16,
    },
    /// The key has the value to which this refers, or this refers to a fragment of the value.
    Reference {
        /// The place of the value, or of one fragment of it.
        reference: Reference,
        /// As for a value.
        expires_at_ms: u64,
        /// As for a value.
        fragment: u16,
        /// As for a value.
        fragments: u16,
    },
    /// The key is deleted.
    Delete,
}

/// One version of a key, or a fragment of it, with the checksum that it got when it entered the
/// store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The key, at most [`MAX_KEY_BYTES`](crate::value::MAX_KEY_BYTES).
    pub key: Bytes,
    /// The sequence number of the write; all fragments of a value share it.
    pub seq: u64,
    /// A value or fragment, or a deletion.
    pub body: Body,
    checksum: u64,
}

impl Record {
    /// Seals a record on entry to the store: checks its limits and computes its checksum.
    ///
    /// # Errors
    /// [`FormatError::TooLarge`] for a key or fragment over its limit, [`FormatError::Malformed`]
    /// for a fragment number that is not below the number of fragments.
    pub fn seal(key: Bytes, seq: u64, body: Body) -> Result<Record, FormatError> {
        let mut record = Record { key, seq, body, checksum: 0 };
        record.fields().check_limits()?;
        record.checksum = record.fields().checksum();
        Ok(record)
    }

    /// A record that is sealed already, with its checksum.
    pub fn sealed(key: Bytes, seq: u64, body: Body, checksum: u64) -> Record {
        Record { key, seq, body, checksum }
    }

    /// As [`seal`](Record::seal), for a record whose limits were checked before.
    pub(crate) fn sealed_anew(key: Bytes, seq: u64, body: Body) -> Record {
        let mut record = Record { key, seq, body, checksum: 0 };
        record.checksum = record.fields().checksum();
        record
    }

    /// A deletion of `key`.
    pub fn delete(key: Bytes, seq: u64) -> Record {
        let mut record = Record { key, seq, body: Body::Delete, checksum: 0 };
        record.checksum = record.fields().checksum();
        record
    }

    /// The checksum that the record was sealed with.
    pub fn checksum(&self) -> u64 {
        self.checksum
    }

    /// Verifies the record against its checksum.
    ///
    /// # Errors
    /// [`FormatError::Checksum`] where they do not match.
    pub fn verify(&self) -> Result<(), FormatError> {
        if self.fields().checksum() == self.checksum {
            Ok(())
        } else {
            Err(FormatError::Checksum { what: "a record" })
        }
    }

    /// Whether it deletes its key.
    pub fn is_delete(&self) -> bool {
        matches!(self.body, Body::Delete)
    }

    /// When the value expires, in milliseconds since the Unix epoch, 0 for never; `None` for a
    /// deletion.
    pub fn expires_at_ms(&self) -> Option<u64> {
        match self.body {
            Body::Put { expires_at_ms, .. } | Body::Reference { expires_at_ms, .. } => {
                Some(expires_at_ms)
            }
            Body::Delete => None,
        }
    }

    /// Whether it is a value that has expired at `now_ms`.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms().is_some_and(|at_ms| at_ms != 0 && at_ms <= now_ms)
    }

    /// The number of the fragment; 0 for a deletion.
    pub fn fragment(&self) -> u16 {
        match self.body {
            Body::Put { fragment, .. } | Body::Reference { fragment, .. } => fragment,
            Body::Delete => 0,
        }
    }

    /// Fragments of its version; 1 for a deletion.
    pub fn fragments(&self) -> u16 {
        match self.body {
            Body::Put { fragments, .. } | Body::Reference { fragments, .. } => fragments,
            Body::Delete => 1,
        }
    }

    /// The reference to the value or fragment, if it is not in the record.
    pub fn reference(&self) -> Option<&Reference> {
        match &self.body {
            Body::Reference { reference, .. } => Some(reference),
            Body::Put { .. } | Body::Delete => None,
        }
    }

    /// The value or fragment; empty for a deletion and for a reference.
    pub fn value(&self) -> &[u8] {
        match &self.body {
            Body::Put { value, .. } => value,
            Body::Reference { .. } | Body::Delete => &[],
        }
    }

    /// The value or fragment; empty for a deletion and for a reference.
    pub fn into_value(self) -> Bytes {
        match self.body {
            Body::Put { value, .. } => value,
            Body::Reference { .. } | Body::Delete => Bytes::new(),
        }
    }

    /// The order of records: by key, then the newest first, then by fragment.
    pub fn order(&self, other: &Record) -> Ordering {
        self.fields().order(&other.fields())
    }

    /// Bytes of the record in a patch, without the block's header.
    pub fn encoded_len(&self) -> usize {
        self.fields().encoded_len(0)
    }

    pub(crate) fn fields(&self) -> Fields<'_> {
        match &self.body {
            Body::Put { value, expires_at_ms, fragment, fragments } => Fields {
                key: &self.key,
                seq: self.seq,
                put: true,
                reference: false,
                expires_at_ms: *expires_at_ms,
                fragment: *fragment,
                fragments: *fragments,
                value,
            },
            Body::Reference { reference, expires_at_ms, fragment, fragments } => Fields {
                key: &self.key,
                seq: self.seq,
                put: true,
                reference: true,
                expires_at_ms: *expires_at_ms,
                fragment: *fragment,
                fragments: *fragments,
                value: reference.bytes(),
            },
            Body::Delete => Fields::delete(&self.key, self.seq),
        }
    }
}

/// Cuts a value into the pieces that are stored: at least one, each of at most `longest` bytes.
/// `longest` is limited to [`MAX_FRAGMENT_BYTES`], and raised where the value would have more
/// pieces than 16 bits can count.
///
/// Existing pieces are kept, and cut where they are too long. A value is joined by a copy only if
/// it has more than twice as many pieces as it needs.
///
/// # Errors
/// [`FormatError::TooLarge`] for a value over [`MAX_VALUE_BYTES`].
pub fn fragments_of(entry: &Entry, longest: usize) -> Result<Fragments, FormatError> {
    let value = &entry.value;
    let len = value.len();
    if len > MAX_VALUE_BYTES {
        return Err(FormatError::TooLarge {
            what: "a value",
            bytes: wide(len),
            limit: wide(MAX_VALUE_BYTES),
        });
    }
    // Up to twice as many pieces as needed may be cut again, each with a short last piece: hence a
    // third of the count.
    let least = len.div_ceil(usize::from(u16::MAX) / 3).max(1);
    let longest = longest.clamp(least, MAX_FRAGMENT_BYTES);
    let needed = len.div_ceil(longest).max(1);
    let pieces = value.fragments().iter().filter(|piece| !piece.is_empty()).count();
    let joined = (pieces > 2 * needed).then(|| value.to_bytes());
    let source = joined.as_ref().map_or(value.fragments(), std::slice::from_ref);
    let mut fragments = Fragments::new();
    for piece in source.iter().filter(|piece| !piece.is_empty()) {
        let mut at = 0;
        while at < piece.len() {
            let end = piece.len().min(at + longest);
            fragments.push(piece.slice(at..end));
            at = end;
        }
    }
    if fragments.is_empty() {
        fragments.push(Bytes::new());
    }
    Ok(fragments)
}

/// The fragments of a value; small values have one.
pub type Fragments = smallvec::SmallVec<[Bytes; 1]>;
