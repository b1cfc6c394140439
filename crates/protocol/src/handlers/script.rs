//! EVAL, EVALSHA and SCRIPT, for the known scripts.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::handlers::lock::Lock;
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::scripts::Known;
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;

/// The error for a script that is not known.
pub(crate) const NOT_KNOWN: CommandError = CommandError::Known(
    "ERR scripts are not built in SoftFlash, except those of the locks of client libraries \
     (docs/redis.md, \"Scripts\")",
);

/// EVAL script numkeys [key ...] [arg ...], EVALSHA sha1 numkeys [key ...] [arg ...]; the name of a
/// known script has replaced the script
pub(crate) fn eval(call: &mut Call<'_>) -> Result<Reply> {
    let Some(known) = Known::named(call.arg(1)) else { return Err(NOT_KNOWN) };
    let count = count_keys(call.args)?;
    let words = call.args.get(3..).unwrap_or_default();
    let Some((keys, arguments)) =
        words.split_at_checked(count).filter(|(keys, _)| !keys.is_empty())
    else {
        return Err(CommandError::Known("ERR the script needs a key"));
    };
    Lock { call, keys, arguments }.run(known.operation)
}

/// The number of keys of EVAL and EVALSHA.
pub(crate) fn count_keys(args: &[Bytes]) -> Result<usize> {
    let count = args.get(2).and_then(|count| parse_i64(count));
    let count = usize::try_from(count.ok_or(CommandError::NOT_AN_INTEGER)?)
        .map_err(|_| CommandError::Known("ERR Number of keys can't be negative"))?;
    if count > args.len().saturating_sub(3) {
        let text = "ERR Number of keys can't be greater than number of args";
        return Err(CommandError::Known(text));
    }
    Ok(count)
}

/// SCRIPT LOAD script
pub(crate) fn load(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let text = args.get(2).map(|text| &text[..]).unwrap_or_default();
    let (digest, _) = session.context.scripts.load(text).ok_or(NOT_KNOWN)?;
    Ok(Reply::Bulk(digest.into()))
}

/// SCRIPT EXISTS sha1 [sha1 ...]
pub(crate) fn exists(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let scripts = &session.context.scripts;
    let is_loaded = |digest: &Bytes| Reply::yes(scripts.with_digest(digest).is_some());
    Ok(Reply::Array(args.iter().skip(2).map(is_loaded).collect()))
}

/// SCRIPT FLUSH [ASYNC | SYNC]
pub(crate) fn flush(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    match args.get(2..).unwrap_or_default() {
        [] => {}
        [mode] if is(mode, "ASYNC") || is(mode, "SYNC") => {}
        _ => {
            let text = "ERR SCRIPT FLUSH only support SYNC|ASYNC option";
            return Err(CommandError::Known(text));
        }
    }
    session.context.scripts.flush();
    Ok(Reply::Ok)
}

/// SCRIPT KILL: a known script never runs long
pub(crate) fn kill(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Err(CommandError::Known("NOTBUSY No scripts in execution right now."))
}

/// SCRIPT HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "EXISTS <sha1> [<sha1> ...]",
        "    Return information about the existence of the scripts in the script cache.",
        "FLUSH [ASYNC|SYNC]",
        "    Flush the Lua scripts cache.",
        "KILL",
        "    Kill the currently executing Lua script.",
        "LOAD <script>",
        "    Load a script into the scripts cache without executing it.",
        "HELP",
        "    Prints this help.",
    ]))
}
