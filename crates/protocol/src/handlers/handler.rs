//! The kinds of handlers.

use crate::error::Result;
use crate::handlers::call::Call;
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::resp::reply::Reply;
use crate::session::Session;
use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

/// The entries that a command must load.
#[derive(Clone, Copy)]
pub(crate) enum Load {
    /// Those of all its keys.
    Entries,
    /// Those of all its keys, without large values.
    Keys,
    /// None: it overwrites the keys.
    Nothing,
    /// Those of all its keys, depending on its arguments.
    If(fn(&[Bytes]) -> bool),
}

/// A command on entries: gets those of its keys, and returns a reply and changes.
#[derive(Clone, Copy)]
pub(crate) struct Keyed {
    pub run: fn(&mut Call<'_>) -> Result<Reply>,
    pub load: Load,
}

/// A command on the whole keyspace.
pub(crate) type KeyspaceHandler =
    for<'a> fn(KeyspaceContext<'a>) -> LocalBoxFuture<'a, Result<Reply>>;

/// A command that takes long and does not need keys, such as AUTH.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub run: WaitingHandler,
    /// Whether it waits with these arguments; then it is not allowed in a transaction.
    pub takes_long: fn(&[Bytes]) -> bool,
}

pub(crate) type WaitingHandler =
    for<'a> fn(&'a mut Session, &'a Store, &'a [Bytes]) -> LocalBoxFuture<'a, Result<Reply>>;

/// The implementation of a command.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// On the entries of its keys.
    Keyed(Keyed),
    /// On the session and the shared context; never waits.
    Session(fn(&mut Session, &Store, &[Bytes]) -> Result<Reply>),
    /// On the session and the shared context; may wait.
    Waiting(Waiting),
    /// On the whole keyspace; may wait.
    Keyspace(KeyspaceHandler),
    /// WATCH.
    Watch,
    /// EXEC.
    Exec,
    /// Container of subcommands.
    Container,
}

/// A command that loads the entries of all its keys.
pub(super) const fn keyed(run: fn(&mut Call<'_>) -> Result<Reply>) -> Handler {
    loading(Load::Entries, run)
}

/// A command that needs to know which of its keys exist, and their expiry.
pub(super) const fn keys_only(run: fn(&mut Call<'_>) -> Result<Reply>) -> Handler {
    loading(Load::Keys, run)
}

/// A command that overwrites its keys without loading them.
pub(super) const fn blind(run: fn(&mut Call<'_>) -> Result<Reply>) -> Handler {
    loading(Load::Nothing, run)
}

pub(super) const fn loading(load: Load, run: fn(&mut Call<'_>) -> Result<Reply>) -> Handler {
    Handler::Keyed(Keyed { run, load })
}

pub(super) const fn waiting(run: WaitingHandler) -> Handler {
    waiting_if(|_| true, run)
}

pub(super) const fn waiting_if(takes_long: fn(&[Bytes]) -> bool, run: WaitingHandler) -> Handler {
    Handler::Waiting(Waiting { run, takes_long })
}
