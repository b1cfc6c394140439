//! Possible states of a client's keys while another client removes all keys.
//!
//! A FLUSHALL takes effect at an unknown time between request and reply. So the possible states are
//! kept in *stages*: one for each number of removals that may have happened. A removal is atomic
//! over all shards, but the commands of one pipeline run concurrently in their shards: one may run
//! after a removal although a command sent later ran before it. So while commands are in flight, a
//! stage is possible or impossible for each shard separately.

use super::semantics::{Change, Possible, State};
use std::collections::BTreeSet;

/// Removals of all keys since the last comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removals {
    /// Number started: at most so many have happened.
    pub begun: usize,
    /// Number answered: at least so many have happened.
    pub ended: usize,
}

impl Removals {
    /// Whether a removal may happen now.
    pub fn is_under_way(self) -> bool {
        self.begun > self.ended
    }

    /// Whether a removal may have happened between this moment and a later one.
    pub fn may_precede(self, later: Removals) -> bool {
        later.begun > self.ended
    }

    /// Whether a removal has started after this moment and ended before a later one.
    pub fn surely_precede(self, later: Removals) -> bool {
        later.ended > self.begun
    }
}

/// Possible states of the keys, by the number of removals that have happened. The last stage is
/// possible in every shard.
#[derive(Debug, Clone)]
pub struct Stages {
    /// Number of removals in the first stage.
    first: usize,
    each: Vec<Stage>,
}

#[derive(Debug, Clone, Default)]
struct Stage {
    state: State,
    /// Shards in which replies have ruled out this stage.
    impossible: BTreeSet<u16>,
}

impl Default for Stages {
    fn default() -> Stages {
        Stages::of(State::new())
    }
}

impl Stages {
    /// Stages without removals.
    pub fn of(state: State) -> Stages {
        Stages { first: 0, each: vec![Stage { state, impossible: BTreeSet::new() }] }
    }

    /// A removal has started.
    pub fn removal_begins(&mut self) {
        self.each.push(Stage::default());
    }

    /// At least so many removals have happened, and no command in flight can have run before them.
    pub fn have_ended(&mut self, removals: usize) {
        let gone = removals.saturating_sub(self.first).min(self.each.len().saturating_sub(1));
        self.each.drain(..gone);
        self.first += gone;
    }

    /// No command is in flight: a stage that is ruled out in one shard is ruled out in all.
    pub fn settle(&mut self) {
        let possible = self.each.iter().position(|stage| stage.impossible.is_empty());
        self.have_ended(self.first + possible.unwrap_or(0));
    }

    /// The state of all keys, if there is one stage only.
    pub fn only(&self) -> Option<&State> {
        match &self.each[..] {
            [stage] => Some(&stage.state),
            _ => None,
        }
    }

    /// The possible states of a key of a shard, over all stages.
    pub fn possible(&self, key: &[u8], shard: u16) -> Possible {
        let stages = self.each.iter().filter(|stage| !stage.impossible.contains(&shard));
        let mut possible = Possible::new();
        for stage in stages {
            match stage.state.get(key) {
                Some(held) => held.iter().for_each(|held| add(&mut possible, held.clone())),
                None => add(&mut possible, None),
            }
        }
        possible
    }

    /// Each stage with its number of removals: the states, and the shards in which it is ruled out.
    pub fn each(&self) -> impl Iterator<Item = (usize, &State, &BTreeSet<u16>)> {
        let stages = self.each.iter().enumerate();
        stages.map(|(number, stage)| (self.first + number, &stage.state, &stage.impossible))
    }

    /// A command on keys of these shards ran in one of the stages, the same in all of them; `act`
    /// returns the change, or that the stage is impossible.
    ///
    /// # Errors
    /// The command cannot have run in any stage.
    pub fn run<E>(
        &mut self,
        shards: &BTreeSet<u16>,
        shard_of: &dyn Fn(&[u8]) -> u16,
        act: impl Fn(&State) -> Result<Change, E>,
    ) -> Result<Change, E> {
        let mut outcome: Option<Result<Change, E>> = None;
        for stage in &mut self.each {
            let acted = match stage.impossible.is_disjoint(shards) {
                true => Some(act(&stage.state)),
                false => None,
            };
            match acted {
                Some(Ok(change)) => {
                    stage.state.extend(change.after.clone());
                    outcome = Some(Ok(match outcome {
                        Some(Ok(other)) => other.or(change),
                        _ => change,
                    }));
                }
                refused => {
                    stage.impossible.extend(shards);
                    outcome = outcome.or(refused);
                }
            }
        }
        self.spread(shard_of);
        outcome.unwrap_or_else(|| Ok(Change::default()))
    }

    /// A state that is possible in a stage may be removed by the next removal.
    fn spread(&mut self, shard_of: &dyn Fn(&[u8]) -> u16) {
        for number in 1..self.each.len() {
            let (before, after) = self.each.split_at_mut(number);
            let (Some(before), Some(after)) = (before.last(), after.first_mut()) else { return };
            let possible_again: BTreeSet<u16> =
                after.impossible.difference(&before.impossible).copied().collect();
            after.impossible.retain(|shard| !possible_again.contains(shard));
            after.state.retain(|key, _| !possible_again.contains(&shard_of(key)));
            for (key, possible) in &mut after.state {
                if !before.impossible.contains(&shard_of(key)) {
                    add(possible, None);
                }
            }
        }
    }
}

fn add(possible: &mut Possible, held: Option<super::semantics::Held>) {
    if !possible.contains(&held) {
        possible.push(held);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::command::Command;
    use crate::resp::semantics::{Held, Window};
    use crate::resp::wire::Reply;
    use bytes::Bytes;

    const AT: Window = Window { from_ms: 0, to_ms: 0 };

    /// Keys that begin with `a` are in shard 0, others in shard 1.
    fn shard_of(key: &[u8]) -> u16 {
        u16::from(key[0] != b'a')
    }

    fn held(value: &'static str) -> Option<Held> {
        Some(Held { value: value.into(), dies: None })
    }

    fn two() -> Stages {
        Stages::of([("a".into(), vec![held("1")]), ("b".into(), vec![held("1")])].into())
    }

    fn ran(stages: &mut Stages, command: &Command, reply: Reply) -> bool {
        let shards = command.keys().iter().map(|key| shard_of(key)).collect();
        stages.run(&shards, &shard_of, |state| command.answered(state, &reply, AT)).is_ok()
    }

    fn get(stages: &mut Stages, key: &'static str, reply: Reply) -> bool {
        ran(stages, &Command::Get(key.into()), reply)
    }

    fn one() -> Reply {
        Reply::Bulk("1".into())
    }

    #[test]
    fn a_removal_is_before_or_after_a_command() {
        let mut stages = two();
        stages.removal_begins();
        assert!(get(&mut stages.clone(), "a", one()) && get(&mut stages.clone(), "a", Reply::Nil));
        assert!(!get(&mut stages.clone(), "a", Reply::Bulk("2".into())));
        let append = Command::Append("a".into(), "2".into());
        let mut before = stages.clone();
        assert!(ran(&mut before, &append, Reply::Integer(2)));
        assert_eq!(before.possible(b"a", 0), [held("12"), None]);
        let mut behind = stages.clone();
        assert!(ran(&mut behind, &append, Reply::Integer(1)));
        assert_eq!(behind.possible(b"a", 0), [held("2")]);
        assert!(!get(&mut behind, "a", Reply::Nil), "it is removed once");
    }

    #[test]
    fn commands_of_one_pipeline_may_see_it_in_one_shard_and_not_yet_in_another() {
        let mut stages = two();
        stages.removal_begins();
        assert!(get(&mut stages, "a", Reply::Nil) && get(&mut stages, "b", one()));
        assert!(!get(&mut stages.clone(), "a", one()), "what was removed is back");
        let both = Command::Mget(vec!["a".into(), "b".into()]);
        let replies = |a, b| Reply::Array(vec![a, b]);
        assert!(!ran(&mut stages.clone(), &both, replies(Reply::Nil, one())), "it is one event");
        assert!(ran(&mut stages.clone(), &both, replies(Reply::Nil, Reply::Nil)));
        stages.settle();
        assert!(!get(&mut stages, "b", one()), "later commands see it everywhere");
    }

    #[test]
    fn an_ended_removal_has_happened() {
        let mut stages = two();
        stages.removal_begins();
        stages.removal_begins();
        stages.have_ended(1);
        assert!(!get(&mut stages.clone(), "a", one()));
        let set = Command::Append("a".into(), "7".into());
        assert!(ran(&mut stages, &set, Reply::Integer(1)));
        assert_eq!(stages.possible(b"a", 0), [held("7"), None]);
        stages.have_ended(2);
        assert_eq!(stages.only().unwrap().get(&Bytes::from("a")), Some(&vec![held("7"), None]));
    }

    #[test]
    fn removals_lie_between_moments_or_may_do_so() {
        let moment = |begun, ended| Removals { begun, ended };
        assert!(moment(1, 0).is_under_way() && !moment(1, 1).is_under_way());
        assert!(moment(1, 0).may_precede(moment(1, 0)) && !moment(1, 1).may_precede(moment(1, 1)));
        assert!(moment(0, 0).surely_precede(moment(1, 1)));
        assert!(!moment(1, 0).surely_precede(moment(1, 1)), "it may have come before");
    }
}
