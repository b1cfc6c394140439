//! The clock that the log records, offline: reading it, and setting it back.
//!
//! A store that once ran with a wall clock that was ahead keeps that time: a key that a client has
//! seen expired must stay expired. Setting the clock back keeps this promise by deleting, before,
//! every key that has expired by the recorded clock.

use crate::error::{Result, StoreError};
use crate::layout::StoreLayout;
use crate::options::{ClockSource, StoreOptions};
use crate::shard::recovery::OnLogLoss;
use crate::shard::recovery::decisions::Decisions;
use crate::shard::recovery::examination::Examination;
use crate::shard::{RepairEdits, Scanner};
use crate::store::{CommitToken, Store, open_all, open_all_for_repair};
use futures_util::future::join_all;
use softflash_base::{ShardId, SliceId};
use softflash_device::Device;
use softflash_ftl::Hint;
use softflash_runtime::RuntimeHandle;
use std::sync::Arc;

/// A lead of the store's clock over the wall clock that is worth a word: shorter ones are from
/// corrections of the wall clock.
pub const NOTABLE_LEAD_MS: u64 = 1000;

/// Keys deleted at a time.
const BATCH: usize = 256;

/// A span of time for people, in its two largest units: `365 d 2 h`.
pub fn span(ms: u64) -> String {
    let units = [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1)];
    let (mut rest, mut parts) = (ms, Vec::new());
    for (unit, unit_ms) in units {
        let count = rest / unit_ms;
        rest %= unit_ms;
        if count > 0 || !parts.is_empty() {
            parts.push((count, unit));
        }
    }
    parts.truncate(2);
    let shown = parts.iter().filter(|(count, _)| *count > 0);
    let shown: Vec<String> = shown.map(|(count, unit)| format!("{count} {unit}")).collect();
    if shown.is_empty() { "0 s".to_owned() } else { shown.join(" ") }
}

/// The time that the logs record, the latest of all shards, in milliseconds since the Unix epoch; 0
/// for a store that has never recorded one. Writes nothing.
///
/// # Errors
/// A log that cannot be read.
pub async fn recorded_clock(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
) -> Result<u64> {
    let decisions = Decisions::default();
    // Concurrently: the shards ask each other for the outcome of transactions.
    let shards = (0..layout.shards).map(ShardId).map(|shard| {
        let (decisions, on_log_loss) = (&decisions, OnLogLoss::Refuse);
        async move {
            let spec = Examination { shard, device, layout, decisions, runtime, on_log_loss };
            let recorded = match spec.run().await {
                Ok(examined) => {
                    examined.flash.stop();
                    examined.recovered.map(|_| examined.recorded_ms)
                }
                Err(error) => Err(error),
            };
            recorded.inspect_err(|error| decisions.abandon(shard, error))
        }
    });
    let recorded: Result<Vec<u64>> = join_all(shards).await.into_iter().collect();
    Ok(recorded?.into_iter().max().unwrap_or(0))
}

/// That all keys which have expired by the recorded clock are deleted.
#[derive(Debug)]
pub struct ExpiredDeleted {
    /// The number of keys.
    pub keys: u64,
}

/// Deletes the keys that have expired by the recorded clock, durably.
///
/// # Errors
/// An error of the store; the keys so far stay deleted.
pub async fn delete_expired(
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    runtime: &RuntimeHandle,
) -> Result<ExpiredDeleted> {
    let options = options(ClockSource::Recorded);
    let stores = open_all(Arc::clone(device), layout, &options, runtime).await?;
    let mut deleted = Ok(0);
    for store in &stores {
        if let Ok(keys) = deleted {
            deleted = delete_expired_of(store).await.map(|more| keys + more);
        }
    }
    for store in &stores {
        let closed = store.close().await;
        deleted = deleted.and_then(|keys| closed.map(|()| keys));
    }
    deleted.map(|keys| ExpiredDeleted { keys })
}

/// Deletes the expired keys of the shard of `store`.
async fn delete_expired_of(store: &Store) -> Result<u64> {
    let (layout, mut deleted, mut last) = (store.layout(), 0, CommitToken::default());
    for slice in layout.slices_of(store.local_id()).map(SliceId) {
        let mut after = None;
        loop {
            let keys =
                Scanner::of(store.local(), Hint::FOREGROUND).expired(slice, after, BATCH).await?;
            let mut transaction = store.begin();
            after = keys.last().cloned();
            deleted += keys.len() as u64;
            if after.is_none() {
                break;
            }
            keys.into_iter().try_for_each(|key| transaction.delete(key))?;
            last.merge(&store.commit(transaction).await?);
        }
    }
    store.durable(&last).await?;
    Ok(deleted)
}

/// Makes the logs record `to_ms` in place of a later time. Call it on another executor than
/// [`delete_expired`], whose tasks hold the device until that executor is dropped.
///
/// # Errors
/// An error of the store; the clock is then either set back or as before, in each shard, and the
/// call can be repeated.
pub async fn set_clock_back(
    _: &ExpiredDeleted,
    device: &Arc<dyn Device>,
    layout: &StoreLayout,
    to_ms: u64,
    runtime: &RuntimeHandle,
) -> Result<()> {
    let (device, options) = (Arc::clone(device), options(ClockSource::Fixed(to_ms)));
    let refuse = OnLogLoss::Refuse;
    let stores = open_all_for_repair(device, layout, &options, runtime, refuse).await?;
    let mut outcome = Ok::<(), StoreError>(());
    for store in &stores {
        // The segment that the opening has begun records the new time; the others go.
        let alone = RepairEdits::of(store.local()).release_old_log().await;
        outcome = outcome.and(alone);
        outcome = outcome.and(store.close().await);
    }
    outcome
}

fn options(clock: ClockSource) -> StoreOptions {
    StoreOptions { clock, scrub: None, ..StoreOptions::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_its_two_largest_units() {
        for (ms, text) in [
            (0, "0 s"),
            (7, "7 ms"),
            (1007, "1 s 7 ms"),
            (60_000, "1 min"),
            (3_600_000 + 5000, "1 h"),
            (365 * 86_400_000 + 7_300_000, "365 d 2 h"),
        ] {
            assert_eq!(span(ms), text);
        }
    }
}
