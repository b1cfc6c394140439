//! What one client was promised of the keys that only it writes.
//!
//! Commands take effect in order as far as one shard is concerned, so after a cut each shard holds what the first so
//! many of its commands made: at least those whose reply came, if acknowledged writes are on flash. A command on several
//! shards is in the history of each of them, or of none.

use super::command::Command;
use super::semantics::{Change, Held, Possible, State, Window, accepts};
use super::wire::shown;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

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
    /// It removes everything that everybody has.
    pub clears: bool,
}

impl Effect {
    /// The removal of everything.
    pub fn clear(shards: u16) -> Effect {
        Effect { after: State::new(), shards: (0..shards).collect(), writes: true, clears: true }
    }

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
                clears: false,
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

    /// What they may do to what is there.
    fn changes(&self, mut state: State) -> Vec<Change> {
        let mut changes = Vec::new();
        for command in &self.commands {
            let change = command.unanswered(&state, Window::from(self.from_ms));
            state.extend(change.after.clone());
            changes.push(change);
        }
        if !self.together {
            return changes;
        }
        let mut whole = Change::default();
        changes.into_iter().for_each(|change| whole.then(change));
        vec![whole]
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
    open: Vec<Effect>,
    /// The commands of which that comes.
    sent: Vec<Sent>,
    /// What the client reads.
    current: State,
}

impl Ledger {
    /// What the client reads now.
    pub fn current(&self) -> &State {
        &self.current
    }

    /// Commands are about to be sent.
    pub fn sends(&mut self, sent: Sent, shard_of: &dyn Fn(&[u8]) -> u16) {
        let changes = sent.changes(self.current.clone());
        self.may_come(changes.into_iter().flat_map(|change| Effect::of(change, shard_of)));
        self.sent.push(sent);
    }

    /// Something may happen from now on.
    pub fn may_come(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.open.extend(effects);
    }

    /// The server has refused commands for lack of room, perhaps some whose reply did not come: each of those may have
    /// happened or not, whatever became of those before it.
    pub fn may_be_refused(&mut self, shard_of: &dyn Fn(&[u8]) -> u16) {
        let (mut state, mut open) = (self.current.clone(), Vec::new());
        for sent in self.sent.iter().flat_map(Sent::parts) {
            for mut change in sent.changes(state.clone()) {
                change.or_nothing(&state);
                state.extend(change.after.clone());
                open.extend(Effect::of(change, shard_of));
            }
        }
        // Nobody removes everything while others wait for replies.
        open.extend(self.open.drain(..).filter(|effect| effect.clears));
        self.open = open;
    }

    /// What was sent has been answered, with these effects.
    pub fn answered(&mut self, effects: Vec<Effect>) {
        self.open.clear();
        self.sent.clear();
        self.exchanges.push(self.answered.len());
        effects.iter().for_each(|effect| apply(&mut self.current, effect, None));
        self.answered.extend(effects);
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
        let effects: Vec<&Effect> = self.answered.iter().chain(&self.open).collect();
        let mut candidates = Vec::new();
        for shard in 0..shards {
            let least = self.least(shard, slack);
            let lengths = self.lengths(&effects, least, found, at, shard, shard_of);
            if lengths.is_empty() {
                return Err(self.breach(&effects, least, found, at, shard, shard_of));
            }
            candidates.push(lengths);
        }
        let mut clears = BTreeSet::new();
        let ties = if slack.together { &effects[..] } else { &[] };
        let answered = self.answered.len();
        combine(&candidates, (&effects, ties), answered, &mut Vec::new(), &mut clears);
        if clears.is_empty() {
            let what = "a command over several shards is found in one of them and not in another";
            return Err(what.to_owned());
        }
        Ok(clears)
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
        let effects = self.answered.iter().chain(&self.open).enumerate();
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
        *self = Ledger { current: base.clone(), base, ..Ledger::default() };
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
            let mut touched: BTreeSet<Bytes> =
                effect.after.keys().filter(|key| here(key)).cloned().collect();
            if effect.clears {
                touched.extend(state.keys().cloned());
            }
            apply(&mut state, effect, Some(&here));
            for key in touched {
                if fits(&state, &key, found, at) {
                    wrong.remove(&key);
                } else {
                    wrong.insert(key);
                }
            }
            // Found, and removed since by what clears everything.
            if effect.clears {
                let there = found.keys().filter(|key| here(key) && !state.contains_key(*key));
                wrong.extend(there.cloned());
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
            told.push("some commands are found without those before them".to_owned());
        }
        told.truncate(3);
        format!("shard {shard}: {}", told.join("; "))
    }
}

fn possible_shown(possible: &Possible) -> String {
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

fn fits(state: &State, key: &Bytes, found: &Found, at: Window) -> bool {
    match state.get(key) {
        Some(possible) => accepts(possible, found.get(key), at),
        None => !found.contains_key(key),
    }
}

fn apply(state: &mut State, effect: &Effect, only: Option<&dyn Fn(&Bytes) -> bool>) {
    if effect.clears {
        state.clear();
    }
    for (key, possible) in &effect.after {
        if only.is_none_or(|only| only(key)) {
            state.insert(key.clone(), possible.clone());
        }
    }
}

/// Goes through the choices of a length for each shard in which every one of `ties` is in all of its shards or in none: how
/// many of the removals of everything they have that were not answered. One choice is enough where there is no such removal.
fn combine(
    candidates: &[Vec<usize>],
    (effects, ties): (&[&Effect], &[&Effect]),
    answered: usize,
    chosen: &mut Vec<usize>,
    clears: &mut BTreeSet<usize>,
) {
    let Some(lengths) = candidates.get(chosen.len()) else {
        let end = chosen.first().copied().unwrap_or(0);
        let open = effects.iter().take(end).skip(answered);
        clears.insert(open.filter(|effect| effect.clears).count());
        return;
    };
    for &length in lengths {
        chosen.push(length);
        let whole = ties.iter().enumerate().all(|(number, effect)| {
            let known = effect.shards.iter().filter_map(|shard| chosen.get(usize::from(*shard)));
            let mut there = known.map(|length| number < *length);
            there.next().is_none_or(|first| there.all(|other| other == first))
        });
        if whole {
            combine(candidates, (effects, ties), answered, chosen, clears);
        }
        chosen.pop();
        if !clears.is_empty() && !effects.iter().any(|effect| effect.clears) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Window = Window { from_ms: 100, to_ms: 100 };

    /// Keys that begin with `a` are in shard 0, others in shard 1.
    fn shard_of(key: &[u8]) -> u16 {
        u16::from(key[0] != b'a')
    }

    fn put(pairs: &[(&'static str, &'static str)]) -> Effect {
        let held = |value: &'static str| vec![Some(Held { value: value.into(), dies: None })];
        let after: State =
            pairs.iter().map(|(key, value)| (Bytes::from(*key), held(value))).collect();
        let shards: BTreeSet<u16> = after.keys().map(|key| shard_of(key)).collect();
        Effect { after, shards: shards.into_iter().collect(), writes: true, clears: false }
    }

    fn found(
        ledger: &Ledger,
        pairs: &[(&'static str, &'static str)],
    ) -> Result<BTreeSet<usize>, String> {
        let found = pairs.iter().map(|(key, value)| (Bytes::from(*key), (Bytes::from(*value), 0)));
        ledger.judge(&found.collect(), AT, 2, &shard_of, Slack::NONE)
    }

    #[test]
    fn what_was_answered_is_there_and_what_was_not_is_there_in_order() {
        let mut ledger = Ledger::default();
        ledger.may_come(vec![put(&[("a", "1")])]);
        ledger.answered(vec![put(&[("a", "1")])]);
        ledger.may_come(vec![put(&[("a", "2")]), put(&[("b", "2")]), put(&[("a2", "3")])]);
        for possible in [
            &[("a", "1")][..],
            &[("a", "2")],
            &[("a", "1"), ("b", "2")],
            &[("a", "2"), ("a2", "3"), ("b", "2")],
        ] {
            assert_eq!(found(&ledger, possible), Ok([0].into()), "{possible:?}");
        }
        assert!(found(&ledger, &[]).is_err(), "lost");
        assert!(found(&ledger, &[("a", "1"), ("a2", "3")]).is_err(), "the one before is missing");
        assert!(found(&ledger, &[("a", "1"), ("c", "3")]).is_err(), "invented");
        assert!(found(&ledger, &[("a", "0")]).unwrap_err().contains("1 bytes `1` was promised"));
    }

    #[test]
    fn commands_over_shards_are_there_all_or_none() {
        let mut ledger = Ledger::default();
        ledger.may_come(vec![put(&[("a", "1"), ("b", "1")]), put(&[("b", "2")])]);
        assert!(found(&ledger, &[]).is_ok() && found(&ledger, &[("a", "1"), ("b", "1")]).is_ok());
        assert!(found(&ledger, &[("a", "1"), ("b", "2")]).is_ok());
        let torn = found(&ledger, &[("a", "1")]).unwrap_err();
        assert!(torn.contains("over several shards"), "{torn}");
        assert!(found(&ledger, &[("b", "2")]).is_err());
    }

    #[test]
    fn a_refusal_that_nobody_heard_of_leaves_out_what_comes_before_other_commands() {
        let mut ledger = Ledger::default();
        ledger.answered(vec![put(&[("a", "1"), ("a2", "1")])]);
        let commands = vec![
            Command::Append("a".into(), "2".into()),
            Command::Append("a".into(), "3".into()),
            Command::Del(vec!["a2".into()]),
        ];
        ledger.sends(Sent { commands, from_ms: 0, together: false }, &shard_of);
        assert!(found(&ledger, &[("a", "123")]).is_ok());
        assert!(found(&ledger, &[("a", "1")]).is_err(), "without those before it");
        ledger.may_be_refused(&shard_of);
        for possible in ["1", "12", "13", "123"] {
            assert!(found(&ledger, &[("a", possible)]).is_ok(), "{possible}");
        }
        assert!(found(&ledger, &[("a", "2")]).is_err(), "what was answered is there");
        assert!(found(&ledger, &[("a", "1"), ("a2", "2")]).is_err(), "invented");
    }

    #[test]
    fn all_is_removed_everywhere_or_nowhere() {
        let mut ledger = Ledger::default();
        ledger.answered(vec![put(&[("a", "1"), ("b", "1")])]);
        ledger.may_come(vec![Effect::clear(2)]);
        assert_eq!(found(&ledger, &[]), Ok([1].into()));
        assert_eq!(found(&ledger, &[("a", "1"), ("b", "1")]), Ok([0].into()));
        assert!(found(&ledger, &[("a", "1")]).is_err());
    }

    #[test]
    fn what_was_not_flushed_may_be_lost_from_its_end() {
        let mut ledger = Ledger::default();
        ledger.answered(vec![put(&[("a", "1")])]);
        ledger.answered(vec![put(&[("a", "2")]), put(&[("a2", "1")])]);
        let losing = |exchanges, pairs: &[(&'static str, &'static str)]| {
            let slack = Slack { exchanges, together: true };
            let found = pairs.iter().map(|(k, v)| (Bytes::from(*k), (Bytes::from(*v), 0)));
            ledger.judge(&found.collect(), AT, 2, &shard_of, slack)
        };
        assert!(losing(2, &[]).is_ok() && losing(2, &[("a", "2")]).is_ok());
        assert!(losing(1, &[]).is_err() && losing(1, &[("a", "1")]).is_ok());
        assert!(losing(usize::MAX, &[("a", "1"), ("a2", "1")]).is_err());
        let mut ledger = ledger;
        ledger.settle(&[("a".into(), ("1".into(), 0))].into());
        assert!(found(&ledger, &[("a", "2")]).is_err(), "it came back later");
        assert!(found(&ledger, &[("a", "1")]).is_ok());
    }

    #[test]
    fn an_expired_key_stays_dead_once_that_was_seen() {
        let held = Held { value: "1".into(), dies: Some(Window { from_ms: 90, to_ms: 95 }) };
        let mut effect = put(&[("a", "1")]);
        effect.after.insert("a".into(), vec![Some(held)]);
        let mut ledger = Ledger::default();
        ledger.answered(vec![effect]);
        assert!(found(&ledger, &[]).is_ok(), "it has expired");
        let early = Window { from_ms: 50, to_ms: 50 };
        let alive: Found = [("a".into(), ("1".into(), 92))].into();
        let judged = |ledger: &Ledger| ledger.judge(&alive, early, 2, &shard_of, Slack::NONE);
        assert!(judged(&ledger).is_ok());
        ledger.settle(&Found::new());
        assert!(judged(&ledger).is_err());
    }
}
