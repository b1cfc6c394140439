//! Requests with the times of their format.

use crate::malformed::FieldError;
use crate::request::Kind;

/// A request with the time of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw {
    /// The time in units of the format, from an arbitrary origin.
    pub ticks: u64,
    pub device: u32,
    pub kind: Kind,
    pub offset_bytes: u64,
    pub bytes: u64,
}

/// A request; `None` for a valid line without a request.
pub(super) type Decoded = Result<Option<Raw>, FieldError>;
