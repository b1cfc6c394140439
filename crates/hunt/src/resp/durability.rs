//! The check of a client's keys where acknowledged writes may not be lost. The contents found must
//! be the acknowledged state plus a prefix of each shard's unacknowledged commands, with other
//! clients' removals of all keys at any point among them.

use super::ledger::{Found, Sent, TORN, WITHOUT_THOSE_BEFORE, agree, fits, possible_shown};
use super::semantics::{State, Window};
use super::stages::Stages;
use super::wire::shown;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

/// The contents found, and the time.
pub(super) struct DurabilityCheck<'a> {
    pub found: &'a Found,
    pub at: Window,
    pub shards: u16,
    pub shard_of: &'a dyn Fn(&[u8]) -> u16,
}

/// Commands that were sent and not answered.
pub(super) struct Open {
    /// Each of them is atomic.
    pub parts: Vec<Sent>,
    /// Each may have been refused, whether or not the ones before it were.
    pub refusals: bool,
}

/// The possible prefix lengths of each shard, by the number of removals that have happened.
type Candidates = BTreeMap<usize, Vec<Vec<usize>>>;

impl DurabilityCheck<'_> {
    /// Checks the contents found after `ended` removals of all keys were answered. Returns how many
    /// of the unanswered removals may have happened.
    ///
    /// # Errors
    /// No combination fits the contents found.
    pub fn judge(
        &self,
        mut stages: Stages,
        open: &Open,
        ended: usize,
    ) -> Result<BTreeSet<usize>, String> {
        let first = stages.clone();
        let mut candidates = Candidates::new();
        let all: BTreeSet<u16> = (0..self.shards).collect();
        self.compare(&stages, ended, 0, &all, &mut candidates);
        let mut ties = Vec::new();
        for (number, part) in open.parts.iter().enumerate() {
            let touched = part.keys().iter().map(|key| (self.shard_of)(key)).collect();
            let Ok(change) = stages.run(&touched, self.shard_of, |state| {
                let mut change = part.change(state.clone());
                if open.refusals {
                    change.or_nothing(state);
                }
                Ok::<_, Infallible>(change)
            });
            let written: BTreeSet<u16> =
                change.written.iter().map(|key| (self.shard_of)(key)).collect();
            ties.push(written.into_iter().collect::<Vec<u16>>());
            self.compare(&stages, ended, number + 1, &touched, &mut candidates);
        }
        let ties: Vec<&[u16]> = ties.iter().map(|shards| &shards[..]).collect();
        let agreed = candidates.iter().filter(|(_, lengths)| agree(lengths, &ties));
        let possible: BTreeSet<usize> = agreed.map(|(removals, _)| removals - ended).collect();
        if !possible.is_empty() {
            return Ok(possible);
        }
        Err(self.breach(&first, &stages, &candidates))
    }

    /// Records in which of these shards a prefix of `parts` commands fits the contents found.
    fn compare(
        &self,
        stages: &Stages,
        ended: usize,
        parts: usize,
        shards: &BTreeSet<u16>,
        candidates: &mut Candidates,
    ) {
        for (removals, state, impossible) in stages.each() {
            if removals < ended {
                continue;
            }
            let wrong = self.wrong(state);
            let lengths = candidates
                .entry(removals)
                .or_insert_with(|| vec![Vec::new(); usize::from(self.shards)]);
            for shard in shards.difference(impossible).filter(|shard| !wrong.contains_key(shard)) {
                if let Some(lengths) = lengths.get_mut(usize::from(*shard)) {
                    lengths.push(parts);
                }
            }
        }
    }

    /// The shards whose contents do not fit, with a key of each.
    fn wrong<'a>(&'a self, state: &'a State) -> BTreeMap<u16, &'a Bytes> {
        let keys = state.keys().chain(self.found.keys());
        let wrong = keys.filter(|key| !fits(state, key, self.found, self.at));
        wrong.map(|key| ((self.shard_of)(key), key)).collect()
    }

    fn breach(&self, first: &Stages, last: &Stages, candidates: &Candidates) -> String {
        let fits_nowhere = |shard: &u16| {
            let lengths = |each: &Vec<Vec<usize>>| each.get(usize::from(*shard)).cloned();
            candidates.values().filter_map(lengths).all(|lengths| lengths.is_empty())
        };
        let Some(shard) = (0..self.shards).find(fits_nowhere) else {
            let whole = |each: &&Vec<Vec<usize>>| each.iter().all(|lengths| !lengths.is_empty());
            return match candidates.values().find(whole) {
                Some(_) => TORN.to_owned(),
                None => "FLUSHALL took effect in one shard and not in another".to_owned(),
            };
        };
        let states = first.each().map(|(_, state, _)| state);
        let keys: BTreeSet<&Bytes> =
            states.flat_map(State::keys).chain(self.found.keys()).collect();
        let mut messages = Vec::new();
        for key in keys.into_iter().filter(|key| (self.shard_of)(key) == shard) {
            let promised = first.possible(key, shard);
            let now = [(key.clone(), promised.clone())].into();
            if fits(&now, key, self.found, self.at) {
                continue;
            }
            messages.push(format!(
                "key `{}`: {} was promised, {} found at {:?}; possible after the unanswered commands: {}",
                key.escape_ascii(),
                possible_shown(&promised),
                self.found.get(key).map_or("nothing".to_owned(), |(value, expires_at_ms)| format!(
                    "{} that expires at {expires_at_ms}",
                    shown(value)
                )),
                self.at,
                possible_shown(&last.possible(key, shard)),
            ));
        }
        if messages.is_empty() {
            messages.push(WITHOUT_THOSE_BEFORE.to_owned());
        }
        messages.truncate(3);
        format!("shard {shard}: {}", messages.join("; "))
    }
}
