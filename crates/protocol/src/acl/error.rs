//! What can be wrong with a user.

use thiserror::Error;

/// Why a user cannot be as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AclError {
    /// A name that no user can have.
    #[error("{0}")]
    Name(&'static str),
    /// A rule; the text has no password in it.
    #[error("Error in ACL SETUSER modifier '{rule}': {reason}")]
    Rule {
        /// The rule as it may be shown.
        rule: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A line of a file.
    #[error("line {line}: {reason}")]
    Line {
        /// Which one, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}
