//! Expiry of keys: EXPIRE and its relatives, TTL and its relatives, PERSIST.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use bytes::Bytes;
use softflash_store::Entry;
use softflash_store::value::Value;

/// EXPIRE key seconds [NX | XX | GT | LT]
pub(crate) fn expire(call: &mut Call<'_>) -> Result<Reply> {
    let now_ms = call.now_ms();
    set_expiry(call, now_ms, 1000)
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT]
pub(crate) fn pexpire(call: &mut Call<'_>) -> Result<Reply> {
    let now_ms = call.now_ms();
    set_expiry(call, now_ms, 1)
}

/// EXPIREAT key unix-seconds [NX | XX | GT | LT]
pub(crate) fn expireat(call: &mut Call<'_>) -> Result<Reply> {
    set_expiry(call, 0, 1000)
}

/// PEXPIREAT key unix-milliseconds [NX | XX | GT | LT]
pub(crate) fn pexpireat(call: &mut Call<'_>) -> Result<Reply> {
    set_expiry(call, 0, 1)
}

#[derive(Default)]
struct Conditions {
    absent: bool,
    present: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(call: &Call<'_>) -> Result<Conditions> {
        let mut conditions = Conditions::default();
        for option in call.args.get(3..).unwrap_or_default() {
            let condition = if is(option, "NX") {
                &mut conditions.absent
            } else if is(option, "XX") {
                &mut conditions.present
            } else if is(option, "GT") {
                &mut conditions.later
            } else if is(option, "LT") {
                &mut conditions.earlier
            } else {
                let text = option.split(|byte| *byte == 0).next().unwrap_or_default();
                return Err(CommandError::quoting(&[b"ERR Unsupported option ", text]));
            };
            *condition = true;
        }
        let Conditions { absent, present, later, earlier } = conditions;
        if absent && (present || later || earlier) {
            return Err(CommandError::Known(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if later && earlier {
            return Err(CommandError::Known(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// Whether the options allow the expiry `at_ms`; `old_ms` is 0 for none.
    fn allow(&self, at_ms: i64, old_ms: u64) -> bool {
        let old_ms = (old_ms != 0).then(|| i64::try_from(old_ms).unwrap_or(i64::MAX));
        !(self.absent && old_ms.is_some()
            || self.present && old_ms.is_none()
            || self.later && old_ms.is_none_or(|old_ms| at_ms <= old_ms)
            || self.earlier && old_ms.is_some_and(|old_ms| at_ms >= old_ms))
    }
}

fn set_expiry(call: &mut Call<'_>, base_ms: i64, unit_ms: i64) -> Result<Reply> {
    let conditions = Conditions::parse(call)?;
    let at_ms = call
        .integer(2)?
        .checked_mul(unit_ms)
        .and_then(|span_ms| span_ms.checked_add(base_ms))
        .ok_or(CommandError::InvalidExpireTime(call.name))?;
    let Some(Entry { value, expires_at_ms }) = call.take(0) else { return Ok(Reply::Integer(0)) };
    if !conditions.allow(at_ms, expires_at_ms) {
        return Ok(Reply::Integer(0));
    }
    let key = call.arg(1);
    expire_at(call, key, value, at_ms);
    Ok(Reply::Integer(1))
}

/// Sets the expiry of a key, and removes it if that is in the past.
pub(super) fn expire_at(call: &mut Call<'_>, key: &Bytes, value: Value, at_ms: i64) {
    match u64::try_from(at_ms) {
        Ok(at_ms) if at_ms > call.store.now_ms() => call.put_value(key, value, at_ms),
        _ => call.delete(key),
    }
}

/// TTL key
pub(crate) fn ttl(call: &mut Call<'_>) -> Result<Reply> {
    remaining(call, to_seconds)
}

/// PTTL key
pub(crate) fn pttl(call: &mut Call<'_>) -> Result<Reply> {
    remaining(call, |ms| ms)
}

/// EXPIRETIME key
pub(crate) fn expiretime(call: &mut Call<'_>) -> Result<Reply> {
    Ok(expiry(call).map_or_else(Reply::Integer, |at_ms| Reply::Integer(to_seconds(at_ms))))
}

/// PEXPIRETIME key
pub(crate) fn pexpiretime(call: &mut Call<'_>) -> Result<Reply> {
    Ok(Reply::Integer(expiry(call).unwrap_or_else(|code| code)))
}

fn remaining(call: &Call<'_>, unit: fn(i64) -> i64) -> Result<Reply> {
    Ok(Reply::Integer(match expiry(call) {
        Ok(at_ms) => unit((at_ms - call.now_ms()).max(0)),
        Err(code) => code,
    }))
}

/// The expiry time; -1 for none, -2 if the key does not exist.
fn expiry(call: &Call<'_>) -> std::result::Result<i64, i64> {
    match call.entry(0).map(|entry| entry.expires_at_ms) {
        None => Err(-2),
        Some(0) => Err(-1),
        Some(at_ms) => Ok(i64::try_from(at_ms).unwrap_or(i64::MAX)),
    }
}

fn to_seconds(ms: i64) -> i64 {
    ms.saturating_add(500) / 1000
}

/// PERSIST key
pub(crate) fn persist(call: &mut Call<'_>) -> Result<Reply> {
    match call.take(0) {
        Some(entry) if entry.expires_at_ms != 0 => {
            call.put_value(call.arg(1), entry.value, 0);
            Ok(Reply::Integer(1))
        }
        _ => Ok(Reply::Integer(0)),
    }
}
