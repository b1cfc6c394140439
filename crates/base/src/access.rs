//! The kinds of accesses to a block device.

use serde::{Deserialize, Serialize};

/// The kind of a request to a block device. Four bytes wide, like its neighbours in requests, so
/// that requests are copied in whole words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[repr(u32)]
pub enum AccessKind {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Forget bytes: discard, trim, unmap.
    Trim,
}

/// When a write ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u32)]
pub enum Durability {
    /// When the device has its data, which a power loss may destroy.
    #[default]
    Accepted,
    /// When its data are durable (forced unit access).
    Itself,
    /// When its data and those of all writes that ended before are durable: a flush follows it.
    AllBefore,
}
