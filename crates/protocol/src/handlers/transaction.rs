//! MULTI, DISCARD and UNWATCH; EXEC and WATCH use the store and are in `pipeline`.

use crate::error::{CommandError, Result};
use crate::resp::reply::Reply;
use crate::session::Session;
use crate::session::transaction::Transaction;
use bytes::Bytes;
use softflash_base::planted::{self, Bug};
use softflash_store::Store;

/// MULTI
pub(crate) fn multi(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    if session.transaction.is_some() {
        return Err(CommandError::Known("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::new(&session.context.services.kept_memory));
    Ok(Reply::Ok)
}

/// DISCARD
pub(crate) fn discard(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    if session.transaction.take().is_none() {
        return Err(CommandError::Known("ERR DISCARD without MULTI"));
    }
    if !planted::bug(Bug::DiscardKeepsWatches) {
        session.watched.clear();
    }
    Ok(Reply::Ok)
}

/// UNWATCH
pub(crate) fn unwatch(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    session.watched.clear();
    Ok(Reply::Ok)
}
