//! References in changes: encoded with their final size when the event is appended, and filled in
//! when the values are written.

use super::{WHAT, list, put_len};
use crate::format::FormatError;
use crate::format::codec::{Reader, put_at};
use crate::format::record::Body;
use crate::format::reference::{REFERENCE_BYTES, Reference};
use crate::format::separated::{References, Separated};
use crate::format::version::Version;
use bytes::{BufMut, Bytes};
use softflash_base::cast::{saturating_u16, wide};
use std::rc::Rc;

/// A checksum and a reference.
const ENCODED_BYTES: usize = 8 + REFERENCE_BYTES;

/// A reference in an encoded event, of a value that may not be written yet.
#[derive(Debug, Clone)]
pub struct Unfilled {
    /// The offset of its checksum in the stream.
    pub at: usize,
    /// The key.
    pub key: Bytes,
    /// The sequence number of the version.
    pub seq: u64,
    /// The value.
    pub separated: Rc<Separated>,
    /// The number of the fragment.
    pub fragment: usize,
}

/// Appends the references of a version, and notes them in `unfilled`.
pub(super) fn encode(
    key: &Bytes,
    seq: u64,
    separated: &Rc<Separated>,
    stream: &mut Vec<u8>,
    unfilled: &mut Vec<Unfilled>,
) {
    stream.put_u64_le(separated.expires_at_ms);
    put_len(separated.fragments(), stream);
    for fragment in 0..separated.fragments() {
        let (key, separated) = (key.clone(), Rc::clone(separated));
        unfilled.push(Unfilled { at: stream.len(), key, seq, separated, fragment });
        stream.put_bytes(0, ENCODED_BYTES);
    }
}

impl Unfilled {
    /// Writes the reference into the stream.
    ///
    /// # Errors
    /// [`FormatError::Truncated`] where the value is not written.
    pub fn fill(&self, stream: &mut [u8]) -> Result<(), FormatError> {
        let record = self.separated.record(&self.key, self.seq, self.fragment)?;
        let record = record.ok_or(FormatError::Truncated { what: WHAT })?;
        put_at(stream, self.at, &record.checksum().to_le_bytes());
        if let Body::Reference { reference, .. } = &record.body {
            put_at(stream, self.at + 8, reference.bytes());
        }
        Ok(())
    }
}

/// Decodes the references of a version of `key`, and verifies their records.
pub(super) fn decode(key: &Bytes, seq: u64, body: &mut Reader<'_>) -> Result<Version, FormatError> {
    let expires_at_ms = body.u64()?;
    let references = list(body, ENCODED_BYTES, |body| {
        let checksum = body.u64()?;
        let reference = Reference::decode(body.take(REFERENCE_BYTES)?);
        Ok((checksum, reference.ok_or(FormatError::Truncated { what: WHAT })?))
    })?;
    let fragments = saturating_u16(references.len());
    if references.is_empty() || wide(references.len()) != u64::from(fragments) {
        return Err(body.malformed("a value has no fragment, or too many"));
    }
    let (checksums, references): (Vec<u64>, References) = references.into_iter().unzip();
    let version = Version::separated(seq, Rc::new(Separated::placed(references, expires_at_ms)));
    let matches = version.records(key).map(|record| record.checksum()).eq(checksums);
    match matches {
        true => Ok(version),
        false => Err(FormatError::Checksum { what: "a record" }),
    }
}
