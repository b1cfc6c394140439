//! Requests in the transmission phase.

use crate::error::ErrorCode;

/// The client's name for a request, which the reply repeats; it has no meaning here. Clients should
/// not use one twice at a time, but nothing prevents it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Cookie(pub u64);

/// A part of an export. In a valid request it is not empty, aligned to the minimum block size, and
/// within the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ByteRange {
    /// The first byte.
    pub offset: u64,
    /// The length in bytes.
    pub bytes: u32,
}

impl ByteRange {
    /// The byte after the last.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.bytes))
    }
}

/// A valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The client's name for it.
    pub cookie: Cookie,
    /// The reply must wait until the data written by this request are durable.
    pub fua: bool,
    /// The command.
    pub command: Command,
}

/// The command of a request, with its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Read.
    Read {
        /// At most the maximum payload.
        range: ByteRange,
        /// The client wants one chunk; [`ReadReply`](crate::ReadReply) takes care of it.
        dont_fragment: bool,
    },
    /// Write; as many bytes of payload follow.
    Write {
        /// At most the maximum payload.
        range: ByteRange,
    },
    /// Make all writes durable that were replied to before.
    Flush,
    /// The data are not needed any more.
    Trim {
        /// Of any length.
        range: ByteRange,
    },
    /// The data will be needed soon.
    Cache {
        /// Of any length.
        range: ByteRange,
    },
    /// Write zeroes.
    WriteZeroes {
        /// Of any length.
        range: ByteRange,
        /// The space must stay allocated.
        no_hole: bool,
        /// Refuse at once, with [`ErrorCode::NotSupported`] and without a change, unless it is
        /// faster than a write.
        fast: bool,
    },
    /// Which parts are holes or read as zeroes.
    BlockStatus {
        /// Of any length.
        range: ByteRange,
        /// The client wants the first extent only.
        one_extent: bool,
    },
}

impl Command {
    /// The part of the export that is concerned.
    pub fn range(&self) -> Option<ByteRange> {
        match *self {
            Command::Flush => None,
            Command::Read { range, .. }
            | Command::Write { range }
            | Command::Trim { range }
            | Command::Cache { range }
            | Command::WriteZeroes { range, .. }
            | Command::BlockStatus { range, .. } => Some(range),
        }
    }

    /// The length of the payload that follows the request, in bytes.
    pub fn payload_bytes(&self) -> u32 {
        match self {
            Command::Write { range } => range.bytes,
            _ => 0,
        }
    }
}

/// A request that is refused. [`Replies::reject`](crate::Replies::reject) answers it; its payload,
/// if any, is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// The client's name for it.
    pub cookie: Cookie,
    /// The error.
    pub error: ErrorCode,
    /// The reason, for people.
    pub reason: &'static str,
}

/// The header of a request, as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RawRequest {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: Cookie,
    pub(crate) range: ByteRange,
}
