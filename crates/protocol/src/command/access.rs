//! What commands do to keys.

use crate::resp::words::is;
use bytes::Bytes;

/// What is done to a key. Nothing at all is to see whether it is there and how it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access(u8);

impl Access {
    /// Metadata only.
    pub const METADATA: Access = Access(0);
    /// Its value is read.
    pub const READ: Access = Access(1);
    /// It is changed.
    pub const WRITE: Access = Access(2);
    /// Both.
    pub const BOTH: Access = Access(3);

    /// Whether all of `other` is among this.
    pub(crate) fn covers(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    pub(crate) fn and(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// What SET does to its key.
pub(super) fn of_set(args: &[Bytes]) -> Access {
    let options = args.get(3..).unwrap_or_default();
    match options.iter().any(|option| is(option, "GET")) {
        true => Access::BOTH,
        false => Access::WRITE,
    }
}
