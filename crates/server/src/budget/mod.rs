//! How the server's share of the memory is divided between requests and replies on their way.

mod replies;
mod requests;
#[cfg(test)]
mod tests;

pub use replies::{Permit, ReplyBudget};
pub use requests::{RequestBudget, RequestTooLarge, Reservation};

/// The least memory that a server can be given, in bytes.
pub const MIN_MEMORY_BYTES: u64 = 32 << 20;

/// What the store leaves of the memory that it is told, as a fraction of it: one part in this many.
const STORE_LEAVES: u64 = softflash_store::REQUEST_SHARE;

/// Memory for a value of the greatest size and the same again for what else is under way.
const COMFORTABLE_BYTES: u64 = 128 << 20;

/// The division of `--memory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlan {
    /// What the store is told; it uses all but one part in eight of it.
    pub store_bytes: u64,
    /// Bodies of requests that are being received or executed, of all connections together.
    pub request_bytes: u64,
    /// Replies that are being made or sent, of all connections together.
    pub reply_bytes: u64,
    /// Unused buffers that the device keeps.
    pub device_bytes: u64,
}

impl MemoryPlan {
    /// Divides `memory_bytes`.
    pub fn new(memory_bytes: u64) -> MemoryPlan {
        let server = COMFORTABLE_BYTES.clamp(memory_bytes / 8, memory_bytes / 2);
        let device_bytes = memory_bytes / 16;
        let store = memory_bytes - server - device_bytes;
        MemoryPlan {
            store_bytes: store / (STORE_LEAVES - 1) * STORE_LEAVES,
            request_bytes: server / 2,
            reply_bytes: server / 2,
            device_bytes,
        }
    }

    /// Replies to the commands of one batch may come to this: the largest value at the least, and some
    /// of the largest where there is more memory. More ends the connection.
    pub fn max_output_bytes(&self) -> usize {
        let least = 2 * softflash_store::value::MAX_VALUE_BYTES;
        usize::try_from(self.reply_bytes).unwrap_or(usize::MAX).max(least)
    }

    /// Less than this in all memtables together need not be flushed: half of their budget.
    pub fn calm_store_bytes(&self) -> u64 {
        self.store_bytes * 9 / 32
    }
}
