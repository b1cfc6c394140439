//! Requests before their times are nanoseconds since the beginning.

use crate::malformed::FieldError;
use crate::request::Kind;

/// A request as its format has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw {
    /// In units of the format, since whenever.
    pub ticks: u64,
    pub device: u32,
    pub kind: Kind,
    pub offset_bytes: u64,
    pub bytes: u64,
}

/// A request; nothing for a line that is right and holds none.
pub(super) type Decoded = Result<Option<Raw>, FieldError>;
