//! Transactions: the queue after MULTI, the keys watched, and EXEC.

use crate::command::{Command, Effects, Keys, Scope, find, suppressed};
use crate::context::Context;
use crate::error::{CommandError, Result};
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::handlers::overlay::{Changes, Overlay};
use crate::handlers::{Handler, handler_of, loads, wanted};
use crate::pipeline::load::Entries;
use crate::pipeline::write::{apply, prepare, stage};
use crate::resp::reply::Reply;
use crate::resp::words::own;
use crate::session::transaction::Watched;
use crate::session::{Moment, Refused, Session, Stopwatch};
use crate::shared::recording::{self, Event};
use bytes::Bytes;
use futures_util::future::join_all;
use softflash_base::ShardId;
use softflash_base::planted::{self, Bug};
use softflash_store::value::Wanted;
use softflash_store::{CommitToken, Exclusive, Store, Transaction};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Keys whose shards are asked at the same time: each of them would be two round trips.
const WATCHED_TOGETHER: usize = 64;

/// Watches a key from here on.
async fn watch(store: &Store, key: Bytes) -> Result<Watched> {
    let token = store.watch(key.clone()).await?;
    let found = store.begin().find(&key, Wanted::Keys).await?;
    let expires = found.is_some_and(|entry| entry.expires_at_ms != 0);
    Ok(Watched { key, token, expires })
}

impl Session {
    /// WATCH key [key ...]
    pub(crate) async fn watch(&mut self, store: &Store, command: &Command) -> Result<Reply> {
        if self.transaction.is_some() {
            return Err(CommandError::Known("ERR WATCH inside MULTI is not allowed"));
        }
        let keys: Vec<&Bytes> = command.spec.keys_of(&command.args).collect();
        for keys in keys.chunks(WATCHED_TOGETHER) {
            let mut new = BTreeSet::new();
            for &key in keys {
                if !new.contains(key) && self.watched.admit(key)? {
                    new.insert(own(key));
                } else if planted::bug(Bug::WatchStopsAtKnown) {
                    break;
                }
            }
            for watched in join_all(new.into_iter().map(|key| watch(store, key))).await {
                self.watched.add(watched?);
            }
        }
        Ok(Reply::Ok)
    }

    /// EXEC
    pub(crate) async fn exec(
        &mut self,
        store: &Store,
        token: &mut CommitToken,
        watch: &Stopwatch<'_>,
    ) -> Result<Reply> {
        let Some(mut transaction) = self.transaction.take() else {
            return Err(CommandError::Known("ERR EXEC without MULTI"));
        };
        let watched: Vec<Watched> = self.watched.iter().cloned().collect();
        if !planted::bug(Bug::ExecKeepsWatches) {
            self.watched.clear();
        }
        if transaction.spoiled {
            return Err(CommandError::Known(
                "EXECABORT Transaction discarded because of previous errors.",
            ));
        }
        // The queue's memory is given back when the transaction is dropped.
        let commands = std::mem::take(&mut transaction.commands);
        let of_command = |command: &Command| {
            let wanted = wanted(command);
            loads(command).into_iter().map(move |key| (key, wanted))
        };
        let of_watch = |watched: &Watched| (watched.key.clone(), Wanted::Keys);
        let mut keys: Vec<(Bytes, Wanted)> = commands.iter().flat_map(of_command).collect();
        keys.extend(watched.iter().filter(|watched| watched.expires).map(of_watch));
        self.check_receiver(&commands)?;
        let read = keys.iter().filter(|(_, wanted)| *wanted == Wanted::Entries);
        let read: Vec<Bytes> = read.map(|(key, _)| key.clone()).collect();
        let all = keys.iter().map(|(key, wanted)| (key, *wanted));
        prepare(store, &self.context, &read, all).await?;
        let checked = planted::bug(Bug::ExecChecksBeforeGate)
            && watched.iter().all(|watched| !watched.token.touched());
        let steps = commands.len().max(keys.len());
        let exclusive = store.exclusive_for(shards_of(store, &commands, &watched), steps).await?;
        // Others have run meanwhile, perhaps for seconds.
        self.check_receiver(&commands)?;
        for watched in watched.iter().filter(|_| !checked) {
            if !watched.holds(&exclusive).await? {
                return Ok(Reply::NullArray);
            }
        }
        let is_announced = !self.reply_mode.is_silent();
        let mut running = Running::new(store, &exclusive, &commands);
        let mut replies = Vec::with_capacity(commands.len());
        watch.restart();
        for command in &commands {
            let reply = match self.permit_queued(store, command) {
                Ok(()) => {
                    let reply = running.run(self, command).await.into();
                    self.tally.add(command.spec.id);
                    watch.lap(command.spec, &command.args);
                    self.context.note_reply(store, command.spec, &reply);
                    reply
                }
                Err(refused) => {
                    // As in Redis, not among the refused calls.
                    self.context.note_refused(None, &refused);
                    Reply::Error(refused)
                }
            };
            let is_silent = self.reply_mode.is_silent();
            replies.push(if is_silent { suppressed(reply) } else { reply });
        }
        let events = std::mem::take(&mut running.events);
        let committed = running.commit().await.map_err(CommandError::TransactionFailed)?;
        token.merge(&committed);
        self.context.recordings.tell(store, &events);
        Ok(if is_announced { Reply::Array(replies) } else { Reply::Unannounced(replies) })
    }
}

impl Session {
    /// Refuses a transaction that only reads, for a client that has left.
    fn check_receiver(&self, commands: &[Command]) -> Result<()> {
        match self.client.has_left() && commands.iter().all(Command::is_read) {
            true => Err(CommandError::HAS_LEFT),
            false => Ok(()),
        }
    }

    /// Checks a queued command again: the permissions may have changed since it was queued.
    fn permit_queued(&mut self, store: &Store, command: &Command) -> Result<(), CommandError> {
        self.identity.refresh(&self.context.acl);
        if self.identity.is_free() {
            return Ok(());
        }
        let Command { spec, args, .. } = command;
        let Some((index, container)) = args.first().and_then(|name| find(name)) else {
            return Ok(());
        };
        let place = args.get(1).and_then(|name| container.subcommand_place(name));
        let moment = Moment::InTransaction;
        self.permit(store, spec, (index, place), args, moment)
            .and_then(|()| self.permit_calls(store, spec, args, moment))
            .map_err(Refused::since_queued)
    }
}

/// Every shard of the queued commands and the watched keys.
fn shards_of(store: &Store, commands: &[Command], watched: &[Watched]) -> Vec<ShardId> {
    let layout = store.layout();
    let mut shards: Vec<ShardId> =
        watched.iter().map(|watched| layout.shard_of(&watched.key)).collect();
    for command in commands {
        match handler_of(command.spec) {
            Handler::Keyspace(_) => return (0..layout.shards).map(ShardId).collect(),
            Handler::Keyed(_) => match command.scope(layout) {
                Scope::One(shard) => shards.push(shard),
                Scope::Several(several) => shards.extend(several),
            },
            _ => {}
        }
    }
    shards.sort_unstable();
    shards.dedup();
    shards
}

/// A transaction that is running.
struct Running<'a> {
    store: &'a Store,
    exclusive: &'a Exclusive,
    transaction: Transaction,
    changes: Changes,
    /// Whether a command reads the whole store and must see the transaction's changes.
    tracks: bool,
    /// Events for recordings, sent after the commit.
    events: Vec<Event>,
}

impl<'a> Running<'a> {
    fn new(store: &'a Store, exclusive: &'a Exclusive, commands: &[Command]) -> Running<'a> {
        let tracks =
            commands.iter().any(|command| matches!(handler_of(command.spec), Handler::Keyspace(_)));
        let transaction = exclusive.begin();
        Running {
            store,
            exclusive,
            transaction,
            changes: Changes::default(),
            tracks,
            events: Vec::new(),
        }
    }

    async fn run(&mut self, session: &mut Session, command: &Command) -> Result<Reply> {
        match handler_of(command.spec) {
            Handler::Keyed(_) => {
                let context = Arc::clone(&session.context);
                self.keyed(command, &context).await
            }
            Handler::Session(run) => run(session, self.store, &command.args),
            Handler::Keyspace(run) => {
                let overlay = Overlay { changes: &self.changes, exclusive: self.exclusive };
                let keyspace = KeyspaceContext {
                    store: self.store,
                    context: &session.context,
                    args: &command.args,
                    viewer: session.identity.short_sighted().map(|user| &**user),
                    overlay: Some(overlay),
                };
                run(keyspace).await
            }
            // Only commands without a waiting handler have been queued.
            Handler::Waiting(waiting) => (waiting.run)(session, self.store, &command.args).await,
            Handler::Watch | Handler::Exec | Handler::Container => Ok(Reply::None),
        }
    }

    async fn keyed(&mut self, command: &Command, context: &Context) -> Result<Reply> {
        let records = context.recordings.is_on();
        let mut entries = Entries::new();
        for key in loads(command) {
            entries.push(self.transaction.find(&key, wanted(command)).await?);
        }
        if records && command.is_read() {
            self.events.extend(recording::reads(&loads(command), &entries));
        }
        let mut effects = Effects::default();
        let reply = apply(self.store, command, &mut entries, &mut effects);
        context.counters.count_lookups(effects.lookups);
        let reply = reply?;
        if records {
            self.events.extend(recording::changes(&effects));
        }
        if self.tracks {
            if command.spec.keys == Keys::All {
                self.changes.clear();
            }
            for (key, entry) in &effects.writes {
                self.changes.note(key, entry.as_ref());
            }
        }
        stage(&mut self.transaction, effects)?;
        Ok(reply)
    }

    async fn commit(self) -> Result<CommitToken, softflash_store::StoreError> {
        if self.transaction.is_read_only() {
            return Ok(self.transaction.token().clone());
        }
        self.store.commit(self.transaction).await
    }
}
