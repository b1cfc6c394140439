//! FLASH.SET: the sets of units.

use crate::error::{CommandError, Result};
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::resp::reply::Reply;
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

const NO_SETS: CommandError =
    CommandError::Known("ERR this server has no data directory, and so no sets of units");

/// FLASH.SET LIST
pub(crate) fn list(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let sets = keyspace.context.services.sets.as_ref().ok_or(NO_SETS)?;
        let store = keyspace.store.shard_states().await?;
        Ok(Reply::Array(sets.list(store).await))
    }
    .boxed_local()
}

/// FLASH.SET HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "FLASH.SET <subcommand>. Subcommands are:",
        "LIST",
        "    All sets of units: id, name, shard, kind (store or mapped), units, op_percent (spare",
        "    space for collection), used_bytes, usable_bytes, erases_mean (of a block), waf (bytes",
        "    programmed for each byte that clients wrote, since the start), pair and window.",
        "HELP",
        "    Prints this help.",
    ]))
}
