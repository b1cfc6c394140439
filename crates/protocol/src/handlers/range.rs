//! Parts of values: GETRANGE, SETRANGE, APPEND.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::handlers::set::check_length;
use crate::resp::reply::Reply;
use bytes::{Bytes, BytesMut};
use softflash_store::Entry;
use softflash_store::value::Value;
use std::ops::Range;

/// GETRANGE key start end; SUBSTR is its old name
pub(crate) fn getrange(call: &mut Call<'_>) -> Result<Reply> {
    let (start, end) = (call.integer(2)?, call.integer(3)?);
    let Some(entry) = call.entry(0) else { return Ok(Reply::Bulk(Bytes::new())) };
    let range = clamp(start, end, entry.value.len());
    Ok(Reply::Value(slice(&entry.value, range)))
}

/// The byte range of `start` and `end`, both inclusive; negative values count from the end.
fn clamp(start: i64, end: i64, length: usize) -> Range<usize> {
    if start < 0 && end < 0 && start > end {
        return 0..0;
    }
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start =
        |index: i64| if index < 0 { (length + index.max(-length)).max(0) } else { index };
    let (start, end) = (from_start(start), from_start(end).min(length - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

/// A part of a value, without a copy.
fn slice(value: &Value, range: Range<usize>) -> Value {
    let mut offset = 0;
    Value::from_fragments(value.fragments().iter().filter_map(|piece| {
        let start = range.start.saturating_sub(offset).min(piece.len());
        let end = range.end.saturating_sub(offset).min(piece.len());
        offset += piece.len();
        (start < end).then(|| piece.slice(start..end))
    }))
}

/// SETRANGE key offset value
pub(crate) fn setrange(call: &mut Call<'_>) -> Result<Reply> {
    let offset = call.integer(2)?;
    let offset =
        usize::try_from(offset).map_err(|_| CommandError::Known("ERR offset is out of range"))?;
    let part = call.arg(3);
    let old_bytes = call.entry(0).map_or(0, |entry| entry.value.len());
    if part.is_empty() {
        return Ok(Reply::count(old_bytes));
    }
    let end = check_length(call, offset.checked_add(part.len()))?;
    let Entry { value, expires_at_ms } = call.take(0).unwrap_or_default();
    let mut whole = BytesMut::with_capacity(end.max(old_bytes));
    value.fragments().iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.resize(end.max(old_bytes), 0);
    if let Some(place) = whole.get_mut(offset..end) {
        place.copy_from_slice(part);
    }
    let length = whole.len();
    call.put_value(call.arg(1), whole.freeze(), expires_at_ms);
    Ok(Reply::count(length))
}

/// APPEND key value
pub(crate) fn append(call: &mut Call<'_>) -> Result<Reply> {
    let part = call.arg(2);
    let Entry { value, expires_at_ms } = call.take(0).unwrap_or_default();
    let length = check_length(call, value.len().checked_add(part.len()))?;
    let mut whole = BytesMut::with_capacity(length);
    value.fragments().iter().for_each(|piece| whole.extend_from_slice(piece));
    whole.extend_from_slice(part);
    call.put_value(call.arg(1), whole.freeze(), expires_at_ms);
    Ok(Reply::count(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clamped_as_in_redis() {
        assert_eq!(clamp(0, 3, 16), 0..4);
        assert_eq!(clamp(-3, -1, 16), 13..16);
        assert_eq!(clamp(0, -1, 16), 0..16);
        assert_eq!(clamp(10, 100, 16), 10..16);
        assert_eq!(clamp(5, 3, 16), 0..0);
        assert_eq!(clamp(-1, -5, 16), 0..0);
        assert_eq!(clamp(-100, -50, 4), 0..1, "both clamp to the first byte");
        assert_eq!(clamp(0, -1, 0), 0..0);
        assert_eq!(clamp(i64::MIN, i64::MAX, 3), 0..3);
    }

    #[test]
    fn a_slice_spans_pieces_without_a_copy() {
        let value = Value::from_fragments(["hello".into(), " ".into(), "world".into()]);
        let part = slice(&value, 3..8);
        assert_eq!(part.to_bytes(), "lo wo");
        assert_eq!(part.fragments().len(), 3);
    }
}
