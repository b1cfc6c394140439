//! One request of a block client.

use softflash_base::{AccessKind, Durability};

/// A request of a block client. It lies within the capacity that its source was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// The kind of access.
    pub kind: AccessKind,
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length; at least 1.
    pub bytes: u32,
    /// The class of its data: 1 for the hot part of a hot-cold pattern, the number of a sequential
    /// stream, otherwise 0.
    pub hint: u32,
    /// When it ends, if it is a write.
    pub durability: Durability,
}

impl Access {
    /// The offset of its end.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes + u64::from(self.bytes)
    }
}
