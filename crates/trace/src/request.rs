//! One request of a trace, independent of its format.

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
    /// Discard bytes: discard, trim, unmap.
    Trim,
    /// Make everything durable; it has no address.
    Flush,
}

impl Kind {
    /// The kind of access; `None` for a flush.
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
    /// Its time: nanoseconds since the first request of the trace. Never decreases.
    pub at_ns: u64,
    /// The device or volume, numbered as the format defines.
    pub device: u32,
    /// The kind of access.
    pub kind: Kind,
    /// Its offset; 0 for a flush.
    pub offset_bytes: u64,
    /// Its length; 0 for a flush. The end of a request from a reader fits into 64 bits.
    pub bytes: u64,
}

impl Request {
    /// The offset of its end.
    pub fn end_bytes(&self) -> u64 {
        self.offset_bytes.saturating_add(self.bytes)
    }
}
