//! What a host asks, and what it hears.

use softflash_base::{AccessKind, Time};

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRequest {
    /// Returned at the end.
    pub tag: u64,
    /// What it asks.
    pub kind: AccessKind,
    /// Where it begins.
    pub offset_bytes: u64,
    /// How long it is.
    pub bytes: u64,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The request's tag.
    pub tag: u64,
    /// What it asked.
    pub kind: AccessKind,
    /// How long it was.
    pub bytes: u64,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When the host heard of its end.
    pub at: Time,
}

impl Done {
    /// From submission to end, in nanoseconds.
    #[inline]
    pub fn latency_ns(&self) -> u64 {
        self.at.0 - self.submitted_at.0
    }
}
