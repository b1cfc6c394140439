//! Commands on several keys: MGET, MSET, MSETNX, DEL, EXISTS.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::resp::reply::Reply;
use crate::resp::words::own;
use bytes::Bytes;
use std::collections::HashSet;

/// MGET key [key ...]
pub(crate) fn mget(call: &mut Call<'_>) -> Result<Reply> {
    Ok(Reply::Array((0..call.entries.len()).map(|index| call.value_reply(index)).collect()))
}

/// MSET key value [key value ...]
pub(crate) fn mset(call: &mut Call<'_>) -> Result<Reply> {
    put_pairs(call)?;
    Ok(Reply::Ok)
}

/// MSETNX key value [key value ...]
pub(crate) fn msetnx(call: &mut Call<'_>) -> Result<Reply> {
    check_pairs(call)?;
    if call.entries.iter().any(Option::is_some) {
        return Ok(Reply::Integer(0));
    }
    put_pairs(call)?;
    Ok(Reply::Integer(1))
}

fn check_pairs(call: &Call<'_>) -> Result<()> {
    if call.args.len().is_multiple_of(2) {
        return Err(CommandError::WrongArity(call.name));
    }
    Ok(())
}

fn put_pairs(call: &mut Call<'_>) -> Result<()> {
    check_pairs(call)?;
    for pair in call.args.get(1..).unwrap_or_default().chunks_exact(2) {
        if let [key, value] = pair {
            call.put_value(key, own(value), 0);
        }
    }
    Ok(())
}

/// DEL key [key ...]; UNLINK is the same here
pub(crate) fn del(call: &mut Call<'_>) -> Result<Reply> {
    let keys = call.args.get(1..).unwrap_or_default();
    let mut seen: HashSet<&Bytes> = HashSet::new();
    let mut deleted = 0;
    for (index, key) in keys.iter().enumerate() {
        // A repeated key is deleted only once.
        let first = keys.len() == 1 || seen.insert(key);
        if first && call.entry(index).is_some() {
            call.delete(key);
            deleted += 1;
        }
    }
    Ok(Reply::Integer(deleted))
}

/// EXISTS key [key ...] and TOUCH key [key ...]: a repeated key counts repeatedly
pub(crate) fn exists(call: &mut Call<'_>) -> Result<Reply> {
    Ok(Reply::count(call.entries.iter().flatten().count()))
}
