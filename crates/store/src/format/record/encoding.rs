//! The encoding of a record, in blocks of patches and in log events.

use super::{Body, MAX_FRAGMENT_BYTES, Record};
use crate::format::codec::{Reader, put_varint, varint_len};
use crate::format::reference::{REFERENCE_BYTES, Reference};
use crate::format::{Domain, FormatError};
use crate::value::MAX_KEY_BYTES;
use bytes::Bytes;
use softflash_base::cast::wide;
use softflash_base::checksum64;
use std::cmp::Ordering;
use std::ops::Range;

const WHAT: &str = "a record";

/// The record deletes its key.
const FLAG_DELETE: u8 = 1;
/// An expiry follows.
const FLAG_EXPIRES: u8 = 2;
/// Fragment number and count follow.
const FLAG_FRAGMENT: u8 = 4;
/// The value is a reference.
const FLAG_REFERENCE: u8 = 8;

/// The shortest encoded record: flags, key length, sequence, checksum.
pub(crate) const MIN_ENCODED_BYTES: usize = 11;

/// The parts of a record, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields<'a> {
    pub key: &'a [u8],
    pub seq: u64,
    pub put: bool,
    /// The value is an encoded reference.
    pub reference: bool,
    pub expires_at_ms: u64,
    pub fragment: u16,
    pub fragments: u16,
    pub value: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn delete(key: &'a [u8], seq: u64) -> Fields<'a> {
        Fields {
            key,
            seq,
            put: false,
            reference: false,
            expires_at_ms: 0,
            fragment: 0,
            fragments: 1,
            value: &[],
        }
    }

    /// The end-to-end checksum: over the numbers, then the key, then the value, each seeded with
    /// the previous sum, so that no byte can move from one part to the next.
    pub fn checksum(&self) -> u64 {
        let mut numbers = [0; 21];
        numbers[0..8].copy_from_slice(&self.seq.to_le_bytes());
        numbers[8..16].copy_from_slice(&self.expires_at_ms.to_le_bytes());
        numbers[16..18].copy_from_slice(&self.fragment.to_le_bytes());
        numbers[18..20].copy_from_slice(&self.fragments.to_le_bytes());
        numbers[20] = u8::from(self.put) | u8::from(self.reference) << 1;
        let seed = checksum64(Domain::Record as u64, &numbers);
        checksum64(checksum64(seed, self.key), self.value)
    }

    pub fn check_limits(&self) -> Result<(), FormatError> {
        let too_large = |what, bytes: usize, limit: usize| {
            Err(FormatError::TooLarge { what, bytes: wide(bytes), limit: wide(limit) })
        };
        if self.key.len() > MAX_KEY_BYTES {
            return too_large("a key", self.key.len(), MAX_KEY_BYTES);
        }
        if self.value.len() > MAX_FRAGMENT_BYTES {
            return too_large("a fragment", self.value.len(), MAX_FRAGMENT_BYTES);
        }
        if self.fragment >= self.fragments {
            return Err(FormatError::Malformed {
                what: WHAT,
                reason: "its fragment number is not below the count",
            });
        }
        Ok(())
    }

    pub fn order(&self, other: &Fields<'_>) -> Ordering {
        self.key
            .cmp(other.key)
            .then_with(|| other.seq.cmp(&self.seq))
            .then_with(|| self.fragment.cmp(&other.fragment))
    }

    /// Bytes that [`encode`](Fields::encode) appends.
    pub fn encoded_len(&self, base_seq: u64) -> usize {
        let mut len = 1 + 8 + varint_len(wide(self.key.len())) + self.key.len();
        len += varint_len(self.seq.wrapping_sub(base_seq));
        if self.put {
            len += varint_len(wide(self.value.len())) + self.value.len();
        }
        if self.expires_at_ms != 0 {
            len += varint_len(self.expires_at_ms);
        }
        if self.fragments > 1 {
            len += varint_len(self.fragment.into()) + varint_len(self.fragments.into());
        }
        len
    }

    /// Appends the record. The reader knows `base_seq`, which is not above the record's sequence
    /// number.
    pub fn encode(&self, checksum: u64, base_seq: u64, out: &mut Vec<u8>) {
        let mut flags = 0;
        for (flag, set) in [
            (FLAG_DELETE, !self.put),
            (FLAG_EXPIRES, self.expires_at_ms != 0),
            (FLAG_FRAGMENT, self.fragments > 1),
            (FLAG_REFERENCE, self.reference),
        ] {
            flags |= if set { flag } else { 0 };
        }
        out.push(flags);
        put_varint(out, wide(self.key.len()));
        put_varint(out, self.seq.wrapping_sub(base_seq));
        if self.expires_at_ms != 0 {
            put_varint(out, self.expires_at_ms);
        }
        if self.fragments > 1 {
            put_varint(out, self.fragment.into());
            put_varint(out, self.fragments.into());
        }
        if self.put {
            put_varint(out, wide(self.value.len()));
        }
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }
}

/// The places of the parts of an encoded record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Parsed {
    key: Range<usize>,
    value: Range<usize>,
    seq: u64,
    put: bool,
    reference: bool,
    expires_at_ms: u64,
    fragment: u16,
    fragments: u16,
    checksum: u64,
}

impl Parsed {
    /// Finds the parts of the record at `at` of `bytes`, without verifying its checksum.
    pub fn at(bytes: &[u8], at: usize, base_seq: u64) -> Result<Parsed, FormatError> {
        let mut reader = Reader::starting_at(bytes, at, WHAT);
        let flags = reader.u8()?;
        if flags & !(FLAG_DELETE | FLAG_EXPIRES | FLAG_FRAGMENT | FLAG_REFERENCE) != 0 {
            return Err(reader.malformed("it has an unknown flag"));
        }
        let put = flags & FLAG_DELETE == 0;
        if !put && flags != FLAG_DELETE {
            return Err(
                reader.malformed("a deletion has neither expiry nor fragments nor a reference")
            );
        }
        let key_len: usize = reader.varint_as()?;
        let seq = base_seq
            .checked_add(reader.varint()?)
            .ok_or_else(|| reader.malformed("its sequence number exceeds 64 bits"))?;
        let expires_at_ms = if flags & FLAG_EXPIRES != 0 { reader.varint()? } else { 0 };
        let (fragment, fragments) = if flags & FLAG_FRAGMENT != 0 {
            (reader.varint_as()?, reader.varint_as()?)
        } else {
            (0, 1)
        };
        let value_len: usize = if put { reader.varint_as()? } else { 0 };
        let reference = flags & FLAG_REFERENCE != 0;
        if reference && value_len != REFERENCE_BYTES {
            return Err(reader.malformed("its reference has another length"));
        }
        let checksum = reader.u64()?;
        let (key, value) = (reader.range(key_len)?, reader.range(value_len)?);
        let parsed = Parsed {
            key,
            value,
            seq,
            put,
            reference,
            expires_at_ms,
            fragment,
            fragments,
            checksum,
        };
        let canonical = (flags & FLAG_EXPIRES == 0 || expires_at_ms != 0)
            && (flags & FLAG_FRAGMENT == 0 || fragments > 1);
        if !canonical {
            return Err(reader.malformed("a flag announces nothing"));
        }
        parsed.fields(bytes).check_limits()?;
        Ok(parsed)
    }

    /// Where the next record starts.
    pub fn end(&self) -> usize {
        self.value.end
    }

    /// The parts; `bytes` must be the bytes that were parsed.
    pub fn fields<'a>(&self, bytes: &'a [u8]) -> Fields<'a> {
        Fields {
            key: bytes.get(self.key.clone()).unwrap_or_default(),
            seq: self.seq,
            put: self.put,
            reference: self.reference,
            expires_at_ms: self.expires_at_ms,
            fragment: self.fragment,
            fragments: self.fragments,
            value: bytes.get(self.value.clone()).unwrap_or_default(),
        }
    }

    /// The verified record, as slices of `bytes`, which must be the bytes that were parsed.
    pub fn record(&self, bytes: &Bytes) -> Result<Record, FormatError> {
        if self.fields(bytes).checksum() != self.checksum {
            return Err(FormatError::Checksum { what: WHAT });
        }
        let reference = Reference::decode(bytes.get(self.value.clone()).unwrap_or_default());
        let body = if let Some(reference) = reference.filter(|_| self.reference) {
            Body::Reference {
                reference,
                expires_at_ms: self.expires_at_ms,
                fragment: self.fragment,
                fragments: self.fragments,
            }
        } else if self.put {
            Body::Put {
                value: bytes.slice(self.value.clone()),
                expires_at_ms: self.expires_at_ms,
                fragment: self.fragment,
                fragments: self.fragments,
            }
        } else {
            Body::Delete
        };
        Ok(Record::sealed(bytes.slice(self.key.clone()), self.seq, body, self.checksum))
    }
}
