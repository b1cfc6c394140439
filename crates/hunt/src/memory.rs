//! The server's memory for requests and replies, and how long clients leave replies unread.

use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use softflash_protocol::resp::request::FREE_REQUEST_BYTES;
use std::time::Duration;

/// The largest number that a scenario file can hold.
const WITHOUT_LIMIT: u64 = i64::MAX as u64;

/// Memory of a server. The default is unlimited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Memory {
    /// Bytes of each request that need no reservation.
    pub free_request_bytes: u64,
    /// Bytes that all requests together can reserve.
    pub request_bytes: u64,
    /// Number of command batches, over all connections, that may have unsent replies.
    pub batches: u64,
    /// Share of commands that may join the previous command's batch.
    pub extends: f64,
    /// Share of replies before which a client pauses.
    pub rests: f64,
    /// The longest such pause.
    pub longest_rest_ms: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            free_request_bytes: FREE_REQUEST_BYTES,
            request_bytes: WITHOUT_LIMIT,
            batches: WITHOUT_LIMIT,
            extends: 1.0,
            rests: 0.0,
            longest_rest_ms: 0,
        }
    }
}

impl Memory {
    /// Four of ten servers have little memory.
    pub fn drawn(rng: &mut Rng) -> Memory {
        if !rng.chance(0.4) {
            return Memory::default();
        }
        Memory {
            free_request_bytes: 1 << (5 + rng.below(10)),
            request_bytes: 1 << (8 + rng.below(12)),
            batches: 1 + rng.below(3),
            extends: rng.unit_f64(),
            rests: [0.0, 0.02, 0.2][rng.below(3) as usize],
            longest_rest_ms: 1 << rng.below(8),
        }
    }

    pub(crate) fn is_ample(&self) -> bool {
        *self == Memory::default()
    }

    /// Draws how long a client pauses before it reads replies; none: it does not pause.
    pub(crate) fn rest(&self, rng: &mut Rng) -> Option<Duration> {
        let rests = self.rests > 0.0 && rng.chance(self.rests);
        rests.then(|| Duration::from_millis(rng.below(self.longest_rest_ms.max(1)) + 1))
    }
}
