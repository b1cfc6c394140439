//! Errors of decoding bytes from flash.

use thiserror::Error;

/// Why a structure cannot be decoded, or a record cannot be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes end before the structure does.
    #[error("{what} is cut short")]
    Truncated {
        /// The structure.
        what: &'static str,
    },
    /// The bytes are not the expected structure.
    #[error("no {what} here")]
    NotFound {
        /// The structure that was expected.
        what: &'static str,
    },
    /// The bytes are damaged, misplaced, or from an earlier generation of the superblock.
    #[error("the checksum of {what} does not match: it is damaged, misplaced or stale")]
    Checksum {
        /// The structure.
        what: &'static str,
    },
    /// The checksum matches, but the contents break a rule of the format: a faulty program wrote
    /// them.
    #[error("{what} breaks its format: {reason}; please report this")]
    Malformed {
        /// The structure.
        what: &'static str,
        /// The rule.
        reason: &'static str,
    },
    /// Written by a newer version.
    #[error(
        "{what} has format version {found}, this program knows up to {known}; use a newer version"
    )]
    Version {
        /// The structure.
        what: &'static str,
        /// Its version.
        found: u16,
        /// The newest version that this program reads.
        known: u16,
    },
    /// An event of a kind that this version does not define.
    #[error(
        "log event of unknown kind {kind} in a frame of version {version}; use a newer version"
    )]
    UnknownEvent {
        /// The kind.
        kind: u8,
        /// The version of the log format that this program writes and reads.
        version: u16,
    },
    /// Too large to be written.
    #[error("{what} of {bytes} bytes exceeds the limit of {limit} bytes")]
    TooLarge {
        /// The structure.
        what: &'static str,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
}
