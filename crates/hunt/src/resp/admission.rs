//! The server's memory for requests and replies, limited as the scenario says.

use crate::memory::Memory;
use softflash_base::random::Rng;
use softflash_protocol::{Admission, ReplyPermit};
use softflash_runtime::{BytePermit, ByteSemaphore};
use std::convert::Infallible;

/// The memory that all connections share.
pub(crate) struct SharedMemory {
    pub limits: Memory,
    requests: ByteSemaphore,
    batches: ByteSemaphore,
}

impl SharedMemory {
    pub fn new(limits: Memory) -> SharedMemory {
        SharedMemory {
            requests: ByteSemaphore::new(limits.request_bytes),
            batches: ByteSemaphore::new(limits.batches),
            limits,
        }
    }

    /// The admission of one connection.
    pub fn of_connection(&self, rng: &mut Rng) -> TightAdmission {
        TightAdmission {
            limits: self.limits.clone(),
            requests: self.requests.clone(),
            batches: self.batches.clone(),
            held: Vec::new(),
            held_bytes: 0,
            // With unlimited memory no random numbers are drawn from the client's stream.
            rng: if self.limits.is_ample() { rng.clone() } else { Rng::seeded(rng.next_u64()) },
        }
    }
}

/// The admission of one connection.
pub(crate) struct TightAdmission {
    limits: Memory,
    requests: ByteSemaphore,
    batches: ByteSemaphore,
    held: Vec<BytePermit>,
    held_bytes: u64,
    rng: Rng,
}

impl Admission for TightAdmission {
    type Permit = TightPermit;
    type Refusal = Infallible;

    fn free_request_bytes(&self) -> u64 {
        self.limits.free_request_bytes
    }

    /// A connection that already holds memory gets more immediately, even beyond the limit: two
    /// connections that wait for each other's memory would deadlock.
    async fn reserve(&mut self, bytes: u64) -> Result<(), Infallible> {
        let granted = match self.held.is_empty() {
            true => Some(self.requests.acquire(bytes).await),
            false => self.requests.try_acquire(bytes),
        };
        self.held.extend(granted);
        self.held_bytes += bytes;
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        let held = std::mem::replace(&mut self.held_bytes, bytes);
        assert!(bytes <= held, "a connection uses {bytes} of {held} reserved bytes");
        if bytes == 0 {
            self.held.clear();
        }
    }

    async fn try_begin(&mut self) -> Option<TightPermit> {
        let turn = self.batches.try_acquire(1)?;
        Some(TightPermit { turn: Some(turn), ..self.begin_little() })
    }

    async fn begin(&mut self) -> TightPermit {
        let turn = self.batches.acquire(1).await;
        TightPermit { turn: Some(turn), ..self.begin_little() }
    }

    fn begin_little(&mut self) -> TightPermit {
        let rng = Rng::seeded(self.rng.next_u64());
        TightPermit { extends: self.limits.extends, rng, charged: u64::MAX, turn: None }
    }
}

/// The permit of one batch.
pub(crate) struct TightPermit {
    extends: f64,
    rng: Rng,
    /// Bytes of replies that have not been sent, once their number is known.
    charged: u64,
    /// The permit's share of the limit on batches with unsent replies.
    #[expect(dead_code, reason = "dropping it releases the memory")]
    turn: Option<BytePermit>,
}

impl ReplyPermit for TightPermit {
    fn try_extend(&mut self) -> bool {
        self.rng.chance(self.extends)
    }

    fn expect(&self, _bytes: u64) {}

    fn settle(&mut self, bytes: u64, _commands: u64) {
        self.charged = bytes;
    }

    fn recharge(&mut self, bytes: u64) {
        assert!(bytes <= self.charged, "{bytes} bytes are to be sent, of {}", self.charged);
        self.charged = bytes;
    }
}
