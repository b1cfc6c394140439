//! RENAME, RENAMENX, COPY and TYPE.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::resp::reply::Reply;
use crate::resp::words::is;

/// RENAME key newkey
pub(crate) fn rename(call: &mut Call<'_>) -> Result<Reply> {
    move_entry(call)?;
    Ok(Reply::Ok)
}

/// RENAMENX key newkey
pub(crate) fn renamenx(call: &mut Call<'_>) -> Result<Reply> {
    if call.entry(0).is_some() && call.entry(1).is_some() {
        return Ok(Reply::Integer(0));
    }
    move_entry(call)?;
    Ok(Reply::Integer(1))
}

fn move_entry(call: &mut Call<'_>) -> Result<()> {
    let entry = call.take(0).ok_or(CommandError::NO_SUCH_KEY)?;
    let (from, to) = (call.arg(1), call.arg(2));
    if from != to {
        call.delete(from);
        call.put(to, entry);
    }
    Ok(())
}

/// COPY source destination [DB 0] [REPLACE]
pub(crate) fn copy(call: &mut Call<'_>) -> Result<Reply> {
    let (mut replace, mut index) = (false, 3);
    while let Some(option) = call.args.get(index) {
        if is(option, "REPLACE") {
            replace = true;
        } else if is(option, "DB") && index + 1 < call.args.len() {
            index += 1;
            check_database(call.integer(index)?)?;
        } else {
            return Call::syntax();
        }
        index += 1;
    }
    let (from, to) = (call.arg(1), call.arg(2));
    if from == to {
        return Err(CommandError::Known("ERR source and destination objects are the same"));
    }
    match call.take(0) {
        Some(entry) if replace || call.entry(1).is_none() => {
            call.put(to, entry);
            Ok(Reply::Integer(1))
        }
        _ => Ok(Reply::Integer(0)),
    }
}

/// There is only database 0.
pub(crate) fn check_database(index: i64) -> Result<()> {
    if i32::try_from(index).is_err() {
        Err(CommandError::Known(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        ))
    } else if index != 0 {
        Err(CommandError::NO_SUCH_DATABASE)
    } else {
        Ok(())
    }
}

/// TYPE key
pub(crate) fn type_of(call: &mut Call<'_>) -> Result<Reply> {
    Ok(Reply::Status(if call.entry(0).is_some() { "string" } else { "none" }))
}
