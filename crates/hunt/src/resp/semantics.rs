//! What commands do, as Redis documents it and the simplest way to say it. Shares nothing with the server.
//!
//! A client does not know at which moment between its request and the reply a command ran, and so not always whether a
//! key had expired by then. Hence a key has *possible* states; a reply rules some of them out.

use super::wire::Reply;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// A moment between two, both included, in milliseconds of the clock that expiry goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Not before.
    pub from_ms: u64,
    /// Not after.
    pub to_ms: u64,
}

impl Window {
    /// Nobody has heard when.
    pub fn from(from_ms: u64) -> Window {
        Window { from_ms, to_ms: u64::MAX / 4 }
    }

    fn later_by(self, ms: u64) -> Window {
        Window { from_ms: self.from_ms + ms, to_ms: self.to_ms + ms }
    }
}

/// What a key holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The value.
    pub value: Bytes,
    /// When it expires, if it does.
    pub dies: Option<Window>,
}

/// What a key may hold: something, or nothing.
pub type Possible = Vec<Option<Held>>;

/// What all keys may hold; keys that are not here hold nothing.
pub type State = BTreeMap<Bytes, Possible>;

/// How long a value lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// For ever.
    Endless,
    /// As long as the one before.
    Kept,
    /// So many milliseconds from now on.
    ForMs(u64),
    /// To this millisecond since the epoch.
    UntilMs(u64),
}

impl Lifetime {
    fn end(self, at: Window, before: Option<Window>) -> Option<Window> {
        match self {
            Lifetime::Endless => None,
            Lifetime::Kept => before,
            Lifetime::ForMs(ms) => Some(at.later_by(ms)),
            Lifetime::UntilMs(ms) => Some(Window { from_ms: ms, to_ms: ms }),
        }
    }

    fn words(self, words: &mut Vec<Bytes>) {
        let (option, number) = match self {
            Lifetime::Endless => return,
            Lifetime::Kept => return words.push("KEEPTTL".into()),
            // Both spellings are to be spoken.
            Lifetime::ForMs(ms) if ms % 1000 == 0 => ("EX", ms / 1000),
            Lifetime::ForMs(ms) => ("PX", ms),
            Lifetime::UntilMs(ms) => ("PXAT", ms),
        };
        words.extend([option.into(), number.to_string().into()]);
    }
}

/// When SET sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// Whatever is there.
    Always,
    /// NX.
    Absent,
    /// XX.
    Present,
}

/// A command on keys.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called as Redis calls them")]
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

/// What became of the keys of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// What they may hold.
    pub after: State,
    /// Those of them that were written for sure.
    pub written: BTreeSet<Bytes>,
    /// Those of them that may have been.
    pub perhaps_written: BTreeSet<Bytes>,
}

impl Change {
    /// This, and then another.
    pub fn then(&mut self, next: Change) {
        self.after.extend(next.after);
        self.written.extend(next.written);
        self.perhaps_written.extend(next.perhaps_written);
    }
}

/// What a command answers in one of the possible cases.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Reply(Reply),
    /// An error that begins so.
    Error(&'static str),
    /// The milliseconds that are left to this key.
    Remaining(Bytes),
}

/// One way that a command can have gone.
struct Branch {
    /// What the keys were, as far as the store may not have noticed that they expired.
    before: BTreeMap<Bytes, Option<Held>>,
    /// What they are.
    keys: BTreeMap<Bytes, Option<Held>>,
    written: BTreeSet<Bytes>,
}

impl Branch {
    fn get(&self, key: &Bytes) -> Option<&Held> {
        self.keys.get(key)?.as_ref()
    }

    fn put(&mut self, key: &Bytes, held: Option<Held>) {
        self.keys.insert(key.clone(), held);
        self.written.insert(key.clone());
    }
}

/// A reply that cannot be.
#[derive(Debug)]
pub struct Impossible(pub String);

impl Command {
    /// The keys, some perhaps more than once.
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

    /// As it is sent.
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

    /// Takes note of a reply: returns what the keys may hold now, those that were only looked at included.
    ///
    /// # Errors
    /// The reply is impossible.
    pub fn answered(&self, state: &State, reply: &Reply, at: Window) -> Result<Change, Impossible> {
        let mut change = Change::default();
        let mut expectations = Vec::new();
        let mut certain: Option<BTreeSet<Bytes>> = None;
        for mut branch in self.branches(state, at) {
            let expected = self.run(&mut branch, at);
            if fits(&mut branch, &expected, reply, at) {
                for (key, held) in branch.keys {
                    add(&mut change.after, key, held);
                }
                certain = Some(common(certain, &branch.written));
                change.perhaps_written.extend(branch.written);
            } else {
                expectations.push(expected);
            }
        }
        let Some(certain) = certain else {
            let words: Vec<String> =
                self.words().iter().map(|word| super::wire::shown(word)).collect();
            let expectations: Vec<String> = expectations.iter().map(Expected::shown).collect();
            return Err(Impossible(format!(
                "{} was answered {}, possible: {}",
                words.join(" "),
                reply.shown(),
                expectations.join(" or ")
            )));
        };
        change.written = certain;
        Ok(change)
    }

    /// What the keys that it writes may hold if it ran at some moment, and nobody heard of it.
    pub fn unanswered(&self, state: &State, at: Window) -> Change {
        let mut branches = self.branches(state, at);
        branches.iter_mut().for_each(|branch| drop(self.run(branch, at)));
        let written: BTreeSet<Bytes> =
            branches.iter().flat_map(|branch| branch.written.clone()).collect();
        let mut after = State::new();
        for key in &written {
            for branch in &branches {
                let from = if branch.written.contains(key) { &branch.keys } else { &branch.before };
                add(&mut after, key.clone(), from.get(key).cloned().flatten());
            }
        }
        let certain = branches.iter().fold(None, |known, b| Some(common(known, &b.written)));
        Change { after, written: certain.unwrap_or_default(), perhaps_written: written }
    }

    /// Every combination of what its keys may be at that moment.
    fn branches(&self, state: &State, at: Window) -> Vec<Branch> {
        let empty =
            || Branch { before: BTreeMap::new(), keys: BTreeMap::new(), written: BTreeSet::new() };
        let keys: BTreeSet<Bytes> = self.keys().into_iter().collect();
        let mut branches = vec![empty()];
        for key in keys {
            let possible = state.get(&key).cloned().unwrap_or_else(|| vec![None]);
            let cases: Vec<_> = possible.iter().flat_map(|held| seen(held.as_ref(), at)).collect();
            let with = |branch: &Branch, case: &(Option<Held>, Option<Held>)| {
                let mut keys = branch.keys.clone();
                let mut before = branch.before.clone();
                before.insert(key.clone(), case.0.clone());
                keys.insert(key.clone(), case.1.clone());
                Branch { before, keys, written: BTreeSet::new() }
            };
            branches = branches
                .iter()
                .flat_map(|branch| cases.iter().map(move |case| with(branch, case)))
                .collect();
        }
        branches
    }

    fn run(&self, keys: &mut Branch, at: Window) -> Expected {
        use Command::*;
        let value =
            |held: Option<&Held>| held.map_or(Reply::Nil, |held| Reply::Bulk(held.value.clone()));
        let length = |held: Option<&Held>| held.map_or(0, |held| held.value.len());
        let reply = match self {
            Get(key) => value(keys.get(key)),
            Strlen(key) => Reply::count(length(keys.get(key))),
            GetRange(key, from, to) => {
                let whole = keys.get(key).map(|held| held.value.clone()).unwrap_or_default();
                Reply::Bulk(part_of(&whole, *from, *to))
            }
            Mget(names) => Reply::Array(names.iter().map(|key| value(keys.get(key))).collect()),
            Exists(names) => {
                Reply::count(names.iter().filter(|key| keys.get(key).is_some()).count())
            }
            Pttl(key) => match keys.get(key) {
                None => Reply::Integer(-2),
                Some(Held { dies: None, .. }) => Reply::Integer(-1),
                Some(_) => return Expected::Remaining(key.clone()),
            },
            Set { key, value: new, lifetime, condition, get } => {
                let old = keys.get(key).cloned();
                let allowed = match condition {
                    Condition::Always => true,
                    Condition::Absent => old.is_none(),
                    Condition::Present => old.is_some(),
                };
                if allowed {
                    let dies = lifetime.end(at, old.as_ref().and_then(|old| old.dies));
                    keys.put(key, Some(Held { value: new.clone(), dies }));
                }
                match (get, allowed) {
                    (true, _) => value(old.as_ref()),
                    (false, true) => Reply::OK,
                    (false, false) => Reply::Nil,
                }
            }
            GetDel(key) => {
                let old = value(keys.get(key));
                if old != Reply::Nil {
                    keys.put(key, None);
                }
                old
            }
            GetEx(key, lifetime) => {
                let Some(old) = keys.get(key).cloned() else { return Expected::Reply(Reply::Nil) };
                let dies = lifetime.end(at, old.dies);
                keys.put(key, Some(Held { dies, ..old.clone() }));
                Reply::Bulk(old.value)
            }
            IncrBy(key, by) => {
                let old = keys.get(key).cloned();
                let number = match &old {
                    None => Some(0),
                    Some(held) => {
                        std::str::from_utf8(&held.value).ok().and_then(|t| t.parse().ok())
                    }
                };
                let Some(number) = number.map(|number: i64| number + by) else {
                    return Expected::Error("ERR value is not an integer");
                };
                let dies = old.and_then(|old| old.dies);
                keys.put(key, Some(Held { value: number.to_string().into(), dies }));
                Reply::Integer(number)
            }
            Append(key, part) => {
                let at = length(keys.get(key));
                patch(keys, key, at, part);
                Reply::count(at + part.len())
            }
            SetRange(key, at, part) => {
                if !part.is_empty() {
                    patch(keys, key, *at, part);
                }
                Reply::count(length(keys.get(key)))
            }
            Del(names) => {
                let there: BTreeSet<&Bytes> =
                    names.iter().filter(|key| keys.get(key).is_some()).collect();
                there.iter().for_each(|key| keys.put(key, None));
                Reply::count(there.len())
            }
            Mset(pairs) => {
                put_all(keys, pairs);
                Reply::OK
            }
            MsetNx(pairs) => {
                let free = pairs.iter().all(|(key, _)| keys.get(key).is_none());
                if free {
                    put_all(keys, pairs);
                }
                Reply::Integer(i64::from(free))
            }
            Pexpire(key, lifetime) => {
                let Some(old) = keys.get(key).cloned() else {
                    return Expected::Reply(Reply::Integer(0));
                };
                keys.put(key, Some(Held { dies: lifetime.end(at, None), ..old }));
                Reply::Integer(1)
            }
            Persist(key) => match keys.get(key).cloned() {
                Some(old) if old.dies.is_some() => {
                    keys.put(key, Some(Held { dies: None, ..old }));
                    Reply::Integer(1)
                }
                _ => Reply::Integer(0),
            },
            Rename(from, to) => {
                let Some(old) = keys.get(from).cloned() else {
                    return Expected::Error("ERR no such key");
                };
                if from != to {
                    keys.put(from, None);
                    keys.put(to, Some(old));
                }
                Reply::OK
            }
            Copy { from, to, .. } if from == to => return Expected::Error("ERR source and"),
            Copy { from, to, replace } => match keys.get(from).cloned() {
                Some(old) if *replace || keys.get(to).is_none() => {
                    keys.put(to, Some(old));
                    Reply::Integer(1)
                }
                _ => Reply::Integer(0),
            },
        };
        Expected::Reply(reply)
    }
}

/// What is in both, where there is something known.
fn common(known: Option<BTreeSet<Bytes>>, other: &BTreeSet<Bytes>) -> BTreeSet<Bytes> {
    match known {
        None => other.clone(),
        Some(known) => known.intersection(other).cloned().collect(),
    }
}

fn pairs_of(name: &'static str, pairs: &[(Bytes, Bytes)]) -> Vec<Bytes> {
    let pairs = pairs.iter().flat_map(|(key, value)| [key.clone(), value.clone()]);
    [Bytes::from_static(name.as_bytes())].into_iter().chain(pairs).collect()
}

fn put_all(keys: &mut Branch, pairs: &[(Bytes, Bytes)]) {
    for (key, value) in pairs {
        keys.put(key, Some(Held { value: value.clone(), dies: None }));
    }
}

/// Writes a part of a value, which keeps its expiry; zeros fill what lies between.
fn patch(keys: &mut Branch, key: &Bytes, at: usize, part: &Bytes) {
    let old = keys.get(key).cloned();
    let dies = old.as_ref().and_then(|old| old.dies);
    let mut whole = BytesMut::from(old.map(|old| old.value).unwrap_or_default());
    whole.resize(whole.len().max(at + part.len()), 0);
    whole[at..at + part.len()].copy_from_slice(part);
    keys.put(key, Some(Held { value: whole.freeze(), dies }));
}

/// The bytes from one place to another, both included; negative ones count from the end, and those before the first
/// byte are the first.
fn part_of(whole: &Bytes, from: i64, to: i64) -> Bytes {
    if from < 0 && to < 0 && from > to {
        return Bytes::new();
    }
    let length = whole.len() as i64;
    let place = |index: i64| if index < 0 { (index + length).max(0) } else { index };
    let (from, to) = (place(from), place(to).min(length - 1));
    if from > to { Bytes::new() } else { whole.slice(from as usize..=to as usize) }
}

/// What may be seen of a key at that moment: as it was noted, and as it is.
fn seen(held: Option<&Held>, at: Window) -> Vec<(Option<Held>, Option<Held>)> {
    let Some(held) = held else { return vec![(None, None)] };
    let Some(dies) = held.dies else { return vec![(Some(held.clone()), Some(held.clone()))] };
    let mut cases = Vec::new();
    if dies.to_ms > at.from_ms {
        let dies = Window { from_ms: dies.from_ms.max(at.from_ms + 1), ..dies };
        let alive = Held { dies: Some(dies), ..held.clone() };
        cases.push((Some(held.clone()), Some(alive)));
    }
    if dies.from_ms <= at.to_ms {
        cases.push((Some(held.clone()), None));
    }
    cases
}

/// Whether a reply is the expected one; what it tells of an expiry is noted.
fn fits(branch: &mut Branch, expected: &Expected, reply: &Reply, at: Window) -> bool {
    match (expected, reply) {
        (Expected::Reply(expected), reply) => expected == reply,
        (Expected::Error(begin), Reply::Error(text)) => text.starts_with(begin),
        (Expected::Remaining(key), Reply::Integer(left)) if *left >= 0 => {
            let Some(Some(Held { dies: Some(dies), .. })) = branch.keys.get_mut(key) else {
                return false;
            };
            let told = at.later_by(left.unsigned_abs());
            dies.from_ms = dies.from_ms.max(told.from_ms);
            dies.to_ms = dies.to_ms.min(told.to_ms);
            dies.from_ms <= dies.to_ms
        }
        _ => false,
    }
}

fn add(state: &mut State, key: Bytes, held: Option<Held>) {
    let possible = state.entry(key).or_default();
    if !possible.contains(&held) {
        possible.push(held);
    }
}

impl Expected {
    fn shown(&self) -> String {
        match self {
            Expected::Reply(reply) => reply.shown(),
            Expected::Error(text) => format!("an error `{text}`"),
            Expected::Remaining(_) => "the time that is left".to_owned(),
        }
    }
}

/// Whether a key that may hold `possible` can be found like this at that moment: a value and when it expires, 0 for
/// never, or nothing.
pub fn accepts(possible: &Possible, found: Option<&(Bytes, u64)>, at: Window) -> bool {
    possible.iter().any(|held| accepts_one(held.as_ref(), found, at))
}

fn accepts_one(held: Option<&Held>, found: Option<&(Bytes, u64)>, at: Window) -> bool {
    match (held, found) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some(held), None) => held.dies.is_some_and(|dies| dies.from_ms <= at.to_ms),
        (Some(held), Some((value, expires_at_ms))) => {
            let expiry = match held.dies {
                None => *expires_at_ms == 0,
                Some(dies) => {
                    (dies.from_ms..=dies.to_ms).contains(expires_at_ms)
                        && *expires_at_ms > at.from_ms
                }
            };
            held.value == *value && expiry
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Bytes {
        Bytes::from("k")
    }

    fn holding(value: &'static str, dies: Option<(u64, u64)>) -> State {
        let dies = dies.map(|(from_ms, to_ms)| Window { from_ms, to_ms });
        [(key(), vec![Some(Held { value: value.into(), dies })])].into()
    }

    fn at(from_ms: u64, to_ms: u64) -> Window {
        Window { from_ms, to_ms }
    }

    fn answered(command: &Command, state: &State, reply: Reply, at: Window) -> Option<Possible> {
        let change = command.answered(state, &reply, at).ok()?;
        Some(change.after.get(&key()).cloned().unwrap_or_default())
    }

    #[test]
    fn a_reply_tells_whether_a_key_had_expired() {
        let state = holding("v", Some((50, 60)));
        let get = Command::Get(key());
        let value = || Reply::Bulk("v".into());
        assert_eq!(answered(&get, &state, value(), at(10, 20)), Some(state[&key()].clone()));
        assert_eq!(answered(&get, &state, Reply::Nil, at(10, 20)), None, "too early");
        assert_eq!(answered(&get, &state, value(), at(60, 70)), None, "too late");
        assert_eq!(answered(&get, &state, Reply::Nil, at(40, 55)), Some(vec![None]));
        let narrowed = holding("v", Some((56, 60)));
        assert_eq!(answered(&get, &state, value(), at(55, 58)), Some(narrowed[&key()].clone()));
    }

    #[test]
    fn the_time_left_tells_when_a_key_expires() {
        let state = holding("v", Some((50, 80)));
        let left = answered(&Command::Pttl(key()), &state, Reply::Integer(40), at(20, 22));
        assert_eq!(left, Some(holding("v", Some((60, 62)))[&key()].clone()));
        assert_eq!(answered(&Command::Pttl(key()), &state, Reply::Integer(90), at(20, 22)), None);
        assert_eq!(answered(&Command::Pttl(key()), &state, Reply::Integer(-1), at(20, 22)), None);
    }

    #[test]
    fn expiry_is_kept_moved_and_dropped() {
        let state = holding("5", Some((50, 50)));
        let now = at(10, 12);
        let increment = Command::IncrBy(key(), 2);
        let seven = holding("7", Some((50, 50)));
        assert_eq!(
            answered(&increment, &state, Reply::Integer(7), now),
            Some(seven[&key()].clone())
        );
        let set = |lifetime| {
            let (value, condition) = (Bytes::from("x"), Condition::Always);
            Command::Set { key: key(), value, lifetime, condition, get: false }
        };
        let after = |lifetime| answered(&set(lifetime), &state, Reply::OK, now).unwrap();
        assert_eq!(after(Lifetime::Endless), holding("x", None)[&key()]);
        assert_eq!(after(Lifetime::Kept), holding("x", Some((50, 50)))[&key()]);
        assert_eq!(after(Lifetime::ForMs(7)), holding("x", Some((17, 19)))[&key()]);
        let persist = Command::Persist(key());
        let for_ever = holding("5", None);
        assert_eq!(
            answered(&persist, &state, Reply::Integer(1), now),
            Some(for_ever[&key()].clone())
        );
        let rename = Command::Rename(key(), "to".into());
        let moved = rename.answered(&state, &Reply::OK, now).unwrap();
        assert_eq!(
            (&moved.after[&key()], &moved.after[&Bytes::from("to")]),
            (&vec![None], &state[&key()])
        );
        assert_eq!(moved.written.len(), 2);
    }

    #[test]
    fn what_nobody_heard_of_may_have_met_a_key_alive_or_dead() {
        let state = holding("5", Some((50, 50)));
        let change = Command::IncrBy(key(), 1).unanswered(&state, Window::from(40));
        let one = Some(Held { value: "1".into(), dies: None });
        let six = Some(Held { value: "6".into(), dies: Some(at(50, 50)) });
        assert_eq!(change.after[&key()], [six, one]);
        let absent = Command::Set {
            key: key(),
            value: "n".into(),
            lifetime: Lifetime::Endless,
            condition: Condition::Absent,
            get: false,
        };
        let change = absent.unanswered(&state, Window::from(40));
        assert!(change.after[&key()].contains(&state[&key()][0]) && change.written.is_empty());
    }

    #[test]
    fn parts_are_cut_and_pasted_as_redis_does() {
        let whole = Bytes::from("0123456789");
        assert_eq!(part_of(&whole, 2, 4), "234");
        assert_eq!(part_of(&whole, -3, -1), "789");
        assert_eq!((part_of(&whole, 5, 3), part_of(&whole, -3, -5)), ("".into(), "".into()));
        assert_eq!(
            (part_of(&whole, -20, -15), part_of(&"".into(), -2, -1)),
            ("0".into(), "".into())
        );
        let patch = Command::SetRange(key(), 4, "x".into());
        let after = answered(&patch, &holding("ab", None), Reply::Integer(5), at(0, 0));
        assert_eq!(after, Some(holding("ab\0\0x", None)[&key()].clone()));
    }

    #[test]
    fn what_is_found_is_one_of_the_possible() {
        let possible = &holding("v", Some((50, 60)))[&key()];
        let found = |expires_at_ms| Some((Bytes::from("v"), expires_at_ms));
        let fits = |found: Option<(Bytes, u64)>, at| accepts(possible, found.as_ref(), at);
        assert!(fits(found(55), at(20, 20)) && !fits(found(61), at(20, 20)));
        assert!(!fits(found(0), at(20, 20)) && !fits(found(55), at(55, 55)));
        assert!(fits(None, at(50, 50)) && !fits(None, at(49, 49)));
    }
}
