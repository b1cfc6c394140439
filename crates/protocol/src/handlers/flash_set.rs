//! FLASH.SET: the sets of units.

use crate::error::{CommandError, Result};
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::resp::reply::Reply;
use crate::session::Session;
use crate::sets::SetEntry;
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
        Ok(Reply::Array(sets.list(store).await.into_iter().map(entry).collect()))
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

fn entry(set: SetEntry) -> Reply {
    let text = |text: String| Reply::Bulk(text.into());
    let number = |number: u64| Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let or_null = |number: Option<Reply>| number.unwrap_or(Reply::Null);
    let units = set.units.into_iter().map(|unit| number(unit.into())).collect();
    Reply::Map(vec![
        (Reply::Text("id"), number(set.id.into())),
        (Reply::Text("name"), text(set.name)),
        (Reply::Text("shard"), number(set.shard.into())),
        (Reply::Text("kind"), Reply::Text(set.kind)),
        (Reply::Text("units"), Reply::Array(units)),
        (Reply::Text("op_percent"), or_null(set.op_percent.map(u64::from).map(number))),
        (Reply::Text("used_bytes"), or_null(set.used_bytes.map(number))),
        (Reply::Text("usable_bytes"), number(set.usable_bytes)),
        (Reply::Text("erases_mean"), or_null(set.erases_mean.map(Reply::Double))),
        (Reply::Text("waf"), or_null(set.waf.map(Reply::Double))),
        (Reply::Text("pair"), or_null(set.pair.map(text))),
        (Reply::Text("window"), or_null(set.window.map(number))),
    ])
}
