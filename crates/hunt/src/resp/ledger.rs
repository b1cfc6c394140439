//! The reference of the keys that only one client writes.
//!
//! Commands take effect in order within one shard, so after a cut each shard holds a prefix of its
//! commands: at least the answered ones, if acknowledged writes are durable. A command on several
//! shards is in the prefixes of all of them, or of none. Commands that the store may have refused
//! are missing in prefixes: see `refusals.rs`. Where acknowledged writes may be lost, the ledger
//! keeps their history, and no client removes all keys. Otherwise it keeps only the possible states
//! of the keys, see [`Stages`] and `durability.rs`.

use super::command::Command;
use super::durability::{DurabilityCheck, Open};
use super::refusals::Refusals;
use super::semantics::{Change, Held, Possible, State, Window, accepts};
use super::stages::Stages;
use super::wire::shown;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Message for a command that took effect in part.
pub(super) const TORN: &str =
    "a command on several shards took effect in one of them and not in another";

pub(super) const WITHOUT_THOSE_BEFORE: &str =
    "some commands took effect without the ones before them";

/// Contents found: value and expiry (0 for none) of each key.
pub type Found = BTreeMap<Bytes, (Bytes, u64)>;

/// The effect of a command or a transaction.
#[derive(Debug, Clone)]
pub struct Effect {
    /// The possible states of the keys after it.
    pub after: State,
    /// The shards of the effect, sorted, without duplicates.
    pub shards: Vec<u16>,
    /// Whether it may have written; otherwise it only narrows the possible states.
    pub writes: bool,
}

impl Effect {
    /// The effects of a change: one for all shards that it certainly wrote, where it is atomic, and
    /// one for each of the other shards.
    pub fn of(change: Change, shard_of: &dyn Fn(&[u8]) -> u16) -> Vec<Effect> {
        let together: BTreeSet<u16> = change.written.iter().map(|key| shard_of(key)).collect();
        let mut effects: BTreeMap<Option<u16>, Effect> = BTreeMap::new();
        for (key, possible) in change.after {
            let shard = shard_of(&key);
            let joint = together.contains(&shard);
            let effect = effects.entry((!joint).then_some(shard)).or_insert_with(|| Effect {
                after: State::new(),
                shards: if joint { together.iter().copied().collect() } else { vec![shard] },
                writes: false,
            });
            effect.writes |= change.perhaps_written.contains(&key);
            effect.after.insert(key, possible);
        }
        effects.into_values().collect()
    }
}

/// The losses permitted without an error, at the end of each shard's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// This many of each client's last exchanges with the shard.
    pub exchanges: usize,
    /// A transaction is lost in all of its shards or in none.
    pub together: bool,
}

impl Slack {
    /// Nothing may be lost.
    pub const NONE: Slack = Slack { exchanges: 0, together: true };
    /// Writes are acknowledged before they are durable.
    pub const INTERVAL: Slack = Slack { exchanges: usize::MAX, together: true };
}

/// Commands on their way to the server.
#[derive(Debug, Clone)]
pub struct Sent {
    /// The commands, in order.
    pub commands: Vec<Command>,
    /// The earliest time at which they run.
    pub from_ms: u64,
    /// They are one transaction.
    pub together: bool,
}

impl Sent {
    /// The atomic parts.
    fn parts(&self) -> Vec<Sent> {
        let of = |commands: &[Command]| Sent { commands: commands.to_vec(), ..*self };
        match self.together {
            true => vec![of(&self.commands)],
            false => self.commands.chunks(1).map(of).collect(),
        }
    }

    /// The keys, possibly with repetitions.
    pub(super) fn keys(&self) -> Vec<Bytes> {
        self.commands.iter().flat_map(Command::keys).collect()
    }

    /// The change that they make together to a state.
    pub(super) fn change(&self, mut state: State) -> Change {
        let mut whole = Change::default();
        for command in &self.commands {
            let change = command.unanswered(&state, Window::from(self.from_ms));
            state.extend(change.after.clone());
            whole.then(change);
        }
        whole
    }
}

/// The reference of a client.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// State at the last comparison.
    base: State,
    /// Answered effects since then, in order.
    answered: Vec<Effect>,
    /// Index of the first effect of each exchange.
    exchanges: Vec<usize>,
    /// Commands sent and not answered, in order.
    sent: Vec<Sent>,
    /// Number of effects of the completed exchanges.
    concluded: usize,
    /// The state that the client reads.
    current: Stages,
    /// Number of answered removals of all keys.
    removals_ended: usize,
    refusals: Refusals,
    /// Commands sent that may end a key, for each key.
    endings: BTreeMap<Bytes, u64>,
}

impl Ledger {
    /// The state that the client reads now.
    pub fn current(&self) -> &Stages {
        &self.current
    }

    /// Records commands before they are sent, or the start of a scan.
    pub fn sends(&mut self, sent: Sent) {
        for key in sent.commands.iter().flat_map(Command::ends) {
            *self.endings.entry(key).or_default() += 1;
        }
        self.sent.push(sent);
    }

    /// The keys that exist and that nothing sent will end, each with the number of commands so far
    /// that might have.
    pub(super) fn lasting(&self) -> Vec<(Bytes, u64)> {
        let sent = self.sent.iter().flat_map(|sent| &sent.commands).flat_map(Command::ends);
        let ending: BTreeSet<Bytes> = sent.collect();
        let exists = |possible: &Possible| {
            possible.iter().all(|held| held.as_ref().is_some_and(|held| held.dies.is_none()))
        };
        let state = self.current.only().into_iter().flatten();
        let lasting = state.filter(|(key, possible)| exists(possible) && !ending.contains(*key));
        lasting.map(|(key, _)| (key.clone(), self.endings_of(key))).collect()
    }

    /// The number of commands sent that may end a key.
    pub(super) fn endings_of(&self, key: &Bytes) -> u64 {
        self.endings.get(key).copied().unwrap_or(0)
    }

    /// Records the reply to a command on these keys; `act` returns the change, or that the reply is
    /// impossible.
    ///
    /// # Errors
    /// The reply is impossible.
    pub fn learns<E>(
        &mut self,
        keys: &[Bytes],
        shard_of: &dyn Fn(&[u8]) -> u16,
        act: impl Fn(&State) -> Result<Change, E>,
    ) -> Result<(), E> {
        let shards = keys.iter().map(|key| shard_of(key)).collect();
        let change = self.current.run(&shards, shard_of, act)?;
        self.answered.extend(Effect::of(change, shard_of));
        Ok(())
    }

    /// All commands sent have been answered.
    pub fn is_answered(&mut self) {
        self.sent.clear();
        self.exchanges.push(self.concluded);
        self.concluded = self.answered.len();
        self.current.settle();
        self.current.have_ended(self.removals_ended);
    }

    /// The first commands of those that were sent last have been answered: only the others may have
    /// effects that are not known.
    pub fn first_are_answered(&mut self, commands: usize) {
        if let Some(sent) = self.sent.last_mut() {
            sent.commands.drain(..commands);
        }
    }

    /// A removal of all keys has started.
    pub fn removal_begins(&mut self) {
        self.current.removal_begins();
    }

    /// Sets the number of answered removals of all keys.
    pub fn removals_ended(&mut self, removals: usize) {
        self.removals_ended = removals;
        // Commands in flight may have run before the removal.
        if self.sent.is_empty() {
            self.current.have_ended(removals);
        }
    }

    /// The server may have refused commands: each of these is present or absent, whether or not
    /// the ones before it are.
    pub(super) fn may_be_refused(&mut self, refusals: Refusals) {
        self.refusals = refusals;
    }

    /// The atomic parts of the commands sent and not answered.
    fn sent_parts(&self) -> Vec<Sent> {
        self.sent.iter().flat_map(Sent::parts).collect()
    }

    /// The effects of these commands on the current state.
    fn open(&self, parts: &[Sent], shard_of: &dyn Fn(&[u8]) -> u16) -> Vec<Effect> {
        let mut state = self.current.only().cloned().unwrap_or_default();
        let mut open = Vec::new();
        for part in parts {
            let mut change = part.change(state.clone());
            if self.refusals.full {
                change.or_nothing(&state);
            }
            state.extend(change.after.clone());
            open.extend(Effect::of(change, shard_of));
        }
        open
    }

    /// Checks the contents found in `shards` shards; `slack` defines the permitted losses. Returns
    /// how many of the unanswered removals of all keys may have happened.
    ///
    /// # Errors
    /// The contents found are not possible.
    pub fn judge(
        &self,
        found: &Found,
        at: Window,
        shards: u16,
        shard_of: &dyn Fn(&[u8]) -> u16,
        slack: Slack,
    ) -> Result<BTreeSet<usize>, String> {
        let sent = self.sent_parts();
        let shards_of: Vec<BTreeSet<u16>> =
            sent.iter().map(|part| part.keys().iter().map(|key| shard_of(key)).collect()).collect();
        let (mut possible, mut wrong) = (BTreeSet::new(), None);
        for runs in self.refusals.possible_runs(&shards_of) {
            let ran = sent.iter().zip(runs).filter(|(_, runs)| *runs);
            let parts: Vec<Sent> = ran.map(|(part, _)| part.clone()).collect();
            match self.judge_run(parts, found, at, shards, shard_of, slack) {
                Ok(removals) => possible.extend(removals),
                Err(what) => wrong = wrong.or(Some(what)),
            }
            if !possible.is_empty() && self.current.only().is_some() {
                break;
            }
        }
        match wrong {
            Some(what) if possible.is_empty() => Err(what),
            _ => Ok(possible),
        }
    }

    /// Checks the contents found if only these commands have run.
    fn judge_run(
        &self,
        parts: Vec<Sent>,
        found: &Found,
        at: Window,
        shards: u16,
        shard_of: &dyn Fn(&[u8]) -> u16,
        slack: Slack,
    ) -> Result<BTreeSet<usize>, String> {
        if slack.exchanges == 0 {
            let open = Open { parts, refusals: self.refusals.full };
            let check = DurabilityCheck { found, at, shards, shard_of };
            return check.judge(self.current.clone(), &open, self.removals_ended);
        }
        let open = self.open(&parts, shard_of);
        let effects: Vec<&Effect> = self.answered.iter().chain(&open).collect();
        let mut candidates = Vec::new();
        for shard in 0..shards {
            let least = self.least(shard, slack);
            let lengths = self.lengths(&effects, least, found, at, shard, shard_of);
            if lengths.is_empty() {
                return Err(self.breach(&effects, least, found, at, shard, shard_of));
            }
            candidates.push(lengths);
        }
        let ties: Vec<&[u16]> = match slack.together {
            true => effects.iter().map(|effect| &effect.shards[..]).collect(),
            false => Vec::new(),
        };
        match agree(&candidates, &ties) {
            true => Ok([0].into()),
            false => Err(TORN.to_owned()),
        }
    }

    /// Checks each key that is not `unreadable` by itself: it has a promised state, or one of a
    /// later write.
    ///
    /// # Errors
    /// The contents found are not possible.
    pub fn judge_each(
        &self,
        found: &Found,
        unreadable: &BTreeSet<Bytes>,
        at: Window,
        shard_of: &dyn Fn(&[u8]) -> u16,
        slack: Slack,
    ) -> Result<(), String> {
        let mut possible = self.base.clone();
        let open = self.open(&self.sent_parts(), shard_of);
        let effects = self.answered.iter().chain(&open).enumerate();
        for (number, effect) in effects {
            for (key, held) in &effect.after {
                let known = possible.entry(key.clone()).or_insert_with(|| vec![None]);
                if number < self.least(shard_of(key), slack) {
                    known.clear();
                }
                known.extend(held.clone());
            }
        }
        let promised = possible;
        let keys = promised.keys().chain(found.keys()).filter(|key| !unreadable.contains(*key));
        match keys.into_iter().find(|key| !fits(&promised, key, found, at)) {
            None => Ok(()),
            Some(key) => Err(format!(
                "key `{}` is neither as promised nor reported as lost: {}",
                key.escape_ascii(),
                found.get(key).map_or("nothing".to_owned(), |(value, _)| shown(value))
            )),
        }
    }

    /// The contents found become the new base. A key found expired stays expired: the log records
    /// the time, or the clock continues.
    pub fn settle(&mut self, found: &Found) {
        let base: State = found
            .iter()
            .map(|(key, (value, ms))| {
                let dies = (*ms != 0).then_some(Window { from_ms: *ms, to_ms: *ms });
                (key.clone(), vec![Some(Held { value: value.clone(), dies })])
            })
            .collect();
        *self = Ledger { current: Stages::of(base.clone()), base, ..Ledger::default() };
    }

    /// Number of effects that a shard must have.
    fn least(&self, shard: u16, slack: Slack) -> usize {
        let ends = self.exchanges.iter().skip(1).copied().chain([self.answered.len()]);
        let written = |begin: usize, end: usize| {
            let mut effects = self.answered[begin..end].iter();
            effects.any(|effect| effect.writes && effect.shards.contains(&shard))
        };
        let exchanges: Vec<(usize, usize)> = self.exchanges.iter().copied().zip(ends).collect();
        let mut with_it = exchanges.into_iter().rev().filter(|(begin, end)| written(*begin, *end));
        match slack.exchanges {
            0 => self.answered.len(),
            exchanges => with_it.nth(exchanges - 1).map_or(0, |(begin, _)| begin),
        }
    }

    /// The possible numbers of effects in a shard. Of numbers that differ in other shards only, the
    /// smallest.
    fn lengths(
        &self,
        effects: &[&Effect],
        least: usize,
        found: &Found,
        at: Window,
        shard: u16,
        shard_of: &dyn Fn(&[u8]) -> u16,
    ) -> Vec<usize> {
        let here = |key: &Bytes| shard_of(key) == shard;
        let mut state: State = self
            .base
            .iter()
            .filter(|(key, _)| here(key))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        let keys = state.keys().chain(found.keys()).filter(|key| here(key));
        let mut wrong: BTreeSet<Bytes> =
            keys.filter(|key| !fits(&state, key, found, at)).cloned().collect();
        let (mut lengths, mut differs) = (Vec::new(), true);
        for length in 0..=effects.len() {
            if length >= least && differs && wrong.is_empty() {
                lengths.push(length);
                differs = false;
            }
            let Some(effect) = effects.get(length) else { break };
            if !effect.shards.contains(&shard) {
                continue;
            }
            differs = true;
            let touched: BTreeSet<Bytes> =
                effect.after.keys().filter(|key| here(key)).cloned().collect();
            apply(&mut state, effect, Some(&here));
            for key in touched {
                if fits(&state, &key, found, at) {
                    wrong.remove(&key);
                } else {
                    wrong.insert(key);
                }
            }
        }
        lengths
    }

    fn breach(
        &self,
        effects: &[&Effect],
        least: usize,
        found: &Found,
        at: Window,
        shard: u16,
        shard_of: &dyn Fn(&[u8]) -> u16,
    ) -> String {
        let here = |key: &Bytes| shard_of(key) == shard;
        let mut promised = self.base.clone();
        effects[..least].iter().for_each(|effect| apply(&mut promised, effect, None));
        let keys: BTreeSet<&Bytes> = self
            .base
            .keys()
            .chain(found.keys())
            .chain(effects.iter().flat_map(|effect| effect.after.keys()))
            .filter(|key| here(key))
            .collect();
        let none = vec![None];
        let mut messages = Vec::new();
        for key in keys {
            let first = promised.get(key).unwrap_or(&none);
            let later = effects[least..].iter().filter_map(|effect| effect.after.get(key));
            if !accepts(first, found.get(key), at) {
                let later: Vec<String> = later.map(possible_shown).collect();
                messages.push(format!(
                    "key `{}`: {} was promised, {} found at {at:?}; possible after the unanswered commands: {}",
                    key.escape_ascii(),
                    possible_shown(first),
                    found.get(key).map_or("nothing".to_owned(), |(value, expires_at_ms)| format!(
                        "{} that expires at {expires_at_ms}",
                        shown(value)
                    )),
                    if later.is_empty() { "nothing".to_owned() } else { later.join(", then ") },
                ));
            }
        }
        if messages.is_empty() {
            messages.push(WITHOUT_THOSE_BEFORE.to_owned());
        }
        messages.truncate(3);
        format!("shard {shard}: {}", messages.join("; "))
    }
}

pub(super) fn possible_shown(possible: &Possible) -> String {
    let each: Vec<String> = possible
        .iter()
        .map(|held| match held {
            None => "nothing".to_owned(),
            Some(held) => match held.dies {
                None => shown(&held.value),
                Some(dies) => {
                    format!("{} until {}..={}", shown(&held.value), dies.from_ms, dies.to_ms)
                }
            },
        })
        .collect();
    each.join(" or ")
}

pub(super) fn fits(state: &State, key: &Bytes, found: &Found, at: Window) -> bool {
    match state.get(key) {
        Some(possible) => accepts(possible, found.get(key), at),
        None => !found.contains_key(key),
    }
}

fn apply(state: &mut State, effect: &Effect, only: Option<&dyn Fn(&Bytes) -> bool>) {
    for (key, possible) in &effect.after {
        if only.is_none_or(|only| only(key)) {
            state.insert(key.clone(), possible.clone());
        }
    }
}

/// Whether a length can be chosen for each shard so that each of `ties` is in all of its shards or
/// in none.
pub(super) fn agree(candidates: &[Vec<usize>], ties: &[&[u16]]) -> bool {
    fn choose(candidates: &[Vec<usize>], ties: &[&[u16]], chosen: &mut Vec<usize>) -> bool {
        let Some(lengths) = candidates.get(chosen.len()) else { return true };
        lengths.iter().any(|length| {
            chosen.push(*length);
            let whole = ties.iter().enumerate().all(|(number, shards)| {
                let known = shards.iter().filter_map(|shard| chosen.get(usize::from(*shard)));
                let mut there = known.map(|length| number < *length);
                there.next().is_none_or(|first| there.all(|other| other == first))
            });
            let chosen_all = whole && choose(candidates, ties, chosen);
            chosen.pop();
            chosen_all
        })
    }
    choose(candidates, ties, &mut Vec::new())
}

#[cfg(test)]
mod tests;
