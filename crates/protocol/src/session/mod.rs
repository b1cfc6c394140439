//! The state of a client: user, protocol version, transaction, watched keys.

mod identity;
mod login;
mod origin;
mod permission;
mod reply_mode;
mod script;
mod slow_job;
mod stopwatch;
mod tally;
pub(crate) mod transaction;

use crate::context::Context;
use crate::resp::reply::Protocol;
use crate::shared::clients::Client;
use bytes::Bytes;
use identity::Identity;
pub(crate) use origin::Origin;
pub(crate) use permission::{Moment, Refused};
use reply_mode::ReplyMode;
use softflash_store::Store;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
pub(crate) use stopwatch::Stopwatch;
pub use stopwatch::TURN;
use tally::Tally;
use transaction::{Transaction, Watches};

/// The state of a connection.
pub struct Session {
    pub(crate) context: Arc<Context>,
    pub(crate) client: Arc<Client>,
    pub(crate) protocol: Protocol,
    pub(crate) name: Bytes,
    pub(crate) identity: Identity,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) watched: Watches,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) last_command: &'static str,
    pub(crate) tally: Tally,
    closing: bool,
}

impl Session {
    /// The session of a client that connects at `now_ms` (milliseconds since the Unix epoch).
    pub(crate) fn new(
        context: Arc<Context>,
        address: String,
        local_address: String,
        now_ms: u64,
    ) -> Session {
        context.counters.connections.fetch_add(1, Ordering::Relaxed);
        let client = context.clients.enter(address, local_address, now_ms);
        let identity = Identity::of_guest(&context.acl);
        let watched = Watches::new(&context.services.kept_memory);
        let session = Session {
            identity,
            context,
            client,
            protocol: Protocol::default(),
            name: Bytes::new(),
            transaction: None,
            watched,
            reply_mode: ReplyMode::default(),
            last_command: "",
            tally: Tally::default(),
            closing: false,
        };
        session.publish_user();
        session
    }

    /// The client's entry for CLIENT LIST; its [`killed`](Client::killed) must be awaited
    /// concurrently with reads.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Whether the client may run commands other than authentication.
    pub fn is_authenticated(&self) -> bool {
        self.identity.user().is_some()
    }

    /// Whether the connection ends once its output is sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing || self.client.is_killed()
    }

    /// Reserved bytes of the commands queued for EXEC and of the watched keys.
    pub fn kept_bytes(&self) -> u64 {
        let queued = self.transaction.as_ref().map_or(0, Transaction::reserved_bytes);
        queued + self.watched.reserved_bytes()
    }

    /// The origin of this session's commands.
    pub(crate) fn origin(&self) -> Origin {
        Origin { context: Arc::clone(&self.context), client: Arc::clone(&self.client) }
    }

    /// Publishes the session's state for CLIENT LIST.
    pub(crate) fn publish(&self, store: &Store) {
        let at_ms = store.now_ms();
        self.client.update(|activity| {
            activity.command = self.last_command;
            activity.at_ms = at_ms;
            activity.protocol = self.protocol.number();
            activity.watched = self.watched.len();
            activity.queued = match &self.transaction {
                Some(transaction) => i64::try_from(transaction.commands.len()).unwrap_or(i64::MAX),
                None => -1,
            };
        });
    }

    /// Publishes the user name for CLIENT LIST.
    fn publish_user(&self) {
        let user = self.identity.user().map(|user| Arc::clone(user.name_handle()));
        self.client.update(|activity| activity.user = user);
    }

    pub(crate) fn set_name(&mut self, name: Bytes) {
        self.name = name.clone();
        self.client.update(|activity| activity.name = name);
    }

    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    /// The initial state of a connection.
    pub(crate) fn reset(&mut self) {
        self.protocol = Protocol::default();
        self.set_name(Bytes::new());
        self.identity.become_guest(&self.context.acl);
        self.publish_user();
        self.transaction = None;
        self.watched.clear();
        self.reply_mode.reset();
        self.context.stop_recording(self.client.id);
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("client", &self.client.id).finish_non_exhaustive()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.context.stop_recording(self.client.id);
        self.context.clients.leave(self.client.id);
    }
}
