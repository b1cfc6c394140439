//! One request of a trace, whatever format it came from.

use serde::Serialize;
use softflash_base::AccessKind;

/// The kind of a request of a trace: an access to a block device, or a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Forget bytes: discard, trim, unmap.
    Trim,
    /// Make everything durable; it has no address.
    Flush,
}

impl Kind {
    /// The kind of access; none for a flush.
    pub fn access(self) -> Option<AccessKind> {
        match self {
            Kind::Read => Some(AccessKind::Read),
            Kind::Write => Some(AccessKind::Write),
            Kind::Trim => Some(AccessKind::Trim),
            Kind::Flush => None,
        }
    }

    /// Its name, in messages.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Trim => "trim",
            Kind::Flush => "flush",
        }
    }
}

/// A request to a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Request {
    /// When it was made: nanoseconds since the first request of the trace. Never runs back.
    pub at_ns: u64,
    /// The device or volume; the formats say how it is numbered.
    pub device: u32,
    /// The kind of access.
    pub kind: Kind,
    /// Where it begins; 0 for a flush.
    pub offset_bytes: u64,
    /// How long it is; 0 for a flush. The end of a request that was read fits into 64 bits.
    pub bytes: u64,
}

impl Request {
    /// Where it ends.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.bytes)
    }
}
