//! The items of adaptors.

use crate::error::TraceError;
use crate::request::Request;

/// The item of an iterator over a trace.
pub type Item = Result<Request, TraceError>;
