//! DEBUG SLEEP, for tests of timeouts and the slow log.

use crate::error::{CommandError, Result};
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, select};
use softflash_store::Store;
use std::pin::pin;
use std::time::Duration;

/// DEBUG SLEEP seconds: this connection waits, the others do not
pub(crate) fn debug<'a>(
    session: &'a mut Session,
    store: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        let [_, subcommand, seconds] = args else { return Err(CommandError::SYNTAX) };
        if !is(subcommand, "SLEEP") {
            return Err(CommandError::SYNTAX);
        }
        let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok());
        let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let span = span.ok_or(CommandError::NOT_A_FLOAT)?;
        let sleep = store.runtime().sleep_until(store.runtime().now() + span);
        select(sleep, pin!(session.client().killed())).await;
        let is_killed = session.client().is_killed();
        Ok(if is_killed { Reply::None } else { Reply::Ok })
    }
    .boxed_local()
}
