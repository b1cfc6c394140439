//! Requests of a host, and their completions.

use softflash_base::{AccessKind, Durability, Time};

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRequest {
    /// Returned with the completion.
    pub tag: u64,
    /// The kind of access.
    pub kind: AccessKind,
    /// Its offset.
    pub offset_bytes: u64,
    /// Its length.
    pub bytes: u64,
    /// The class of its data: what is written with one hint becomes invalid at about the same time.
    /// Only the placement `by-hint` uses it. For the lifetime policy `oracle` it is the lifetime
    /// itself: the pages that the host will write before these are overwritten or discarded; 0 if
    /// that is not known.
    pub hint: u32,
    /// When a write ends. With [power-loss protection](crate::spec::ControllerSpec), or without a
    /// write buffer, all that has ended is durable anyway.
    pub durability: Durability,
}

impl HostRequest {
    /// A request without a hint.
    #[inline]
    pub fn new(tag: u64, kind: AccessKind, offset_bytes: u64, bytes: u64) -> HostRequest {
        HostRequest { tag, kind, offset_bytes, bytes, hint: 0, durability: Durability::Accepted }
    }
}

/// A completed request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The request's tag.
    pub tag: u64,
    /// The kind of access.
    pub kind: AccessKind,
    /// Its length.
    pub bytes: u64,
    /// When it was submitted.
    pub submitted_at: Time,
    /// When it completed for the host.
    pub at: Time,
}

impl Done {
    /// From submission to completion, in nanoseconds.
    #[inline]
    pub fn latency_ns(&self) -> u64 {
        self.at.0 - self.submitted_at.0
    }
}
