//! Options for the expiry of a value: EX, PX, EXAT, PXAT.

use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::words::is;
use bytes::Bytes;

/// Unit and base of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    UnixSeconds,
    UnixMilliseconds,
}

impl Unit {
    /// The unit of an option.
    pub fn of_option(option: &[u8]) -> Option<Unit> {
        if is(option, "EX") {
            Some(Unit::Seconds)
        } else if is(option, "PX") {
            Some(Unit::Milliseconds)
        } else if is(option, "EXAT") {
            Some(Unit::UnixSeconds)
        } else if is(option, "PXAT") {
            Some(Unit::UnixMilliseconds)
        } else {
            None
        }
    }

    pub fn is_absolute(self) -> bool {
        matches!(self, Unit::UnixSeconds | Unit::UnixMilliseconds)
    }

    pub fn is_seconds(self) -> bool {
        matches!(self, Unit::Seconds | Unit::UnixSeconds)
    }
}

/// The expiry time from an option, in milliseconds since the Unix epoch. Only values above 0 in
/// their own unit are accepted.
pub(crate) fn expires_at_ms(
    number: &Bytes,
    unit: Unit,
    now_ms: i64,
    command: &'static str,
) -> Result<u64> {
    let number = parse_i64(number).ok_or(CommandError::NOT_AN_INTEGER)?;
    let milliseconds = if unit.is_seconds() { number.checked_mul(1000) } else { Some(number) };
    milliseconds
        .filter(|milliseconds| *milliseconds > 0)
        .and_then(|milliseconds| {
            if unit.is_absolute() { Some(milliseconds) } else { milliseconds.checked_add(now_ms) }
        })
        .and_then(|at_ms| u64::try_from(at_ms).ok())
        .ok_or(CommandError::InvalidExpireTime(command))
}
