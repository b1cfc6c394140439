//! Internal representation of values: OBJECT and MEMORY USAGE.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;
use softflash_store::value::Value;

/// OBJECT ENCODING key: the encoding that Redis would use for a value written by SET
pub(crate) fn encoding(call: &mut Call<'_>) -> Result<Reply> {
    Ok(call.entry(0).map_or(Reply::Null, |entry| Reply::Text(encoding_of(&entry.value))))
}

fn encoding_of(value: &Value) -> &'static str {
    const LONGEST_NUMBER: usize = 20;
    const LONGEST_EMBEDDED: usize = 44;
    match value.len() {
        length if length <= LONGEST_NUMBER && parse_i64(&value.to_bytes()).is_some() => "int",
        length if length <= LONGEST_EMBEDDED => "embstr",
        _ => "raw",
    }
}

/// OBJECT REFCOUNT key: values are not shared
pub(crate) fn refcount(call: &mut Call<'_>) -> Result<Reply> {
    Ok(call.entry(0).map_or(Reply::Null, |_| Reply::Integer(1)))
}

/// OBJECT HELP
pub(crate) fn object_help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "OBJECT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ENCODING <key>",
        "    Return the kind of internal representation used in order to store the value",
        "    associated with a <key>.",
        "REFCOUNT <key>",
        "    Return the number of references of the value associated with the specified",
        "    <key>.",
        "HELP",
        "    Prints this help.",
    ]))
}

/// MEMORY USAGE key [SAMPLES count]: bytes that the key uses in the store
pub(crate) fn usage(call: &mut Call<'_>) -> Result<Reply> {
    /// Headers of an entry in a memtable or a patch.
    const OVERHEAD_BYTES: usize = 64;
    match call.args.get(3..).unwrap_or_default() {
        [] => {}
        [option, count] if is(option, "SAMPLES") => {
            let count = parse_i64(count).ok_or(CommandError::NOT_AN_INTEGER)?;
            if count < 0 {
                return Call::syntax();
            }
        }
        _ => return Call::syntax(),
    }
    let key_bytes = call.arg(2).len();
    Ok(call
        .entry(0)
        .map_or(Reply::Null, |entry| Reply::count(key_bytes + entry.value.len() + OVERHEAD_BYTES)))
}

/// MEMORY HELP
pub(crate) fn memory_help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "USAGE <key> [SAMPLES <count>]",
        "    Return bytes used by <key> and its value.",
        "HELP",
        "    Prints this help.",
    ]))
}
