//! SET and its older relatives; GETSET, GETDEL, GETEX.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::handlers::expiry::{Unit, expires_at_ms};
use crate::resp::reply::Reply;
use crate::resp::words::{is, own};
use bytes::Bytes;
use softflash_store::Entry;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    Absent,
    Present,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lifetime {
    Endless,
    Kept,
    Until(Unit, usize),
}

struct SetOptions {
    condition: Condition,
    lifetime: Lifetime,
    returns_old: bool,
}

impl SetOptions {
    fn parse(args: &[Bytes]) -> Result<SetOptions> {
        let (condition, lifetime, returns_old) = (Condition::Always, Lifetime::Endless, false);
        let mut options = SetOptions { condition, lifetime, returns_old };
        let mut index = 3;
        while let Some(option) = args.get(index) {
            if is(option, "NX") && options.condition != Condition::Present {
                options.condition = Condition::Absent;
            } else if is(option, "XX") && options.condition != Condition::Absent {
                options.condition = Condition::Present;
            } else if is(option, "GET") {
                options.returns_old = true;
            } else if is(option, "KEEPTTL") && !matches!(options.lifetime, Lifetime::Until(..)) {
                options.lifetime = Lifetime::Kept;
            } else {
                options.lifetime = until(options.lifetime, args, index)?;
                index += 1;
            }
            index += 1;
        }
        Ok(options)
    }
}

/// The lifetime from the option at `index` and the number after it. The same option may be
/// repeated, a different one is an error.
fn until(before: Lifetime, args: &[Bytes], index: usize) -> Result<Lifetime> {
    let unit = args.get(index).and_then(|option| Unit::of_option(option));
    let (Some(unit), true) = (unit, index + 1 < args.len()) else { return Call::syntax() };
    match before {
        Lifetime::Endless => Ok(Lifetime::Until(unit, index + 1)),
        Lifetime::Until(earlier, _) if earlier == unit => Ok(Lifetime::Until(unit, index + 1)),
        _ => Call::syntax(),
    }
}

/// Whether SET must load the old entry.
pub(crate) fn needs_old(args: &[Bytes]) -> bool {
    let options = args.get(3..).unwrap_or_default();
    options.iter().any(|option| ["NX", "XX", "GET", "KEEPTTL"].iter().any(|name| is(option, name)))
}

/// Whether SET returns the old value.
pub(crate) fn returns_old(args: &[Bytes]) -> bool {
    SetOptions::parse(args).is_ok_and(|options| options.returns_old)
}

/// SET key value [NX | XX] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
pub(crate) fn set(call: &mut Call<'_>) -> Result<Reply> {
    if call.args.len() == 3 {
        return store(call, 2, 0, Reply::Ok);
    }
    let options = SetOptions::parse(call.args)?;
    let expires_at_ms = match options.lifetime {
        Lifetime::Endless => 0,
        Lifetime::Kept => call.entry(0).map_or(0, |entry| entry.expires_at_ms),
        Lifetime::Until(unit, number) => {
            expires_at_ms(call.arg(number), unit, call.now_ms(), call.name)?
        }
    };
    let exists = call.entry(0).is_some();
    let allowed = match options.condition {
        Condition::Always => true,
        Condition::Absent => !exists,
        Condition::Present => exists,
    };
    let reply = if options.returns_old {
        call.value_reply(0)
    } else if allowed {
        Reply::Ok
    } else {
        Reply::Null
    };
    if !allowed {
        return Ok(reply);
    }
    if expires_at_ms != 0 && expires_at_ms <= call.store.now_ms() {
        // The expiry is in the past already.
        call.delete(call.arg(1));
        return Ok(reply);
    }
    store(call, 2, expires_at_ms, reply)
}

fn store(call: &mut Call<'_>, value: usize, expires_at_ms: u64, reply: Reply) -> Result<Reply> {
    call.put_value(call.arg(1), own(call.arg(value)), expires_at_ms);
    Ok(reply)
}

/// SETNX key value
pub(crate) fn setnx(call: &mut Call<'_>) -> Result<Reply> {
    if call.entry(0).is_some() {
        return Ok(Reply::Integer(0));
    }
    store(call, 2, 0, Reply::Integer(1))
}

/// SETEX key seconds value
pub(crate) fn setex(call: &mut Call<'_>) -> Result<Reply> {
    set_until(call, Unit::Seconds)
}

/// PSETEX key milliseconds value
pub(crate) fn psetex(call: &mut Call<'_>) -> Result<Reply> {
    set_until(call, Unit::Milliseconds)
}

fn set_until(call: &mut Call<'_>, unit: Unit) -> Result<Reply> {
    let expires_at_ms = expires_at_ms(call.arg(2), unit, call.now_ms(), call.name)?;
    store(call, 3, expires_at_ms, Reply::Ok)
}

/// GETSET key value
pub(crate) fn getset(call: &mut Call<'_>) -> Result<Reply> {
    let old = call.value_reply(0);
    store(call, 2, 0, old)
}

/// GETDEL key
pub(crate) fn getdel(call: &mut Call<'_>) -> Result<Reply> {
    if call.entry(0).is_some() {
        call.delete(call.arg(1));
    }
    Ok(call.value_reply(0))
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
pub(crate) fn getex(call: &mut Call<'_>) -> Result<Reply> {
    let (mut lifetime, mut persist) = (Lifetime::Kept, false);
    let mut index = 2;
    while let Some(option) = call.args.get(index) {
        if is(option, "PERSIST") && lifetime == Lifetime::Kept {
            persist = true;
        } else if persist {
            return Call::syntax();
        } else {
            let before = if lifetime == Lifetime::Kept { Lifetime::Endless } else { lifetime };
            lifetime = until(before, call.args, index)?;
            index += 1;
        }
        index += 1;
    }
    let Some(Entry { value, expires_at_ms: old_ms }) = call.take(0) else { return Ok(Reply::Null) };
    let key = call.arg(1);
    match lifetime {
        Lifetime::Until(unit, number) => {
            let now_ms = call.now_ms();
            let at_ms = expires_at_ms(call.arg(number), unit, now_ms, call.name)?;
            if at_ms <= now_ms.unsigned_abs() {
                call.delete(key);
            } else {
                call.put_value(key, value.clone(), at_ms);
            }
        }
        _ if persist && old_ms != 0 => call.put_value(key, value.clone(), 0),
        _ => {}
    }
    Ok(Reply::Value(value))
}

/// GET key
pub(crate) fn get(call: &mut Call<'_>) -> Result<Reply> {
    Ok(call.value_reply(0))
}

/// STRLEN key
pub(crate) fn strlen(call: &mut Call<'_>) -> Result<Reply> {
    Ok(Reply::count(call.entry(0).map_or(0, |entry| entry.value.len())))
}

/// Refuses values above the limit before they are built.
pub(crate) fn check_length(call: &Call<'_>, bytes: Option<usize>) -> Result<usize> {
    let limit = call.store.max_value_bytes();
    bytes.filter(|bytes| *bytes <= limit).ok_or(CommandError::STRING_TOO_LONG)
}
