//! Commands as transactions on the store: read, change, commit, and retry on a conflict.

use crate::command::{Command, Effects};
use crate::error::Result;
use crate::handlers::{Call, keyed_handler, loads};
use crate::pipeline::load::{Entries, load_together};
use crate::resp::reply::Reply;
use crate::shared::poll::poll_once;
use crate::shared::recording::{self, Recordings};
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_store::{Store, StoreError, Ticket, View};
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
    let mut call = Call { name: command.spec.name, args: &command.args, entries, effects, store };
    (keyed.run)(&mut call)
}

/// The reply of a command that changes nothing.
pub(crate) fn apply_read(store: &Store, command: &Command, entries: &mut Entries) -> Reply {
    let mut effects = Effects::default();
    let reply = apply(store, command, entries, &mut effects);
    debug_assert!(effects.is_empty(), "{} is marked as a read", command.spec.name);
    reply.into()
}

/// Adds changes to a transaction.
pub(crate) fn stage(view: &mut View, effects: Effects) -> Result<()> {
    if effects.clear {
        view.clear();
    }
    for (key, entry) in effects.writes {
        match entry {
            Some(entry) => view.put(key, entry)?,
            None => view.delete(key)?,
        }
    }
    Ok(())
}

/// Runs a command whose keys are all on this thread's shard.
pub(crate) async fn run_single(
    store: &Store,
    command: &Command,
    recordings: &Recordings,
    ticket: &mut Ticket,
) -> Reply {
    let keys = loads(command);
    if keys.len() > 1 {
        store.prefetch(&keys).await;
    }
    for _ in 0..TRIES {
        let mut view = store.view();
        let (mut entries, at_once) = match read_all(&mut view, &keys).await {
            Ok(read) => read,
            Err(error) => return Reply::Error(error),
        };
        let mut effects = Effects::default();
        let reply = match apply(store, command, &mut entries, &mut effects) {
            Ok(reply) => reply,
            Err(error) => {
                // An error may also reveal data that were read.
                ticket.merge(view.ticket());
                return Reply::Error(error);
            }
        };
        if effects.is_empty() {
            if at_once {
                // The reply was correct at the time of the read, regardless of later changes.
                ticket.merge(view.ticket());
                return reply;
            }
            // The entries may be from different times.
            break;
        }
        let changes = recordings.is_on().then(|| recording::changes(&effects));
        if let Err(error) = stage(&mut view, effects) {
            return Reply::Error(error);
        }
        match store.commit(view).await {
            Ok(committed) => {
                ticket.merge(&committed);
                if let Some(changes) = changes {
                    recordings.tell(store, &changes);
                }
                return reply;
            }
            Err(StoreError::Conflict) => {}
            Err(error) => return Reply::Error(error.into()),
        }
    }
    Box::pin(run_alone(store, command, vec![store.local_id()], recordings, ticket)).await
}

/// Loads keys one after the other; also returns whether all are from one instant.
async fn read_all(view: &mut View, keys: &[Bytes]) -> Result<(Entries, bool)> {
    let mut entries = Entries::new();
    let mut at_once = true;
    for key in keys {
        let mut read = pin!(view.get(key));
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
    recordings: &Recordings,
    ticket: &mut Ticket,
) -> Reply {
    try_alone(store, command, shards, recordings, ticket).await.into()
}

async fn try_alone(
    store: &Store,
    command: &Command,
    shards: Vec<ShardId>,
    recordings: &Recordings,
    ticket: &mut Ticket,
) -> Result<Reply> {
    let keys = loads(command);
    if !keys.is_empty() {
        store.prefetch(&keys).await;
    }
    let early = match planted::bug(Bug::AloneReadsBeforeGate) {
        true => Some(load_together(keys.clone(), || store.view()).await?),
        false => None,
    };
    let exclusive = store.exclusive(shards).await?;
    let mut loaded = match early {
        Some(loaded) => loaded,
        None => load_together(keys, || exclusive.view()).await?,
    };
    if command.is_read() {
        recordings.tell_reads(store, || loads(command), &loaded.entries);
    }
    let mut effects = Effects::default();
    // Before the error is returned: an error may also reveal data that were read.
    ticket.merge(&loaded.ticket);
    let reply = apply(store, command, &mut loaded.entries, &mut effects)?;
    if !effects.is_empty() {
        let changes = recordings.is_on().then(|| recording::changes(&effects));
        let mut view = exclusive.view();
        stage(&mut view, effects)?;
        ticket.merge(&store.commit(view).await?);
        if let Some(changes) = changes {
            recordings.tell(store, &changes);
        }
    }
    Ok(reply)
}
