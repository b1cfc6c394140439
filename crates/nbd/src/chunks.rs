//! Encoding of simple replies and of the chunks of structured replies.

use crate::error::ErrorCode;
use crate::output::{Output, message};
use crate::request::Cookie;
use crate::wire::{DONE, chunk, magic};

/// Whether a chunk is the last of its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Last,
    Before,
}

/// A simple reply; data follow if it answers a read and there is no error.
pub(crate) fn simple(cookie: Cookie, error: Option<ErrorCode>, output: &mut impl Output) {
    output.put(&magic::SIMPLE_REPLY.to_be_bytes());
    output.put(&error.map_or(0, ErrorCode::number).to_be_bytes());
    output.put(&cookie.0.to_be_bytes());
}

/// The header of a chunk.
pub(crate) fn header(
    cookie: Cookie,
    kind: u16,
    place: Place,
    payload_bytes: u32,
    output: &mut impl Output,
) {
    let flags = if place == Place::Last { DONE } else { 0 };
    output.put(&magic::STRUCTURED_REPLY.to_be_bytes());
    output.put(&flags.to_be_bytes());
    output.put(&kind.to_be_bytes());
    output.put(&cookie.0.to_be_bytes());
    output.put(&payload_bytes.to_be_bytes());
}

/// The last chunk of a successful reply.
pub(crate) fn none(cookie: Cookie, output: &mut impl Output) {
    header(cookie, chunk::NONE, Place::Last, 0, output);
}

/// The beginning of a chunk of data, which follow. A maximum payload is at most 2 GiB, so the
/// length fits.
pub(crate) fn data(
    cookie: Cookie,
    offset: u64,
    bytes: u32,
    place: Place,
    output: &mut impl Output,
) {
    header(cookie, chunk::OFFSET_DATA, place, bytes + 8, output);
    output.put(&offset.to_be_bytes());
}

/// A chunk for bytes that read as zeroes.
pub(crate) fn hole(cookie: Cookie, offset: u64, bytes: u32, output: &mut impl Output) {
    header(cookie, chunk::OFFSET_HOLE, Place::Before, 12, output);
    output.put(&offset.to_be_bytes());
    output.put(&bytes.to_be_bytes());
}

/// An error as the last chunk, with the offset at which it happened if that is known.
pub(crate) fn error(
    cookie: Cookie,
    error: ErrorCode,
    text: &str,
    offset: Option<u64>,
    output: &mut impl Output,
) {
    let (text, text_bytes) = message(text);
    let (kind, fixed_bytes) = match offset {
        None => (chunk::ERROR, 6),
        Some(_) => (chunk::ERROR_OFFSET, 14),
    };
    header(cookie, kind, Place::Last, fixed_bytes + u32::from(text_bytes), output);
    output.put(&error.number().to_be_bytes());
    output.put(&text_bytes.to_be_bytes());
    output.put(text.as_bytes());
    if let Some(offset) = offset {
        output.put(&offset.to_be_bytes());
    }
}
