//! Values as numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::resp::long_double::LongDouble;
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use bytes::Bytes;

/// INCR key
pub(crate) fn incr(call: &mut Call<'_>) -> Result<Reply> {
    add(call, 1)
}

/// DECR key
pub(crate) fn decr(call: &mut Call<'_>) -> Result<Reply> {
    add(call, -1)
}

/// INCRBY key increment
pub(crate) fn incrby(call: &mut Call<'_>) -> Result<Reply> {
    let increment = call.integer(2)?;
    add(call, increment)
}

/// DECRBY key decrement
pub(crate) fn decrby(call: &mut Call<'_>) -> Result<Reply> {
    let decrement = call.integer(2)?;
    let increment =
        decrement.checked_neg().ok_or(CommandError::Known("ERR decrement would overflow"))?;
    add(call, increment)
}

fn add(call: &mut Call<'_>, increment: i64) -> Result<Reply> {
    let (old, expires_at_ms) = match call.entry(0) {
        None => (0, 0),
        Some(entry) => {
            let text = short_text(entry.value.fragments()).ok_or(CommandError::NOT_AN_INTEGER)?;
            (parse_i64(&text).ok_or(CommandError::NOT_AN_INTEGER)?, entry.expires_at_ms)
        }
    };
    let sum = old
        .checked_add(increment)
        .ok_or(CommandError::Known("ERR increment or decrement would overflow"))?;
    let mut digits = itoa::Buffer::new();
    let text = Bytes::copy_from_slice(digits.format(sum).as_bytes());
    call.put_value(call.arg(1), text, expires_at_ms);
    Ok(Reply::Integer(sum))
}

/// INCRBYFLOAT key increment
pub(crate) fn incrbyfloat(call: &mut Call<'_>) -> Result<Reply> {
    let (old, expires_at_ms) = match call.entry(0) {
        None => (LongDouble::ZERO, 0),
        Some(entry) => {
            let text = short_text(entry.value.fragments()).ok_or(CommandError::NOT_A_FLOAT)?;
            (LongDouble::parse(&text).ok_or(CommandError::NOT_A_FLOAT)?, entry.expires_at_ms)
        }
    };
    let increment = LongDouble::parse(call.arg(2)).ok_or(CommandError::NOT_A_FLOAT)?;
    let sum = old
        .add(increment)
        .ok_or(CommandError::Known("ERR increment would produce NaN or Infinity"))?;
    let text = Bytes::from(sum.print());
    call.put_value(call.arg(1), text.clone(), expires_at_ms);
    Ok(Reply::Bulk(text))
}

/// The text of a value that may be a number; longer ones are not.
fn short_text(fragments: &[Bytes]) -> Option<Bytes> {
    const LONGEST: usize = 5 * 1024;
    match fragments {
        [] => Some(Bytes::new()),
        [one] => (one.len() <= LONGEST).then(|| one.clone()),
        many => {
            let length: usize = many.iter().map(Bytes::len).sum();
            (length <= LONGEST).then(|| Bytes::from(many.concat()))
        }
    }
}
