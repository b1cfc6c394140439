//! What changes work on.

use crate::error::TraceError;
use crate::request::Request;

/// What an iterator over a trace gives.
pub type Item = Result<Request, TraceError>;
