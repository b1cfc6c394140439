//! Admission of large values that are read from flash for clients.
//!
//! The length of a value is known before its read, and that of a reply is not: a server that lets
//! many requests begin, since replies were short of late, would hold all their values at once. So
//! these reads wait while unsent replies have the memory that there is for them. One is always
//! admitted where there is none.
//!
//! The values of a batch of requests count as unsent from their admission on. A batch that holds
//! one does not wait for the next one: it could wait for another batch that waits for it.

use crate::spare::{HeldValues, SpareMemory};
use futures_util::future::{Either, select};
use softflash_runtime::{BytePermit, ByteSemaphore, RuntimeHandle};
use std::pin::pin;
use std::time::Duration;

/// Shorter values are read without admission: small requests do not wait for large ones.
const LARGE_BYTES: u64 = 64 << 10;

/// The pause between two looks at the memory of unsent replies.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The reads of large values of one shard.
pub(in crate::shard) struct LargeReads {
    runtime: RuntimeHandle,
    spare: SpareMemory,
    /// Bytes of the reads under way, and the line of those that wait.
    under_way: ByteSemaphore,
}

/// A value that was admitted, until it has been read.
pub(in crate::shard) struct Admitted {
    _permit: Option<BytePermit>,
    /// Whether it waited, so that what was looked up before may have changed.
    pub(in crate::shard) has_waited: bool,
}

impl LargeReads {
    /// Those of one of so many shards.
    pub(in crate::shard) fn new(
        runtime: RuntimeHandle,
        spare: SpareMemory,
        shards: u16,
    ) -> LargeReads {
        let share = spare.reply_bytes() / u64::from(shards.max(1));
        LargeReads { runtime, spare, under_way: ByteSemaphore::new(share.max(1)) }
    }

    /// Whether a value of so many bytes is to be admitted before it is read.
    pub(in crate::shard) fn wants_admission(&self, bytes: u64) -> bool {
        bytes > LARGE_BYTES && self.spare.total_bytes() > 0
    }

    /// Waits, in the order of arrival, until a value of so many bytes may be read for this batch.
    pub(in crate::shard) async fn admit(&self, bytes: u64, held: Option<&HeldValues>) -> Admitted {
        let holds_another = || held.is_some_and(HeldValues::is_any);
        let (mut permit, mut has_waited) = (None, false);
        if !holds_another() {
            permit = self.under_way.try_acquire(bytes);
            if permit.is_none() {
                has_waited = true;
                permit = self.acquire_unless(bytes, holds_another).await;
            }
        }
        if !self.spare.holds_reply(bytes) && !holds_another() {
            has_waited = true;
            let _counted = self.spare.wait();
            while !self.spare.holds_reply(bytes) && !holds_another() {
                self.look_again().await;
            }
        }
        held.iter().for_each(|held| held.take(bytes));
        Admitted { _permit: permit, has_waited }
    }

    /// A permit, in the order of arrival; none if `ends` becomes true meanwhile.
    async fn acquire_unless(&self, bytes: u64, ends: impl Fn() -> bool) -> Option<BytePermit> {
        let mut permit = pin!(self.under_way.acquire(bytes));
        while !ends() {
            if let Either::Left((permit, _)) = select(permit.as_mut(), self.look_again()).await {
                return Some(permit);
            }
        }
        None
    }

    fn look_again(&self) -> impl Future<Output = ()> + Unpin + use<> {
        self.runtime.sleep_until(self.runtime.now() + LOOK_AGAIN)
    }
}
