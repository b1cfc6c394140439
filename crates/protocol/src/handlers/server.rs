//! The server: TIME, INFO, SHUTDOWN.

use crate::error::{CommandError, Result};
use crate::handlers::info;
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

/// TIME: the store's clock counts milliseconds
pub(crate) fn time(_: &mut Session, store: &Store, _: &[Bytes]) -> Result<Reply> {
    let now_ms = store.now_ms();
    let number = |number: u64| Reply::Bulk(number.to_string().into());
    Ok(Reply::Array(vec![number(now_ms / 1000), number(now_ms % 1000 * 1000)]))
}

/// INFO [section ...]
pub(crate) fn info(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move { Ok(Reply::Verbatim(info::text(&keyspace).await?)) }.boxed_local()
}

/// SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]
pub(crate) fn shutdown(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let options = args.get(1..).unwrap_or_default();
    let given = |name: &str| options.iter().any(|option| is(option, name));
    let known = ["NOSAVE", "SAVE", "NOW", "FORCE", "ABORT"];
    let all_known = options.iter().all(|option| known.iter().any(|name| is(option, name)));
    let abort = given("ABORT");
    if !all_known || (given("SAVE") && given("NOSAVE")) || (abort && options.len() > 1) {
        return Err(CommandError::SYNTAX);
    }
    if abort {
        return Err(CommandError::Known("ERR No shutdown in progress."));
    }
    session.context.request_shutdown(session.client.id);
    session.close();
    Ok(Reply::None)
}
