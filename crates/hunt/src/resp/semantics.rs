//! The effects of commands, in the simplest implementation of Redis's documentation. Shares no code
//! with the server.
//!
//! A client does not know when exactly a command ran between request and reply, and so not always
//! whether a key had expired by then. Hence a key has a set of *possible* states; a reply rules out
//! some of them.

use super::command::{Command, Condition, Lifetime};
use super::wire::Reply;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// A range of times, both ends included, in milliseconds of the clock that expiry uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The earliest time.
    pub from_ms: u64,
    /// The latest time.
    pub to_ms: u64,
}

impl Window {
    /// From this time on, without an upper bound.
    pub fn from(from_ms: u64) -> Window {
        Window { from_ms, to_ms: u64::MAX / 4 }
    }

    fn later_by(self, ms: u64) -> Window {
        Window { from_ms: self.from_ms + ms, to_ms: self.to_ms + ms }
    }
}

/// State of a key that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The value.
    pub value: Bytes,
    /// Expiry time, if it has one.
    pub dies: Option<Window>,
}

/// Possible states of a key: a value, or none.
pub type Possible = Vec<Option<Held>>;

/// Possible states of all keys; absent keys do not exist.
pub type State = BTreeMap<Bytes, Possible>;

/// Change by a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// The possible states after it.
    pub after: State,
    /// Keys that were certainly written.
    pub written: BTreeSet<Bytes>,
    /// Keys that may have been written.
    pub perhaps_written: BTreeSet<Bytes>,
}

impl Change {
    /// This change followed by another.
    pub fn then(&mut self, next: Change) {
        self.after.extend(next.after);
        self.written.extend(next.written);
        self.perhaps_written.extend(next.perhaps_written);
    }

    /// This change or another.
    pub fn or(mut self, other: Change) -> Change {
        let keys: BTreeSet<Bytes> = self.after.keys().chain(other.after.keys()).cloned().collect();
        for key in keys {
            let possible = self.after.entry(key.clone()).or_default();
            for held in other.after.get(&key).into_iter().flatten() {
                if !possible.contains(held) {
                    possible.push(held.clone());
                }
            }
        }
        self.written.retain(|key| other.written.contains(key));
        self.perhaps_written.extend(other.perhaps_written);
        self
    }

    /// This change or none.
    pub fn or_nothing(&mut self, before: &State) {
        for (key, possible) in &mut self.after {
            for held in before.get(key).cloned().unwrap_or_else(|| vec![None]) {
                if !possible.contains(&held) {
                    possible.push(held);
                }
            }
        }
        self.written.clear();
    }
}

/// The expected reply in one of the possible cases.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Expected {
    Reply(Reply),
    /// An error with this prefix.
    Error(&'static str),
    /// The remaining time to live of this key, in milliseconds.
    Remaining(Bytes),
}

/// One possible execution of a command.
struct Branch {
    /// The state before, in which the store may not have noticed expiries yet.
    before: BTreeMap<Bytes, Option<Held>>,
    /// The state after.
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

/// A reply that is not possible.
#[derive(Debug)]
pub struct Impossible(pub String);

impl Command {
    /// Evaluates a reply: returns the possible states of the keys, including keys that were only
    /// read.
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

    /// The possible states of the keys after the command ran at an unknown time without a reply.
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

    /// Every combination of the states that its keys can have at that time.
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

/// The restriction that both have in common, where one is known.
fn common(known: Option<BTreeSet<Bytes>>, other: &BTreeSet<Bytes>) -> BTreeSet<Bytes> {
    match known {
        None => other.clone(),
        Some(known) => known.intersection(other).cloned().collect(),
    }
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
}

fn put_all(keys: &mut Branch, pairs: &[(Bytes, Bytes)]) {
    for (key, value) in pairs {
        keys.put(key, Some(Held { value: value.clone(), dies: None }));
    }
}

/// Overwrites a part of a value, which keeps its expiry; gaps are filled with zeros.
fn patch(keys: &mut Branch, key: &Bytes, at: usize, part: &Bytes) {
    let old = keys.get(key).cloned();
    let dies = old.as_ref().and_then(|old| old.dies);
    let mut whole = BytesMut::from(old.map(|old| old.value).unwrap_or_default());
    whole.resize(whole.len().max(at + part.len()), 0);
    whole[at..at + part.len()].copy_from_slice(part);
    keys.put(key, Some(Held { value: whole.freeze(), dies }));
}

/// The bytes from one index to another, both included. Negative indexes count from the end; those
/// before the first byte mean the first byte.
fn part_of(whole: &Bytes, from: i64, to: i64) -> Bytes {
    if from < 0 && to < 0 && from > to {
        return Bytes::new();
    }
    let length = whole.len() as i64;
    let place = |index: i64| if index < 0 { (index + length).max(0) } else { index };
    let (from, to) = (place(from), place(to).min(length - 1));
    if from > to { Bytes::new() } else { whole.slice(from as usize..=to as usize) }
}

/// The state of a key at that time: as recorded, or expired.
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

/// Whether a reply is the expected one. A time to live in the reply narrows the expiry.
fn fits(branch: &mut Branch, expected: &Expected, reply: &Reply, at: Window) -> bool {
    match (expected, reply) {
        (Expected::Reply(expected), reply) => expected == reply,
        (Expected::Error(begin), Reply::Error(text)) => text.starts_with(begin),
        (Expected::Remaining(key), Reply::Integer(left)) if *left >= 0 => {
            let Some(Some(Held { dies: Some(dies), .. })) = branch.keys.get_mut(key) else {
                return false;
            };
            let reported = at.later_by(left.unsigned_abs());
            dies.from_ms = dies.from_ms.max(reported.from_ms);
            dies.to_ms = dies.to_ms.min(reported.to_ms);
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

/// Whether a key with the `possible` states can be found like this at that time: a value with its
/// expiry, 0 for none, or nothing.
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
mod tests;
