//! FLASH.RECORD: records the keys that clients read and change, for `softflash record` and other
//! tools.

use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use crate::shared::recording::{DEFAULT_CAPACITY, MAX_CAPACITY};
use bytes::Bytes;
use softflash_store::Store;

/// Default number of events in a reply.
const DEFAULT_COUNT: usize = 4096;

/// FLASH.RECORD START [CAPACITY events]
pub(crate) fn start(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let capacity = option(args, "CAPACITY", DEFAULT_CAPACITY)?;
    session.context.recordings.start(session.client.id, capacity)?;
    Ok(Reply::Ok)
}

/// FLASH.RECORD READ [COUNT events]
pub(crate) fn read(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let count = option(args, "COUNT", DEFAULT_COUNT)?;
    let taken = session.context.recordings.take(session.client.id, count)?;
    let dropped = Reply::Integer(i64::try_from(taken.dropped).unwrap_or(i64::MAX));
    Ok(Reply::Array(vec![dropped, Reply::Bulk(taken.lines().into())]))
}

/// FLASH.RECORD STOP
pub(crate) fn stop(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    session.context.recordings.stop(session.client.id);
    Ok(Reply::Ok)
}

/// FLASH.RECORD HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "FLASH.RECORD <subcommand> [<arg> [value] ...]. Subcommands are:",
        "START [CAPACITY <events>]",
        "    Record the keys that all clients read and change, for this connection (default:",
        "    65536 events; events that do not fit are dropped and counted).",
        "READ [COUNT <events>]",
        "    Take the recorded events, the oldest first (default: 4096). The reply is the",
        "    number of events dropped since the last READ, and one line per event:",
        "    nanoseconds, read|write|delete|clear, hash of the key, bytes of key and of value",
        "STOP",
        "    Stop recording; the end of the connection does the same.",
        "HELP",
        "    Prints this help.",
    ]))
}

/// The number after the only option.
fn option(args: &[Bytes], name: &str, default: usize) -> Result<usize> {
    match args.get(2..).unwrap_or_default() {
        [] => Ok(default),
        [given, number] if is(given, name) => {
            let number = parse_i64(number).ok_or(CommandError::NOT_AN_INTEGER)?;
            let number = usize::try_from(number).unwrap_or(0);
            if !(1..=MAX_CAPACITY).contains(&number) {
                let limit = MAX_CAPACITY.to_string();
                let range: [&[u8]; 4] =
                    [b"ERR ", name.as_bytes(), b" must be between 1 and ", limit.as_bytes()];
                return Err(CommandError::quoting(&range));
            }
            Ok(number)
        }
        _ => Err(CommandError::SYNTAX),
    }
}
