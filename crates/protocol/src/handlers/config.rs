//! CONFIG GET, SET, RESETSTAT.

use crate::error::{CommandError, Result};
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::handlers::settings;
use crate::resp::reply::Reply;
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

/// CONFIG GET pattern [pattern ...]
pub(crate) fn get(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let found = settings::get(&session.context, args.get(2..).unwrap_or_default());
    let bulk = |text: String| Reply::Bulk(text.into());
    Ok(Reply::Map(found.into_iter().map(|(name, value)| (bulk(name), bulk(value))).collect()))
}

/// CONFIG SET name value [name value ...]
pub(crate) fn set(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let pairs = args.get(2..).unwrap_or_default();
    if !pairs.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity("config|set"));
    }
    settings::set(&session.context, pairs)?;
    Ok(Reply::Ok)
}

/// CONFIG RESETSTAT
pub(crate) fn resetstat(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let stats = keyspace.store.stats().await?;
        keyspace.context.reset_counters(stats.keys_expired);
        Ok(Reply::Ok)
    }
    .boxed_local()
}

/// CONFIG HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GET <pattern>",
        "    Return parameters matching the glob-like <pattern> and their values.",
        "SET <directive> <value>",
        "    Set the configuration <directive> to <value>.",
        "RESETSTAT",
        "    Reset statistics reported by the INFO command.",
        "HELP",
        "    Prints this help.",
    ]))
}
