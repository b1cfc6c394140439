//! Values in the store.

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// The longest key in bytes.
pub const MAX_KEY_BYTES: usize = 64 << 10;
/// The longest value in bytes that a store may be told to take, as in Redis.
pub const MAX_VALUE_BYTES: usize = 512 << 20;
/// The longest value in bytes that a store takes if it is told nothing.
pub const DEFAULT_VALUE_BYTES: usize = 64 << 20;

/// The wanted part of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The key and its expiry. The value is empty if it is large and would have to be read.
    Keys,
    /// The entry.
    Entries,
}

/// A value: one piece if small, several if large. Pieces are not joined by a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Value {
    fragments: SmallVec<[Bytes; 1]>,
}

impl Value {
    /// The pieces, in order.
    pub fn fragments(&self) -> &[Bytes] {
        &self.fragments
    }

    /// A value of these pieces.
    pub fn from_fragments(fragments: impl IntoIterator<Item = Bytes>) -> Value {
        Value { fragments: fragments.into_iter().collect() }
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.fragments.iter().map(Bytes::len).sum()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.fragments.iter().all(Bytes::is_empty)
    }

    /// The value in one piece; copies if there are several pieces.
    pub fn to_bytes(&self) -> Bytes {
        match self.fragments.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut whole = BytesMut::with_capacity(self.len());
                many.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        }
    }
}

impl From<Bytes> for Value {
    fn from(bytes: Bytes) -> Value {
        Value { fragments: SmallVec::from_buf([bytes]) }
    }
}

/// The value of a key and its expiry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entry {
    /// The value.
    pub value: Value,
    /// When it expires, in milliseconds since the Unix epoch; 0 for never.
    pub expires_at_ms: u64,
}

impl Entry {
    /// A value that does not expire.
    pub fn new(value: impl Into<Value>) -> Entry {
        Entry { value: value.into(), expires_at_ms: 0 }
    }

    /// Whether the entry has expired at `now_ms`.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms != 0 && self.expires_at_ms <= now_ms
    }
}
