//! SLOWLOG: commands that took long.

use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;

/// SLOWLOG GET [count]
pub(crate) fn get(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    const BAD_COUNT: CommandError =
        CommandError::Known("ERR count should be greater than or equal to -1");
    let count = match args {
        [_, _] => 10,
        [_, _, count] => match parse_i64(count) {
            Some(-1) => usize::MAX,
            Some(count) => usize::try_from(count).map_err(|_| BAD_COUNT)?,
            None => return Err(BAD_COUNT),
        },
        [_, name, ..] => {
            return Err(CommandError::quoting(&[
                b"ERR unknown subcommand or wrong number of arguments for '",
                name,
                b"'. Try SLOWLOG HELP.",
            ]));
        }
        [_] | [] => return Err(CommandError::SYNTAX),
    };
    let newest = session.context.slowlog.newest(count);
    Ok(Reply::Array(newest.into_iter().map(Reply::from).collect()))
}

/// SLOWLOG LEN
pub(crate) fn len(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::count(session.context.slowlog.len()))
}

/// SLOWLOG RESET
pub(crate) fn reset(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    session.context.slowlog.reset();
    Ok(Reply::Ok)
}

/// SLOWLOG HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GET [<count>]",
        "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, arguments array, client IP and port,",
        "    client name",
        "LEN",
        "    Return the length of the slowlog.",
        "RESET",
        "    Reset the slowlog.",
        "HELP",
        "    Prints this help.",
    ]))
}
