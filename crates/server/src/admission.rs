//! The memory of a connection: its share of the server's budgets.

use crate::budget::{Permit, ReplyBudget, RequestBudget, RequestTooLarge, Reservation};
use softflash_protocol::Admission;
use softflash_store::Store;
use softflash_store::memory::SpareMemory;
use std::time::Duration;

/// A body of this size may be larger than the store's memtables: before it is received, the store
/// must have flushed its data. The store itself does not ensure that, because each empty shard
/// accepts a value of any size.
const LARGE_BODY_BYTES: u64 = 4 << 20;

/// Polling interval and maximum number of polls: a store that cannot flush reports that itself.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
const MAX_LOOKS: u32 = 2000;

/// Budgets shared by all connections of a thread.
#[derive(Clone)]
pub(crate) struct Budgets {
    pub requests: RequestBudget,
    pub replies: ReplyBudget,
    /// The memory of both.
    pub spare: SpareMemory,
    /// With fewer bytes than this in its memtables, the store has nothing to flush.
    pub calm_store_bytes: u64,
}

/// The memory admission of one connection.
pub(crate) struct ServerAdmission {
    store: Store,
    reservation: Reservation,
    replies: ReplyBudget,
    spare: SpareMemory,
    calm_store_bytes: u64,
}

impl ServerAdmission {
    pub fn new(store: Store, budgets: &Budgets) -> ServerAdmission {
        ServerAdmission {
            store,
            reservation: budgets.requests.reservation(),
            replies: budgets.replies.clone(),
            spare: budgets.spare.clone(),
            calm_store_bytes: budgets.calm_store_bytes,
        }
    }

    /// Whether the request that is being received holds memory of the shared budget.
    pub fn holds_memory(&self) -> bool {
        self.reservation.held_bytes() > 0
    }

    /// Waits until the read caches have left the memory that was taken.
    async fn make_room(&self) {
        if self.spare.needs_cache_shrink() {
            // If the store fails here, the request itself will get the error.
            let _ = self.store.fit_caches().await;
        }
    }

    async fn wait_for_flushes(&self) {
        for _ in 0..MAX_LOOKS {
            match self.store.stats().await {
                Ok(stats) if stats.memtable_bytes > self.calm_store_bytes => {}
                // If the store fails here, the request itself will get the error.
                Ok(_) | Err(_) => return,
            }
            let runtime = self.store.runtime();
            runtime.sleep_until(runtime.now() + LOOK_AGAIN).await;
        }
    }
}

impl Admission for ServerAdmission {
    type Permit = Permit;
    type Refusal = RequestTooLarge;

    async fn reserve(&mut self, bytes: u64) -> Result<(), RequestTooLarge> {
        self.reservation.grow(bytes).await?;
        self.make_room().await;
        if bytes >= LARGE_BODY_BYTES {
            self.wait_for_flushes().await;
        }
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        let held = self.reservation.held_bytes();
        self.reservation.shrink(held.saturating_sub(bytes));
    }

    async fn try_begin(&mut self) -> Option<Permit> {
        let permit = self.replies.try_begin()?;
        self.make_room().await;
        Some(permit)
    }

    async fn begin(&mut self) -> Permit {
        let permit = self.replies.begin().await;
        self.make_room().await;
        permit
    }

    fn begin_little(&mut self) -> Permit {
        self.replies.begin_little()
    }
}
