//! The known scripts: each text stands for an operation on locks, which are strings with a token
//! and an expiry.

use super::lua::normalise;
use std::collections::HashMap;
use std::sync::LazyLock;

/// What a known script does. `token` is its first argument, `time` its second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Removes a key that holds the token.
    Release,
    /// The same, with a reply of its own for an absent key.
    ReleaseOrMissing,
    /// The same, with a Boolean as the reply.
    ReleaseIfTrue,
    /// Removes all keys that hold the token.
    ReleaseEach,
    /// Sets the expiry, in milliseconds, of a key that holds the token.
    Expire,
    /// The same, in seconds.
    ExpireSeconds,
    /// Adds to the time to live of a key that holds the token.
    Prolong,
    /// The same if the third argument is 0, else replaces the time to live.
    ProlongOrExpire,
    /// Sets the expiry of all keys, if all hold the token.
    ExpireAll,
    /// Sets an absent key to the token, with an expiry.
    Acquire,
    /// Sets all keys, if all are absent.
    AcquireAll,
    /// Sets the expiry of a key that holds the token, or acquires an absent one.
    AcquireOrExpire,
    /// The same, with a Boolean as the reply.
    AcquireOrExpireIfTrue,
    /// The same, with a reply of its own for a key that holds another value.
    AcquireOrExpireOrTaken,
    /// Sets a key that holds the token; or an absent one, if the third argument is `yes`.
    AcquireAgain,
    /// Sets an absent key to the first argument; the second is the expiry in seconds.
    Add,
    /// The time to live of a key that holds the token.
    TimeLeft,
    /// Value and time to live.
    ValueAndTimeLeft,
}

/// A known script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// Its name in the slow log.
    pub name: &'static str,
    pub operation: Operation,
    /// The commands that it calls, which its user needs permission for.
    pub calls: &'static [&'static str],
}

const fn known(name: &'static str, operation: Operation, calls: &'static [&'static str]) -> Known {
    Known { name, operation, calls }
}

static KNOWN: [Known; 18] = [
    known("lock.release", Operation::Release, &["get", "del"]),
    known("lock.release-or-missing", Operation::ReleaseOrMissing, &["get", "del"]),
    known("lock.release-if-true", Operation::ReleaseIfTrue, &["get", "del"]),
    known("lock.release-each", Operation::ReleaseEach, &["get", "del"]),
    known("lock.expire", Operation::Expire, &["get", "pexpire"]),
    known("lock.expire-seconds", Operation::ExpireSeconds, &["get", "expire"]),
    known("lock.prolong", Operation::Prolong, &["get", "pttl", "pexpire"]),
    known("lock.prolong-or-expire", Operation::ProlongOrExpire, &["get", "pttl", "pexpire"]),
    known("lock.expire-all", Operation::ExpireAll, &["get", "set"]),
    known("lock.acquire", Operation::Acquire, &["set"]),
    known("lock.acquire-all", Operation::AcquireAll, &["exists", "set"]),
    known("lock.acquire-or-expire", Operation::AcquireOrExpire, &["get", "set", "pexpire"]),
    known(
        "lock.acquire-or-expire-if-true",
        Operation::AcquireOrExpireIfTrue,
        &["get", "set", "pexpire"],
    ),
    known(
        "lock.acquire-or-expire-or-taken",
        Operation::AcquireOrExpireOrTaken,
        &["get", "set", "pexpire"],
    ),
    known("lock.acquire-again", Operation::AcquireAgain, &["exists", "get", "set"]),
    known("cache.add", Operation::Add, &["exists", "setex"]),
    known("lock.time-left", Operation::TimeLeft, &["get", "pttl"]),
    known("lock.value-and-time-left", Operation::ValueAndTimeLeft, &["get", "pttl"]),
];

/// The ways to do something only if the key holds the token; `ACTION` stands for the command.
const IF_HELD: [&str; 9] = [
    "if redis.call('get', KEYS[1]) == ARGV[1] then return ACTION else return 0 end",
    "if redis.call('get', KEYS[1]) == ARGV[1] then return ACTION end return 0",
    "if redis.call('get', KEYS[1]) == ARGV[1] then ACTION return 1 else return 0 end",
    "if redis.call('get', KEYS[1]) == ARGV[1] then ACTION return 1 end return 0",
    "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return ACTION else return 0 end",
    "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then return ACTION end return 0",
    "local v = redis.call('get', KEYS[1]) if v == ARGV[1] then ACTION return 1 end return 0",
    "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end \
     ACTION return 1",
    "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return ACTION",
];

/// The commands of such scripts.
const ACTIONS: [(Operation, &str); 4] = [
    (Operation::Release, "redis.call('del', KEYS[1])"),
    (Operation::Release, "redis.call('unlink', KEYS[1])"),
    (Operation::Expire, "redis.call('pexpire', KEYS[1], ARGV[2])"),
    (Operation::ExpireSeconds, "redis.call('expire', KEYS[1], ARGV[2])"),
];

/// The other scripts.
const TEXTS: [(Operation, &str); 18] = [
    (
        Operation::ReleaseOrMissing,
        "local v = redis.call('get', KEYS[1]) \
         if v == ARGV[1] then return redis.call('del', KEYS[1]) \
         elseif v == false then return -1 else return 0 end",
    ),
    (
        Operation::ReleaseIfTrue,
        "local v = redis.call('get', KEYS[1]) \
         if v == ARGV[1] then redis.call('unlink', KEYS[1]) return true end return false",
    ),
    (
        Operation::ReleaseIfTrue,
        "local v = redis.call('get', KEYS[1]) \
         if v == ARGV[1] then redis.call('del', KEYS[1]) return true end return false",
    ),
    (
        Operation::ReleaseEach,
        "local n = 0 for i, k in ipairs(KEYS) do \
         if redis.call('get', k) == ARGV[1] then redis.call('del', k) n = n + 1 end end return n",
    ),
    (
        Operation::Prolong,
        "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end \
         local e = redis.call('pttl', KEYS[1]) if not e then e = 0 end if e < 0 then return 0 end \
         redis.call('pexpire', KEYS[1], e + ARGV[2]) return 1",
    ),
    (
        Operation::ProlongOrExpire,
        "local v = redis.call('get', KEYS[1]) if not v or v ~= ARGV[1] then return 0 end \
         local e = redis.call('pttl', KEYS[1]) if not e then e = 0 end if e < 0 then return 0 end \
         local n = ARGV[2] if ARGV[3] == '0' then n = ARGV[2] + e end \
         redis.call('pexpire', KEYS[1], n) return 1",
    ),
    (
        Operation::ExpireAll,
        "for i, k in ipairs(KEYS) do \
         if redis.call('get', k) ~= ARGV[1] then return 0 end end \
         for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end \
         return #KEYS",
    ),
    (Operation::Acquire, "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])"),
    (Operation::Acquire, "return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX')"),
    (
        Operation::AcquireAll,
        "for i, k in ipairs(KEYS) do \
         if redis.call('exists', k) == 1 then return 0 end end \
         for i, k in ipairs(KEYS) do redis.call('set', k, ARGV[1], 'PX', ARGV[2]) end \
         return #KEYS",
    ),
    (
        Operation::AcquireOrExpire,
        "if redis.call('get', KEYS[1]) == ARGV[1] then \
         return redis.call('pexpire', KEYS[1], ARGV[2]) \
         elseif redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 \
         else return 0 end",
    ),
    (
        Operation::AcquireOrExpire,
        "if redis.call('get', KEYS[1]) == ARGV[1] then \
         return redis.call('pexpire', KEYS[1], ARGV[2]) \
         elseif redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return 1 \
         else return 0 end",
    ),
    (
        Operation::AcquireOrExpireIfTrue,
        "local v = redis.call('get', KEYS[1]) \
         if v == ARGV[1] then redis.call('pexpire', KEYS[1], ARGV[2]) return true \
         elseif not v then redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) return true end \
         return false",
    ),
    (
        Operation::AcquireOrExpireOrTaken,
        "local v = redis.call('get', KEYS[1]) \
         if v == false then \
         return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0 \
         elseif v == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) \
         else return -1 end",
    ),
    (
        Operation::AcquireAgain,
        "if (redis.call('exists', KEYS[1]) == 0 and ARGV[3] == 'yes') \
         or redis.call('get', KEYS[1]) == ARGV[1] \
         then return redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) end",
    ),
    (
        Operation::Add,
        "return redis.call('exists', KEYS[1]) < 1 \
         and redis.call('setex', KEYS[1], ARGV[2], ARGV[1])",
    ),
    (
        Operation::TimeLeft,
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pttl', KEYS[1]) \
         else return -3 end",
    ),
    (
        Operation::ValueAndTimeLeft,
        "return {redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1])}",
    ),
];

/// The known texts, in one form.
static BY_TEXT: LazyLock<HashMap<String, &'static Known>> = LazyLock::new(|| {
    let guarded = IF_HELD.iter().flat_map(|guard| {
        ACTIONS.iter().map(|(operation, action)| (*operation, guard.replace("ACTION", action)))
    });
    let others = TEXTS.iter().map(|(operation, text)| (*operation, (*text).to_owned()));
    let named = |operation| KNOWN.iter().find(|known| known.operation == operation);
    let all = guarded.chain(others);
    all.filter_map(|(operation, text)| Some((normalise(text.as_bytes())?, named(operation)?)))
        .collect()
});

impl Known {
    /// The script with this text.
    pub fn with_text(text: &[u8]) -> Option<&'static Known> {
        BY_TEXT.get(&normalise(text)?).copied()
    }

    /// The script with this name.
    pub fn named(name: &[u8]) -> Option<&'static Known> {
        KNOWN.iter().find(|known| known.name.as_bytes() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_known_by_its_own_operation() {
        for (operation, text) in TEXTS {
            let known = Known::with_text(text.as_bytes()).expect(text);
            assert_eq!(known.operation, operation, "{text}");
            assert_eq!(Known::named(known.name.as_bytes()), Some(known));
        }
        assert_eq!(BY_TEXT.len(), IF_HELD.len() * ACTIONS.len() + TEXTS.len());
    }
}
