//! Division of the server's memory between the store, requests and replies.

mod replies;
mod requests;
#[cfg(test)]
mod tests;

pub use replies::{Permit, ReplyBudget};
pub use requests::{RequestBudget, RequestTooLarge, Reservation};

use softflash_store::memory::SpareMemory;

/// Minimum memory of a server, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 32 << 20;

/// Share of its memory that the store leaves to requests: one part in this many.
const STORE_LEAVES: u64 = softflash_store::memory::REQUEST_SHARE;

/// Memory for a value of maximum size, and the same again for replies; more where longer values are
/// allowed.
const COMFORTABLE_BYTES: u64 = 128 << 20;

/// More unused buffers than this save the device nothing.
const MAX_DEVICE_BYTES: u64 = 64 << 20;

/// The division of `--memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// The store's memory option; the store uses all but one part in eight of it. While requests
    /// and replies do not need their memory, its read cache has that, too.
    pub store_bytes: u64,
    /// Bodies of requests being received or executed, over all connections.
    pub request_bytes: u64,
    /// Replies being made or sent, over all connections.
    pub reply_bytes: u64,
    /// Unused buffers that the device keeps.
    pub device_bytes: u64,
}

impl MemoryPlan {
    /// Divides `memory_bytes`, where values have up to `max_value_bytes`.
    pub fn new(memory_bytes: u64, max_value_bytes: usize) -> MemoryPlan {
        let comfortable = COMFORTABLE_BYTES.max(2 * max_value_bytes as u64);
        let server = comfortable.clamp(memory_bytes / 8, memory_bytes / 2);
        let device_bytes = (memory_bytes / 16).min(MAX_DEVICE_BYTES);
        let store = memory_bytes - server - device_bytes;
        MemoryPlan {
            store_bytes: store / (STORE_LEAVES - 1) * STORE_LEAVES,
            request_bytes: server / 2,
            reply_bytes: server / 2,
            device_bytes,
        }
    }

    /// The memory of requests and replies, which the store's read cache uses while they do not.
    pub fn spare(&self) -> SpareMemory {
        SpareMemory::new(self.request_bytes + self.reply_bytes)
    }

    /// Maximum bytes of the replies to one batch: at least twice the largest value, and several of
    /// these where there is more memory. A larger reply ends the connection.
    pub fn max_output_bytes(&self, max_value_bytes: usize) -> usize {
        let least = 2 * max_value_bytes;
        usize::try_from(self.reply_bytes).unwrap_or(usize::MAX).max(least)
    }

    /// Memtables below this total size need no flush: half of their budget.
    pub fn calm_store_bytes(&self) -> u64 {
        self.store_bytes * 9 / 32
    }
}
