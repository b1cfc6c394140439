//! Lookups of several keys: one message to each shard, however many of the keys it has, and work
//! on so many keys that only some of it may be under way.

use super::Store;
use super::exclusive::Exclusive;
use super::token::CommitToken;
use crate::error::Result;
use crate::shard::{Read, Reader};
use crate::value::{Entry, Wanted};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::{LocalBoxFuture, try_join_all};
use futures_util::stream::FuturesUnordered;
use softflash_base::ShardId;
use softflash_runtime::BytePermit;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::task::Poll;

/// Work on more keys than this takes its turn.
pub(super) const FEW_STEPS: usize = 16;

/// Lookups of one request on a shard that wait at a time, for flash or for a gate. Each takes about
/// 1 KiB of memory, and a request has up to a million keys; more reads at a time are no faster.
const MOST_WAITING: usize = 64;

/// Keeps its place among the long work of a thread until it is dropped.
pub struct LongWork {
    _permit: Option<BytePermit>,
}

/// Lookups on one shard, in the order of the keys.
type Job<R> = LocalBoxFuture<'static, Vec<R>>;

impl Store {
    /// Begins work of so many steps (keys or commands), which must not wait for the memory of
    /// replies, nor for a gate. A thread does few pieces of long work at a time; the others have
    /// not begun and hold nothing. So each step of a short request waits for few of them, however
    /// many clients have long requests.
    pub async fn begin_long(&self, steps: usize) -> LongWork {
        let permit = match steps > FEW_STEPS {
            true => Some(self.shard.long_work().acquire(1).await),
            false => None,
        };
        LongWork { _permit: permit }
    }

    /// Reads keys into the cache before an exclusive transaction, so that it does not wait for
    /// flash while it blocks other tasks. Ignores errors: the transaction will get them.
    pub async fn prefetch<'k>(&self, keys: impl IntoIterator<Item = (&'k Bytes, Wanted)>) {
        let keys = keys.into_iter().map(|(key, wanted)| (key.clone(), wanted));
        let read = |store: Store, keys: Vec<(Bytes, Wanted)>| -> Job<()> {
            Box::pin(async move {
                let reader = &reader_of(&store);
                // The value is dropped as soon as it is in the cache.
                all(keys.iter().map(async |(key, wanted)| {
                    let _ = reader.read(key, false, *wanted).await;
                }))
                .await
            })
        };
        let _ = self.on_shards_of(keys, |(key, _)| key, read).await;
    }

    /// About the length of the values of these keys together, without reading all of a large one.
    pub async fn value_bytes(&self, keys: &[Bytes]) -> Result<u64> {
        let lengths = |store: Store, keys: Vec<Bytes>| -> Job<Result<u64>> {
            Box::pin(async move {
                let reader = &reader_of(&store);
                all(keys.iter().map(|key| reader.value_bytes(key))).await
            })
        };
        self.on_shards_of(keys.iter().cloned(), |key| key, lengths).await?.into_iter().sum()
    }

    /// Runs `job` once on every shard that has some of the keys, on all of them at once; the
    /// results are in the order of the keys.
    async fn on_shards_of<K: Send + 'static, R: Send + 'static>(
        &self,
        keys: impl Iterator<Item = K>,
        key_of: impl Fn(&K) -> &Bytes,
        job: impl Fn(Store, Vec<K>) -> Job<R> + Copy + Send + 'static,
    ) -> Result<Vec<R>> {
        let mut shares: BTreeMap<ShardId, (Vec<usize>, Vec<K>)> = BTreeMap::new();
        let mut count = 0;
        for key in keys {
            let (places, share) = shares.entry(self.shard_of(key_of(&key))).or_default();
            places.push(count);
            share.push(key);
            count += 1;
        }
        let hint = self.hint;
        let (places, jobs): (Vec<_>, Vec<_>) = shares
            .into_iter()
            .map(|(shard, (places, keys))| {
                (places, self.run_on(shard, move |store| job(store.hinted(hint), keys)))
            })
            .unzip();
        let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
        for (places, found) in places.into_iter().zip(try_join_all(jobs).await?) {
            for (place, found) in places.into_iter().zip(found) {
                if let Some(result) = results.get_mut(place) {
                    *result = Some(found);
                }
            }
        }
        Ok(results.into_iter().flatten().collect())
    }
}

impl Exclusive {
    /// The entries of these keys, all from one instant, and the writes that they are from.
    pub async fn find_all(
        &self,
        keys: &[Bytes],
        wanted: Wanted,
    ) -> Result<(Vec<Option<Entry>>, CommitToken)> {
        let read = move |store: Store, keys: Vec<Bytes>| -> Job<Result<Read>> {
            Box::pin(async move {
                let reader = &reader_of(&store);
                all(keys.iter().map(|key| reader.read(key, true, wanted))).await
            })
        };
        let store = self.store();
        let found = store.on_shards_of(keys.iter().cloned(), |key| key, read).await?;
        let (mut entries, mut token) = (Vec::with_capacity(keys.len()), CommitToken::default());
        for (key, read) in keys.iter().zip(found) {
            let read = read?;
            token.add(store.shard_of(key), read.seq);
            entries.push(read.entry);
        }
        Ok((entries, token))
    }
}

fn reader_of(store: &Store) -> Reader<'_> {
    Reader::of(&store.shard, store.hint).for_batch(store.held.as_deref())
}

/// The results of all futures, in their order. Each is polled in turn; those that have to wait are
/// kept, and no more begin while [`MOST_WAITING`] of them wait.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut results = Vec::new();
    let mut waiting = FuturesUnordered::new();
    for (place, future) in futures.enumerate() {
        let mut future = Box::pin(future);
        let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        match polled {
            Poll::Ready(result) => results.push(Some(result)),
            Poll::Pending => {
                results.push(None);
                waiting.push(async move { (place, future.await) });
            }
        }
        if waiting.len() == MOST_WAITING {
            take_next(&mut waiting, &mut results).await;
        }
    }
    while take_next(&mut waiting, &mut results).await {}
    results.into_iter().flatten().collect()
}

/// Waits for one of the futures, and puts its result into its place. False if there is none.
async fn take_next<T>(
    waiting: &mut FuturesUnordered<impl Future<Output = (usize, T)>>,
    results: &mut [Option<T>],
) -> bool {
    let Some((place, result)) = waiting.next().await else { return false };
    if let Some(known) = results.get_mut(place) {
        *known = Some(result);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use softflash_runtime::VirtualExecutor;
    use std::cell::Cell;
    use std::time::Duration;

    #[test]
    fn few_futures_wait_at_a_time_and_results_keep_their_order() {
        let seed = 7;
        let (executor, mut rng) = (VirtualExecutor::new(0), Rng::seeded(seed));
        let runtime = executor.handle();
        let pauses: Vec<u64> = (0..10 * MOST_WAITING).map(|_| rng.below(3)).collect();
        let (waiting, most) = (Cell::new(0), Cell::new(0));
        let futures = pauses.iter().enumerate().map(async |(place, pause)| {
            if *pause > 0 {
                waiting.set(waiting.get() + 1);
                most.set(waiting.get().max(most.get()));
                runtime.sleep_until(runtime.now() + Duration::from_millis(*pause)).await;
                waiting.set(waiting.get() - 1);
            }
            place
        });
        let results = executor.block_on(all(futures));
        assert!(results.into_iter().eq(0..pauses.len()), "seed {seed}");
        assert_eq!(most.get(), MOST_WAITING, "seed {seed}");
    }
}
