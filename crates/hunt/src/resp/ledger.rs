//! What one client was promised of the keys that only it writes.
//!
//! Commands take effect in order as far as one shard is concerned, so after a cut each shard holds what the first so
//! many of its commands made: at least those whose reply came, if acknowledged writes are on flash. A command on several
//! shards is in the history of each of them, or of none. Where answers may be lost the history is kept for that, and nobody
//! removes everything; otherwise what the keys may hold now is enough, see [`Stages`] and `firm.rs`.

use super::command::Command;
use super::firm::{Firm, Open};
use super::semantics::{Change, Held, Possible, State, Window, accepts};
use super::stages::Stages;
use super::wire::shown;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Commands that were found in parts.
pub(super) const TORN: &str =
    "a command over several shards is found in one of them and not in another";

pub(super) const WITHOUT_THOSE_BEFORE: &str = "some commands are found without those before them";

/// What was found of some keys: value, and when it expires (0 for never).
pub type Found = BTreeMap<Bytes, (Bytes, u64)>;

/// What a command, or a transaction, made.
#[derive(Debug, Clone)]
pub struct Effect {
    /// What the keys may hold from then on.
    pub after: State,
    /// Shards that it belongs to; in order, each once.
    pub shards: Vec<u16>,
    /// It may have written something, and not only shown what is there.
    pub writes: bool,
}

impl Effect {
    /// The effects of a change: one for all shards that it has written for sure, which have it together or not at all,
    /// and one for each of the others.
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

/// What may be lost without a word, at the end of each shard's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slack {
    /// So many of each client's last exchanges with the shard.
    pub exchanges: usize,
    /// In all shards of a transaction or in none.
    pub together: bool,
}

impl Slack {
    /// Nothing may be lost.
    pub const NONE: Slack = Slack { exchanges: 0, together: true };
    /// Writes are acknowledged before they are on flash.
    pub const INTERVAL: Slack = Slack { exchanges: usize::MAX, together: true };
}

/// Commands on their way to the server.
#[derive(Debug, Clone)]
pub struct Sent {
    /// In this order.
    pub commands: Vec<Command>,
    /// Not earlier than this.
    pub from_ms: u64,
    /// All of them happen or none.
    pub together: bool,
}

impl Sent {
    /// What of them happens or does not.
    fn parts(&self) -> Vec<Sent> {
        let of = |commands: &[Command]| Sent { commands: commands.to_vec(), ..*self };
        match self.together {
            true => vec![of(&self.commands)],
            false => self.commands.chunks(1).map(of).collect(),
        }
    }

    /// Its keys, some perhaps more than once.
    pub(super) fn keys(&self) -> Vec<Bytes> {
        self.commands.iter().flat_map(Command::keys).collect()
    }

    /// What they may do together to what is there.
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

/// A client's book.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    /// What was found when somebody last looked.
    base: State,
    /// What was answered since, in order.
    answered: Vec<Effect>,
    /// Where in it the effects of each exchange begin.
    exchanges: Vec<usize>,
    /// What was sent and not answered, in order.
    sent: Vec<Sent>,
    /// Effects of the exchanges that have ended.
    concluded: usize,
    /// What the client reads.
    current: Stages,
    /// Removals of everything that were answered.
    removals_ended: usize,
    /// The server has refused commands for lack of room, perhaps some whose reply did not come.
    refusals: bool,
}

impl Ledger {
    /// What the client reads now.
    pub fn current(&self) -> &Stages {
        &self.current
    }

    /// Commands are about to be sent, or a look is about to begin.
    pub fn sends(&mut self, sent: Sent) {
        self.sent.push(sent);
    }

    /// A command on these keys was answered; `act` tells what became of them, or that the answer is impossible.
    ///
    /// # Errors
    /// It is impossible.
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

    /// Everything that was sent has been answered.
    pub fn is_answered(&mut self) {
        self.sent.clear();
        self.exchanges.push(self.concluded);
        self.concluded = self.answered.len();
        self.current.settle();
        self.current.have_ended(self.removals_ended);
    }

    /// From now on everything may be removed.
    pub fn removal_begins(&mut self) {
        self.current.removal_begins();
    }

    /// So many removals of everything have been answered.
    pub fn removals_ended(&mut self, removals: usize) {
        self.removals_ended = removals;
        // What is on its way may have come before.
        if self.sent.is_empty() {
            self.current.have_ended(removals);
        }
    }

    /// The server has refused commands for lack of room, perhaps some whose reply did not come: each of those may have
    /// happened or not, whatever became of those before it.
    pub fn may_be_refused(&mut self) {
        self.refusals = true;
    }

    /// What was sent and not answered, as it would go with what is there.
    fn open(&self, shard_of: &dyn Fn(&[u8]) -> u16) -> Vec<Effect> {
        let mut state = self.current.only().cloned().unwrap_or_default();
        let mut open = Vec::new();
        for part in self.sent.iter().flat_map(Sent::parts) {
            let mut change = part.change(state.clone());
            if self.refusals {
                change.or_nothing(&state);
            }
            state.extend(change.after.clone());
            open.extend(Effect::of(change, shard_of));
        }
        open
    }

    /// Compares with what was found in `shards` shards, where some answers need not hold.
    ///
    /// # Errors
    /// What was found cannot be. Otherwise how many of the removals of everything that were not answered may have
    /// happened.
    pub fn judge(
        &self,
        found: &Found,
        at: Window,
        shards: u16,
        shard_of: &dyn Fn(&[u8]) -> u16,
        slack: Slack,
    ) -> Result<BTreeSet<usize>, String> {
        if slack.exchanges == 0 {
            let parts = self.sent.iter().flat_map(Sent::parts).collect();
            let open = Open { parts, refusals: self.refusals };
            let firm = Firm { found, at, shards, shard_of };
            return firm.judge(self.current.clone(), &open, self.removals_ended);
        }
        let open = self.open(shard_of);
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

    /// Compares each key that is not `unreadable` for itself: it holds what was promised, or what was made of it later.
    ///
    /// # Errors
    /// What was found cannot be.
    pub fn judge_each(
        &self,
        found: &Found,
        unreadable: &BTreeSet<Bytes>,
        at: Window,
        shard_of: &dyn Fn(&[u8]) -> u16,
        slack: Slack,
    ) -> Result<(), String> {
        let mut possible = self.base.clone();
        let open = self.open(shard_of);
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
                "key `{}` holds neither what was promised nor says that it is lost: {}",
                key.escape_ascii(),
                found.get(key).map_or("nothing".to_owned(), |(value, _)| shown(value))
            )),
        }
    }

    /// What was found is the truth from now on, also of what was found to have expired: the log says how late it was, or
    /// the clock goes on.
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

    /// The effects that a shard must have.
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

    /// How many effects may have come to a shard, as far as that one shows: of numbers that differ in other shards only,
    /// the least.
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
        let mut told = Vec::new();
        for key in keys {
            let first = promised.get(key).unwrap_or(&none);
            let later = effects[least..].iter().filter_map(|effect| effect.after.get(key));
            if !accepts(first, found.get(key), at) {
                let later: Vec<String> = later.map(possible_shown).collect();
                told.push(format!(
                    "key `{}`: {} was promised, {} found at {at:?}; made since, of unknown outcome: {}",
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
        if told.is_empty() {
            told.push(WITHOUT_THOSE_BEFORE.to_owned());
        }
        told.truncate(3);
        format!("shard {shard}: {}", told.join("; "))
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

/// Whether a length can be chosen for each shard so that each of `ties` is in all of its shards or in none.
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
