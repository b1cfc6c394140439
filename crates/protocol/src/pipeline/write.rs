//! Commands as transactions on the store: read, change, commit, and retry on a conflict.

use crate::command::{Command, Effects, Lookups};
use crate::context::Context;
use crate::error::Result;
use crate::handlers::{Call, keyed_handler, loads, looks_up_first, lookups, wanted};
use crate::pipeline::LITTLE_BYTES;
use crate::pipeline::load::{Entries, FEW_VALUES, Loaded, load_together, too_large};
use crate::resp::reply::Reply;
use crate::shared::poll::poll_once;
use crate::shared::recording;
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_store::value::Wanted;
use softflash_store::{CommitToken, Store, StoreError, Transaction};
use std::pin::pin;
use std::task::Poll;

/// Number of attempts before a command locks its shards exclusively.
const TRIES: usize = 8;

/// Runs a command on the entries loaded for it.
pub(crate) fn apply(
    store: &Store,
    command: &Command,
    entries: &mut [Option<softflash_store::Entry>],
    effects: &mut Effects,
) -> Result<Reply> {
    let Some(keyed) = keyed_handler(command) else { return Ok(Reply::None) };
    // Before it runs: it may take the entries.
    let lookups = lookups(command, entries);
    let mut call = Call { name: command.spec.name, args: &command.args, entries, effects, store };
    let reply = (keyed.run)(&mut call);
    if reply.as_ref().err().is_none_or(|error| looks_up_first(command, error)) {
        effects.lookups = lookups;
    }
    reply
}

/// The reply of a command that changes nothing, and its lookups.
pub(crate) fn apply_read(
    store: &Store,
    command: &Command,
    entries: &mut Entries,
) -> (Reply, Lookups) {
    let mut effects = Effects::default();
    let reply = apply(store, command, entries, &mut effects);
    debug_assert!(effects.is_empty(), "{} is marked as a read", command.spec.name);
    (reply.into(), effects.lookups)
}

/// Adds changes to a transaction.
pub(crate) fn stage(transaction: &mut Transaction, effects: Effects) -> Result<()> {
    if effects.clear {
        transaction.clear();
    }
    for (key, entry) in effects.writes {
        match entry {
            Some(entry) => transaction.put(key, entry)?,
            None => transaction.delete(key)?,
        }
    }
    Ok(())
}

/// Runs a command whose keys are all on this thread's shard.
pub(crate) async fn run_single(
    store: &Store,
    command: &Command,
    context: &Context,
    token: &mut CommitToken,
) -> Reply {
    let (keys, wanted) = (loads(command), wanted(command));
    if keys.len() > 1 {
        store.prefetch(keys.iter().map(|key| (key, wanted))).await;
    }
    for _ in 0..TRIES {
        let mut transaction = store.begin();
        let (mut entries, at_once) = match read_all(&mut transaction, &keys, wanted).await {
            Ok(read) => read,
            Err(error) => return Reply::Error(error),
        };
        let mut effects = Effects::default();
        let reply = match apply(store, command, &mut entries, &mut effects) {
            Ok(reply) => reply,
            Err(error) => {
                context.counters.count_lookups(effects.lookups);
                // An error may also reveal data that were read.
                token.merge(transaction.token());
                return Reply::Error(error);
            }
        };
        if effects.is_empty() {
            if at_once {
                // The reply was correct at the time of the read, regardless of later changes.
                token.merge(transaction.token());
                context.counters.count_lookups(effects.lookups);
                return reply;
            }
            // The entries may be from different times.
            break;
        }
        let changes = context.recordings.is_on().then(|| recording::changes(&effects));
        let lookups = effects.lookups;
        if let Err(error) = stage(&mut transaction, effects) {
            return Reply::Error(error);
        }
        match store.commit(transaction).await {
            Ok(committed) => {
                token.merge(&committed);
                context.counters.count_lookups(lookups);
                if let Some(changes) = changes {
                    context.recordings.tell(store, &changes);
                }
                return reply;
            }
            Err(StoreError::Conflict) => {}
            Err(error) => return Reply::Error(error.into()),
        }
    }
    Box::pin(run_alone(store, command, vec![store.local_id()], context, token)).await
}

/// Loads keys one after the other; also returns whether all are from one instant.
async fn read_all(
    transaction: &mut Transaction,
    keys: &[Bytes],
    wanted: Wanted,
) -> Result<(Entries, bool)> {
    let mut entries = Entries::new();
    let mut at_once = true;
    for key in keys {
        let mut read = pin!(transaction.find(key, wanted));
        let entry = match poll_once(read.as_mut()).await {
            Poll::Ready(entry) => entry?,
            Poll::Pending => {
                at_once = keys.len() == 1;
                read.await?
            }
        };
        entries.push(entry);
    }
    Ok((entries, at_once))
}

/// Runs a command with exclusive access to the shards of its keys.
pub(crate) async fn run_alone(
    store: &Store,
    command: &Command,
    shards: Vec<ShardId>,
    context: &Context,
    token: &mut CommitToken,
) -> Reply {
    try_alone(store, command, shards, context, token).await.into()
}

/// Refuses values that are too many for one reply before they are read; returns their bytes.
async fn check_reply(store: &Store, context: &Context, keys: &[Bytes]) -> Result<u64> {
    let limit = context.services.max_reply_bytes;
    let bytes = store.value_bytes(keys).await?;
    if bytes > limit { Err(too_large(limit)) } else { Ok(bytes) }
}

/// Reads keys into the cache before the gates of their shards are held, as long work if they are
/// many. `values` are those whose values are wanted: values that are too many for one reply are
/// refused. Large ones wait for the memory of replies: then without a place that others need.
pub(crate) async fn prepare<'k>(
    store: &Store,
    context: &Context,
    values: &[Bytes],
    keys: impl ExactSizeIterator<Item = (&'k Bytes, Wanted)>,
) -> Result<()> {
    let mut work = Some(store.begin_long(keys.len()).await);
    let bytes = match values.len() > FEW_VALUES {
        true => check_reply(store, context, values).await?,
        false => u64::MAX,
    };
    if !values.is_empty() && bytes > LITTLE_BYTES {
        work = None;
    }
    if keys.len() > 0 {
        store.prefetch(keys).await;
    }
    drop(work);
    Ok(())
}

async fn try_alone(
    store: &Store,
    command: &Command,
    shards: Vec<ShardId>,
    context: &Context,
    token: &mut CommitToken,
) -> Result<Reply> {
    let (keys, wanted) = (loads(command), wanted(command));
    let values = if wanted == Wanted::Entries { &keys[..] } else { &[] };
    prepare(store, context, values, keys.iter().map(|key| (key, wanted))).await?;
    let early = match planted::bug(Bug::AloneReadsBeforeGate) {
        true => Some(load_together(keys.clone(), wanted, || store.begin()).await?),
        false => None,
    };
    let exclusive = store.exclusive_for(shards, keys.len()).await?;
    let mut loaded = match early {
        Some(loaded) => loaded,
        None => {
            let (entries, token) = exclusive.find_all(&keys, wanted).await?;
            Loaded { entries: entries.into(), token }
        }
    };
    if command.is_read() {
        context.recordings.tell_reads(store, || loads(command), &loaded.entries);
    }
    let mut effects = Effects::default();
    // Before the error is returned: an error may also reveal data that were read.
    token.merge(&loaded.token);
    let reply = apply(store, command, &mut loaded.entries, &mut effects);
    let lookups = effects.lookups;
    let reply = reply.inspect_err(|_| context.counters.count_lookups(lookups))?;
    if !effects.is_empty() {
        let changes = context.recordings.is_on().then(|| recording::changes(&effects));
        let mut transaction = exclusive.begin();
        stage(&mut transaction, effects)?;
        token.merge(&store.commit(transaction).await?);
        if let Some(changes) = changes {
            context.recordings.tell(store, &changes);
        }
    }
    context.counters.count_lookups(lookups);
    Ok(reply)
}
