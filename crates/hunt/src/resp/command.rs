//! Commands on keys, and their text.

use bytes::Bytes;

/// Expiry of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// No expiry.
    Endless,
    /// The expiry of the previous value.
    Kept,
    /// After this many milliseconds.
    ForMs(u64),
    /// At this time, in milliseconds since the epoch.
    UntilMs(u64),
}

impl Lifetime {
    fn words(self, words: &mut Vec<Bytes>) {
        let (option, number) = match self {
            Lifetime::Endless => return,
            Lifetime::Kept => return words.push("KEEPTTL".into()),
            // Both units are to be tested.
            Lifetime::ForMs(ms) if ms % 1000 == 0 => ("EX", ms / 1000),
            Lifetime::ForMs(ms) => ("PX", ms),
            Lifetime::UntilMs(ms) => ("PXAT", ms),
        };
        words.extend([option.into(), number.to_string().into()]);
    }
}

/// Condition of SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Always,
    /// NX.
    Absent,
    /// XX.
    Present,
}

/// A command on keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants have the names of the Redis commands")]
pub enum Command {
    Get(Bytes),
    Strlen(Bytes),
    GetRange(Bytes, i64, i64),
    Mget(Vec<Bytes>),
    Exists(Vec<Bytes>),
    Pttl(Bytes),
    Set { key: Bytes, value: Bytes, lifetime: Lifetime, condition: Condition, get: bool },
    GetDel(Bytes),
    GetEx(Bytes, Lifetime),
    IncrBy(Bytes, i64),
    Append(Bytes, Bytes),
    SetRange(Bytes, usize, Bytes),
    Del(Vec<Bytes>),
    Mset(Vec<(Bytes, Bytes)>),
    MsetNx(Vec<(Bytes, Bytes)>),
    Pexpire(Bytes, Lifetime),
    Persist(Bytes),
    Rename(Bytes, Bytes),
    Copy { from: Bytes, to: Bytes, replace: bool },
}

impl Command {
    /// The keys, possibly with repetitions.
    pub fn keys(&self) -> Vec<Bytes> {
        use Command::*;
        match self {
            Get(key)
            | Strlen(key)
            | GetRange(key, ..)
            | Pttl(key)
            | GetDel(key)
            | GetEx(key, _)
            | IncrBy(key, _)
            | Append(key, _)
            | SetRange(key, ..)
            | Pexpire(key, _)
            | Persist(key)
            | Set { key, .. } => vec![key.clone()],
            Mget(keys) | Exists(keys) | Del(keys) => keys.clone(),
            Mset(pairs) | MsetNx(pairs) => pairs.iter().map(|(key, _)| key.clone()).collect(),
            Rename(from, to) | Copy { from, to, .. } => vec![from.clone(), to.clone()],
        }
    }

    /// The keys that may end, at once or after a time.
    pub fn ends(&self) -> Vec<Bytes> {
        use Command::*;
        match self {
            Del(_) | GetDel(_) | Pexpire(..) | Rename(..) | Copy { .. } => self.keys(),
            GetEx(key, lifetime) | Set { key, lifetime, .. } => match lifetime {
                Lifetime::Endless | Lifetime::Kept => Vec::new(),
                Lifetime::ForMs(_) | Lifetime::UntilMs(_) => vec![key.clone()],
            },
            _ => Vec::new(),
        }
    }

    /// The command as an array of words.
    pub fn words(&self) -> Vec<Bytes> {
        use Command::*;
        fn words<const N: usize>(name: &'static str, rest: [&Bytes; N]) -> Vec<Bytes> {
            [&Bytes::from_static(name.as_bytes())].into_iter().chain(rest).cloned().collect()
        }
        let number = |number: i64| Bytes::from(number.to_string());
        let list = |name, keys: &[Bytes]| [&words(name, [])[..], keys].concat();
        match self {
            Get(key) => words("GET", [key]),
            Strlen(key) => words("STRLEN", [key]),
            GetRange(key, from, to) => words("GETRANGE", [key, &number(*from), &number(*to)]),
            Mget(keys) => list("MGET", keys),
            Exists(keys) => list("EXISTS", keys),
            Del(keys) => list("DEL", keys),
            Pttl(key) => words("PTTL", [key]),
            Set { key, value, lifetime, condition, get } => {
                let mut words = words("SET", [key, value]);
                match condition {
                    Condition::Always => {}
                    Condition::Absent => words.push("NX".into()),
                    Condition::Present => words.push("XX".into()),
                }
                words.extend(get.then(|| "GET".into()));
                lifetime.words(&mut words);
                words
            }
            GetDel(key) => words("GETDEL", [key]),
            GetEx(key, lifetime) => {
                let mut words = words("GETEX", [key]);
                match lifetime {
                    Lifetime::Endless => words.push("PERSIST".into()),
                    lifetime => lifetime.words(&mut words),
                }
                words
            }
            IncrBy(key, 1) => words("INCR", [key]),
            IncrBy(key, by) => words("INCRBY", [key, &number(*by)]),
            Append(key, part) => words("APPEND", [key, part]),
            SetRange(key, at, part) => words("SETRANGE", [key, &number(*at as i64), part]),
            Mset(pairs) => pairs_of("MSET", pairs),
            MsetNx(pairs) => pairs_of("MSETNX", pairs),
            Pexpire(key, Lifetime::UntilMs(ms)) => words("PEXPIREAT", [key, &number(*ms as i64)]),
            Pexpire(key, Lifetime::ForMs(ms)) if ms % 1000 == 0 => {
                words("EXPIRE", [key, &number((*ms / 1000) as i64)])
            }
            Pexpire(key, Lifetime::ForMs(ms)) => words("PEXPIRE", [key, &number(*ms as i64)]),
            Pexpire(key, _) | Persist(key) => words("PERSIST", [key]),
            Rename(from, to) => words("RENAME", [from, to]),
            Copy { from, to, replace } => {
                let mut words = words("COPY", [from, to]);
                words.extend(replace.then(|| "REPLACE".into()));
                words
            }
        }
    }
}

fn pairs_of(name: &'static str, pairs: &[(Bytes, Bytes)]) -> Vec<Bytes> {
    let pairs = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]);
    [Bytes::from_static(name.as_bytes())].into_iter().chain(pairs).collect()
}
