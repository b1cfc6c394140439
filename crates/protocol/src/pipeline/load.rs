//! Loads the entries of keys.

use crate::command::KeyList;
use crate::error::{CommandError, Result};
use crate::shared::poll::poll_once;
use smallvec::SmallVec;
use softflash_store::value::Wanted;
use softflash_store::{CommitToken, Entry, Store, Transaction};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Entries of a command's keys, in their order.
pub(crate) type Entries = SmallVec<[Option<Entry>; 1]>;

/// Loaded entries, and what must be durable before they may be returned to a client.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    pub entries: Entries,
    pub token: CommitToken,
}

/// The error of a request whose values are too many for one reply.
pub(crate) fn too_large(limit: u64) -> CommandError {
    let text = format!(
        "ERR reply too large: values of more than {limit} bytes, the most of one reply with this \
         memory; ask for fewer at once or raise --memory"
    );
    CommandError::Quoting(text.into_bytes())
}

/// So many values need no look at their lengths before they are loaded.
pub(crate) const FEW_VALUES: usize = 2;

/// Loads keys of this thread's shard, if the values have at most `limit` bytes together, as far as
/// memory tells their lengths. The snapshot is taken at the first poll.
pub(crate) async fn load(
    store: Store,
    keys: KeyList,
    wanted: Wanted,
    limit: u64,
) -> Result<Loaded> {
    if let [key] = keys.as_slice() {
        let mut transaction = store.begin();
        let entries = SmallVec::from_buf([transaction.find(key, wanted).await?]);
        return Ok(Loaded { entries, token: transaction.token().clone() });
    }
    if keys.len() > FEW_VALUES && wanted == Wanted::Entries {
        let bytes = keys.iter().filter_map(|key| store.value_bytes_in_memory(key)).sum::<u64>();
        if bytes > limit {
            return Err(too_large(limit));
        }
    }
    // Boxed, to keep the future of the common read small.
    Box::pin(load_together(keys, wanted, || store.begin())).await
}

/// Loads all keys concurrently, each through a store transaction of its own, so that flash reads
/// overlap and all entries are from one instant.
pub(crate) async fn load_together(
    keys: KeyList,
    wanted: Wanted,
    transaction: impl Fn() -> Transaction,
) -> Result<Loaded> {
    let count = keys.len();
    let mut loaded =
        Loaded { entries: (0..count).map(|_| None).collect(), token: CommitToken::default() };
    let mut waiting = Vec::new();
    for (index, key) in keys.into_iter().enumerate() {
        let mut transaction = transaction();
        let mut read = Box::pin(async move {
            let entry = transaction.find(&key, wanted).await?;
            Ok((entry, transaction.token().clone()))
        });
        match poll_once(read.as_mut()).await {
            Poll::Ready(found) => loaded.set(index, found?),
            Poll::Pending => waiting.push((index, read)),
        }
    }
    poll_fn(|context| poll_all(&mut waiting, &mut loaded, context)).await?;
    Ok(loaded)
}

type Found = Result<(Option<Entry>, CommitToken)>;

/// Polls in order, so that reads blocked by a gate pass it together.
fn poll_all<F: Future<Output = Found>>(
    waiting: &mut Vec<(usize, Pin<Box<F>>)>,
    loaded: &mut Loaded,
    context: &mut Context<'_>,
) -> Poll<Result<()>> {
    let mut failed = None;
    waiting.retain_mut(|(index, read)| match read.as_mut().poll(context) {
        Poll::Pending => true,
        Poll::Ready(Ok(found)) => {
            loaded.set(*index, found);
            false
        }
        Poll::Ready(Err(error)) => {
            failed = Some(error);
            false
        }
    });
    match failed {
        Some(error) => Poll::Ready(Err(error)),
        None if waiting.is_empty() => Poll::Ready(Ok(())),
        None => Poll::Pending,
    }
}

impl Loaded {
    fn set(&mut self, index: usize, (entry, token): (Option<Entry>, CommitToken)) {
        if let Some(place) = self.entries.get_mut(index) {
            *place = entry;
        }
        self.token.merge(&token);
    }
}
