//! Kinds of access to a key.

use crate::resp::words::is;
use bytes::Bytes;

/// Access of a command to a key. The empty set: the command shows only metadata, such as existence
/// or expiry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// Metadata only.
    pub const METADATA: Access = Access(0);
    /// The command reads the value.
    pub const READ: Access = Access(1);
    /// The command changes the key.
    pub const WRITE: Access = Access(2);
    /// Both.
    pub const BOTH: Access = Access(3);

    /// Whether this includes all of `other`.
    pub(crate) fn covers(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// The union.
    pub(crate) fn and(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// The access of SET to its key.
pub(super) fn of_set(args: &[Bytes]) -> Access {
    let options = args.get(3..).unwrap_or_default();
    match options.iter().any(|option| is(option, "GET")) {
        true => Access::BOTH,
        false => Access::WRITE,
    }
}
