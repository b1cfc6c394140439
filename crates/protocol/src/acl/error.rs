//! Errors in the definition of users.

use thiserror::Error;

/// Why a user definition is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AclError {
    /// An invalid name.
    #[error("{0}")]
    Name(&'static str),
    /// An invalid rule; the text contains no password.
    #[error("Error in ACL SETUSER modifier '{rule}': {reason}")]
    Rule {
        /// The rule without passwords.
        rule: String,
        /// The reason.
        reason: &'static str,
    },
    /// An invalid line of a file.
    #[error("line {line}: {reason}")]
    Line {
        /// Line number, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
}
