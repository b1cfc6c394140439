//! Malformed lines.

use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A line that does not match its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The trace.
    pub file: Arc<str>,
    /// The number of the line, from 1.
    pub line: u64,
    /// The problem.
    pub reason: FieldError,
    /// The beginning of the line.
    pub text: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: line {}: {}: `{}`", self.file, self.line, self.reason, self.text)
    }
}

/// Bytes of a malformed line that are kept.
const EXCERPT_BYTES: usize = 80;

impl Malformed {
    pub(crate) fn new(file: &Arc<str>, line: u64, reason: FieldError, text: &[u8]) -> Malformed {
        let excerpt = text.get(..EXCERPT_BYTES).unwrap_or(text);
        let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let text = String::from_utf8_lossy(excerpt).chars().map(shown).collect();
        Malformed { file: Arc::clone(file), line, reason, text }
    }
}

/// The wrong field of a line, and its problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{field}: {problem}")]
pub struct FieldError {
    /// The field, as the format's documentation names it; `line` for the whole line.
    pub field: &'static str,
    /// The problem.
    pub problem: Problem,
}

/// Errors of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Problem {
    /// The line ends before the field.
    #[error("missing")]
    Missing,
    /// The field should be a number.
    #[error("not a number")]
    NotANumber,
    /// The field is a number beyond the possible range.
    #[error("too large")]
    TooLarge,
    /// The field should be one of a few words or codes.
    #[error("not a value that the format defines")]
    Unknown,
    /// More fields follow where the line should end.
    #[error("more fields than the format has")]
    Extra,
    /// The line is longer than the limit.
    #[error("longer than {} bytes", crate::lines::MAX_LINE_BYTES)]
    TooLong,
    /// There are more distinct values than the limit.
    #[error("more than {} different ones", crate::names::MAX_NAMES)]
    TooMany,
}

impl Problem {
    /// The problem, of a field.
    pub(crate) fn of(self, field: &'static str) -> FieldError {
        FieldError { field, problem: self }
    }
}
