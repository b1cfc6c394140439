//! The operations of the known scripts, on the entries of their keys. Each is one transaction, as a
//! script is in Redis.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::handlers::expire::expire_at;
use crate::handlers::expiry::{Unit, expires_at_ms};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::own;
use crate::scripts::Operation;
use bytes::Bytes;
use softflash_store::Entry;
use softflash_store::value::Value;
use std::collections::HashSet;

/// Keys and arguments of a script.
pub(super) struct Lock<'a, 'b> {
    pub call: &'b mut Call<'a>,
    pub keys: &'a [Bytes],
    pub arguments: &'a [Bytes],
}

impl Lock<'_, '_> {
    pub fn run(&mut self, operation: Operation) -> Result<Reply> {
        match operation {
            Operation::Release => Ok(Reply::yes(self.release(0)?)),
            Operation::ReleaseOrMissing => match self.call.entry(0) {
                None => Ok(Reply::Integer(-1)),
                Some(_) => Ok(Reply::yes(self.release(0)?)),
            },
            Operation::ReleaseIfTrue => Ok(one_or_null(self.release(0)?)),
            Operation::ReleaseEach => self.release_each(),
            Operation::Expire => self.expire(1, "pexpire"),
            Operation::ExpireSeconds => self.expire(1000, "expire"),
            Operation::Prolong => self.prolong(true),
            Operation::ProlongOrExpire => {
                let adds = self.arguments.get(2).is_some_and(|word| word == "0");
                self.prolong(adds)
            }
            Operation::ExpireAll => self.set_all(Lock::holds),
            Operation::Acquire => Ok(match self.acquire()? {
                true => Reply::Ok,
                false => Reply::Null,
            }),
            Operation::AcquireAll => self.set_all(|lock, place| lock.call.entry(place).is_none()),
            Operation::AcquireOrExpire => self.acquire_or_expire(),
            Operation::AcquireOrExpireIfTrue => {
                let acquires = !self.is_taken() && self.acquire_or_expire()? == Reply::Integer(1);
                Ok(one_or_null(acquires))
            }
            Operation::AcquireOrExpireOrTaken if self.is_taken() => Ok(Reply::Integer(-1)),
            Operation::AcquireOrExpireOrTaken => self.acquire_or_expire(),
            Operation::AcquireAgain => self.acquire_again(),
            Operation::Add => self.add(),
            Operation::TimeLeft => Ok(Reply::Integer(match self.holds(0) {
                true => self.time_left_ms(),
                false => -3,
            })),
            Operation::ValueAndTimeLeft => {
                let left_ms = Reply::Integer(self.time_left_ms());
                Ok(Reply::Array(vec![self.call.value_reply(0), left_ms]))
            }
        }
    }

    /// Whether the key at `place` holds the token. As in Lua, an argument that is missing differs
    /// from every value.
    fn holds(&self, place: usize) -> bool {
        let token = self.arguments.first();
        let entry = self.call.entry(place);
        entry.zip(token).is_some_and(|(entry, token)| is_value(&entry.value, token))
    }

    /// Whether the key holds another value.
    fn is_taken(&self) -> bool {
        self.call.entry(0).is_some() && !self.holds(0)
    }

    fn release(&mut self, place: usize) -> Result<bool> {
        let holds = self.holds(place);
        if let (true, Some(key)) = (holds, self.keys.get(place)) {
            self.call.delete(key);
        }
        Ok(holds)
    }

    fn release_each(&mut self) -> Result<Reply> {
        let mut released = HashSet::new();
        for (place, key) in self.keys.iter().enumerate() {
            // A repeated key is gone the second time.
            if !released.contains(&key[..]) && self.release(place)? {
                released.insert(&key[..]);
            }
        }
        Ok(Reply::count(released.len()))
    }

    /// Sets the expiry of a key that holds the token, as `command` does.
    fn expire(&mut self, unit_ms: i64, command: &'static str) -> Result<Reply> {
        if !self.holds(0) {
            return Ok(Reply::Integer(0));
        }
        let time_ms = self.time()?.checked_mul(unit_ms);
        self.expire_in(time_ms, command)
    }

    fn prolong(&mut self, adds: bool) -> Result<Reply> {
        let left_ms = self.time_left_ms();
        if !self.holds(0) || left_ms < 0 {
            return Ok(Reply::Integer(0));
        }
        let time_ms = self.time()?.checked_add(if adds { left_ms } else { 0 });
        self.expire_in(time_ms, "pexpire")
    }

    /// Sets the expiry of the key as `command` does; none if the time overflows.
    fn expire_in(&mut self, time_ms: Option<i64>, command: &'static str) -> Result<Reply> {
        let at_ms = time_ms
            .and_then(|time_ms| time_ms.checked_add(self.call.now_ms()))
            .ok_or(CommandError::InvalidExpireTime(command))?;
        if let (Some(key), Some(Entry { value, .. })) = (self.keys.first(), self.call.take(0)) {
            expire_at(self.call, key, value, at_ms);
        }
        Ok(Reply::Integer(1))
    }

    /// Sets all keys to the token, if each is as wanted.
    fn set_all(&mut self, is_as_wanted: fn(&Self, usize) -> bool) -> Result<Reply> {
        if !(0..self.keys.len()).all(|place| is_as_wanted(self, place)) {
            return Ok(Reply::Integer(0));
        }
        for key in self.keys {
            self.set(key)?;
        }
        Ok(Reply::count(self.keys.len()))
    }

    fn acquire(&mut self) -> Result<bool> {
        // As SET does: it refuses an impossible time also where the key exists.
        let at_ms = self.expiry(Unit::Milliseconds, "set")?;
        let (Some(key), None) = (self.keys.first(), self.call.entry(0)) else { return Ok(false) };
        self.set_until(key, at_ms)?;
        Ok(true)
    }

    fn acquire_or_expire(&mut self) -> Result<Reply> {
        match self.holds(0) {
            true => self.expire(1, "pexpire"),
            false => Ok(Reply::yes(self.acquire()?)),
        }
    }

    fn acquire_again(&mut self) -> Result<Reply> {
        let may_be_new = self.arguments.get(2).is_some_and(|word| word == "yes");
        let is_new = may_be_new && self.call.entry(0).is_none();
        match self.keys.first() {
            Some(key) if is_new || self.holds(0) => {
                self.set(key)?;
                Ok(Reply::Ok)
            }
            _ => Ok(Reply::Null),
        }
    }

    fn add(&mut self) -> Result<Reply> {
        let (Some(key), None) = (self.keys.first(), self.call.entry(0)) else {
            return Ok(Reply::Null);
        };
        let at_ms = self.expiry(Unit::Seconds, "setex")?;
        self.set_until(key, at_ms)?;
        Ok(Reply::Ok)
    }

    fn set(&mut self, key: &Bytes) -> Result<()> {
        let at_ms = self.expiry(Unit::Milliseconds, "set")?;
        self.set_until(key, at_ms)
    }

    /// Sets a key to the token, with an expiry.
    fn set_until(&mut self, key: &Bytes, at_ms: u64) -> Result<()> {
        let token = self.arguments.first().ok_or(TOO_FEW)?;
        self.call.put_value(key, own(token), at_ms);
        Ok(())
    }

    /// The expiry that `command` would set for the time among the arguments.
    fn expiry(&self, unit: Unit, command: &'static str) -> Result<u64> {
        let time = self.arguments.get(1).ok_or(TOO_FEW)?;
        expires_at_ms(time, unit, self.call.now_ms(), command)
    }

    fn time(&self) -> Result<i64> {
        let time = self.arguments.get(1).ok_or(TOO_FEW)?;
        parse_i64(time).ok_or(CommandError::NOT_AN_INTEGER)
    }

    /// As PTTL: -1 without expiry, -2 without a key.
    fn time_left_ms(&self) -> i64 {
        match self.call.entry(0).map(|entry| entry.expires_at_ms) {
            None => -2,
            Some(0) => -1,
            Some(at_ms) => (i64::try_from(at_ms).unwrap_or(i64::MAX) - self.call.now_ms()).max(0),
        }
    }
}

/// A call of a script with fewer arguments than it uses.
const TOO_FEW: CommandError = CommandError::Known("ERR the script needs more arguments");

/// Lua's Booleans as Redis replies them.
fn one_or_null(yes: bool) -> Reply {
    if yes { Reply::Integer(1) } else { Reply::Null }
}

fn is_value(value: &Value, token: &[u8]) -> bool {
    value.len() == token.len() && value.to_bytes() == token
}
