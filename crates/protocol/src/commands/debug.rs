//! DEBUG SLEEP, for trying out timeouts and the slow log.

use crate::commands::call::is;
use crate::error::{CommandError, Result};
use crate::reply::Reply;
use crate::wide::Wide;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use std::time::Duration;

/// DEBUG SLEEP seconds: this connection waits, the others do not
pub(crate) fn debug(wide: Wide<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let [_, subcommand, seconds] = wide.args else { return Err(CommandError::SYNTAX) };
        if !is(subcommand, "SLEEP") {
            return Err(CommandError::SYNTAX);
        }
        let seconds = std::str::from_utf8(seconds).ok().and_then(|text| text.parse().ok());
        let span = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let span = span.ok_or(CommandError::NOT_A_FLOAT)?;
        let runtime = wide.store.runtime();
        runtime.sleep_until(runtime.now() + span).await;
        Ok(Reply::Ok)
    }
    .boxed_local()
}
