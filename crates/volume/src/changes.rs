//! The numbers of frames that change the map, and their records in the heads of other frames.
//!
//! Changes are numbered without gaps, and none is released before a root holds it. So a recovery
//! sees that one is missing, and the record in another frame says what it held. A head says below
//! which number the changes are *proven*: durable, with records on other units than their own.

use crate::format::frame::room_for_records;
use crate::format::record::{Contents, Record};
use softflash_base::planted::{self, Bug};
use std::cell::RefCell;
use std::collections::VecDeque;

/// The changes of a domain since the root, of which no unit's loss must go unnoticed.
pub(crate) struct Changes {
    state: RefCell<State>,
}

struct State {
    /// The number of the next change.
    next: u64,
    /// The last changes before `next`, without those that are proven.
    recent: VecDeque<Recent>,
    /// Those of them that too few frames record, oldest first.
    unrecorded: VecDeque<u64>,
    /// Heads that say more than those before on their unit, and may not be durable.
    statements: Vec<Statement>,
    /// What durable heads on each unit say.
    stated: Vec<Statement>,
    /// Until a root holds what a recovery has found, heads say no more than those that it found:
    /// the next recovery has to find the same.
    most: Option<u64>,
}

struct Recent {
    record: Record,
    /// The program of its own frame has failed, so that only records say that there was one.
    has_failed: bool,
    /// The frames that record it, with their units.
    recorded_by: Vec<(u64, u16)>,
}

impl Recent {
    /// The frames that have to record it, so that the loss of one unit leaves its own frame or one
    /// of them.
    fn records_needed(&self) -> usize {
        if self.has_failed { 2 } else { 1 }
    }

    /// Whether a record on this unit helps if one unit is lost.
    fn takes_record_on(&self, unit: u16) -> bool {
        let is_own = !self.has_failed && self.record.unit == unit;
        !is_own && !self.recorded_by.iter().any(|&(_, by)| by == unit)
    }
}

/// The head of a frame on a unit says that the changes below a number are proven.
#[derive(Debug, Clone, Copy)]
struct Statement {
    unit: u16,
    sequence: u64,
    proven_below: u64,
}

/// What the head of the next frame says about changes.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// The number of its own change; 0 for none.
    pub change: u64,
    pub proven_below: u64,
    pub records: Vec<Record>,
}

/// The frame whose head is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Teller {
    pub sequence: u64,
    pub unit: u16,
    /// All frames below are durable.
    pub durable_below: u64,
    /// Whether no other unit takes data: records have to be on the unit of their frame.
    pub is_alone: bool,
}

/// Changes without a record that are looked at for a head.
const MOST_LOOKED_AT: usize = 64;

/// Changes that may wait for a flush of a client.
const MOST_UNPROVEN: usize = 4096;

impl Changes {
    /// The changes below `next` are those of a recovery, which has found those below
    /// `proven_below` proven.
    pub fn recovered(next: u64, proven_below: u64) -> Changes {
        let state = State {
            next,
            recent: VecDeque::new(),
            unrecorded: VecDeque::new(),
            statements: Vec::new(),
            stated: Vec::new(),
            most: Some(proven_below),
        };
        Changes { state: RefCell::new(state) }
    }

    /// Recovery is complete: all changes before are proven, or in the root.
    pub fn settle(&self) {
        self.state.borrow_mut().most = None;
    }

    /// The number of the next change.
    pub fn next(&self) -> u64 {
        self.state.borrow().next
    }

    /// All changes below are proven.
    pub fn proven_below(&self) -> u64 {
        let state = self.state.borrow();
        let first = state.recent.front().map_or(state.next, |first| first.record.change);
        first.min(state.most.unwrap_or(u64::MAX))
    }

    /// What the head of a frame of so many entries says.
    pub fn tell(&self, teller: Teller, entries: usize, has_change: bool) -> Told {
        let state = self.state.borrow();
        let mut room = room_for_records(entries);
        let mut records = Vec::new();
        for recent in state.unrecorded.iter().take(MOST_LOOKED_AT).filter_map(|&at| state.get(at)) {
            let bytes = recent.record.len();
            let is_apart =
                recent.takes_record_on(teller.unit) || planted::bug(Bug::RecordsTogether);
            if bytes <= room && (is_apart || teller.is_alone) {
                room -= bytes;
                records.push(recent.record.clone());
            }
        }
        let is_told = |recent: &&Recent| {
            let is_durable = |sequence: u64| sequence < teller.durable_below;
            let here = records.iter().any(|told| told.change == recent.record.change);
            let before = recent.recorded_by.iter().filter(|(by, _)| is_durable(*by)).count();
            is_durable(recent.record.sequence)
                && before + usize::from(here) >= recent.records_needed()
        };
        let first = state.recent.iter().find(|recent| !is_told(recent));
        let proven_below = first.map_or(state.next, |first| first.record.change);
        let proven_below = proven_below.min(state.most.unwrap_or(u64::MAX));
        Told { change: if has_change { state.next } else { 0 }, proven_below, records }
    }

    /// The frame with this head is appended, with these contents.
    ///
    /// # Panics
    /// If another change was numbered since the head was written.
    pub fn told(&self, teller: Teller, told: &Told, contents: Option<Contents>) {
        let state = &mut *self.state.borrow_mut();
        let mut recorded = Vec::new();
        for record in &told.records {
            if let Some(recent) = state.get_mut(record.change) {
                recent.recorded_by.push((teller.sequence, teller.unit));
                if recent.recorded_by.len() >= recent.records_needed() {
                    recorded.push(record.change);
                }
            }
        }
        if !recorded.is_empty() {
            state.unrecorded.retain(|at| !recorded.contains(at));
        }
        let Teller { sequence, unit, .. } = teller;
        let proven_below = told.proven_below;
        let is_news = |said: &Statement| said.unit == unit && said.proven_below >= proven_below;
        if !state.statements.iter().chain(&state.stated).any(is_news) {
            state.statements.push(Statement { unit, sequence, proven_below });
        }
        if let Some(contents) = contents {
            assert_eq!(told.change, state.next, "a head has the number of another change");
            let record = Record { change: told.change, sequence, unit, contents };
            state.recent.push_back(Recent { record, has_failed: false, recorded_by: Vec::new() });
            state.unrecorded.push_back(told.change);
            state.next = told.change + 1;
        }
    }

    /// Whether so many changes are not proven that a flush is due, also if no client asks for one:
    /// their records take memory.
    pub fn are_many(&self) -> bool {
        let unproven = self.state.borrow().recent.len();
        unproven > 0 && unproven.is_multiple_of(MOST_UNPROVEN)
    }

    /// The program of a frame has failed: its own change and what its head says are not there.
    pub fn failed(&self, sequence: u64) {
        let state = &mut *self.state.borrow_mut();
        state.statements.retain(|said| said.sequence != sequence);
        for recent in state.recent.iter_mut().rev() {
            let (is_own, records) = (recent.record.sequence == sequence, recent.recorded_by.len());
            recent.has_failed |= is_own;
            recent.recorded_by.retain(|&(by, _)| by != sequence);
            let has_lost = is_own || recent.recorded_by.len() < records;
            let lacks_records = recent.recorded_by.len() < recent.records_needed();
            let change = recent.record.change;
            if has_lost && lacks_records && !state.unrecorded.contains(&change) {
                state.unrecorded.push_front(change);
            }
        }
    }

    /// All frames below are durable. Whether some change is not proven.
    pub fn durable(&self, durable_below: u64, is_alone: bool) -> bool {
        let state = &mut *self.state.borrow_mut();
        let (durable, rest) =
            state.statements.drain(..).partition(|said| said.sequence < durable_below);
        state.statements = rest;
        let durable: Vec<Statement> = durable;
        for said in durable {
            match state.stated.iter_mut().find(|before| before.unit == said.unit) {
                Some(before) => *before = said,
                None => state.stated.push(said),
            }
        }
        while state.recent.front().is_some_and(|first| state.is_proven(first, is_alone)) {
            state.recent.pop_front();
        }
        state.forget_recorded();
        !state.recent.is_empty()
    }

    /// A root holds all changes below a number: recovery does not look for them.
    pub fn covered_below(&self, change: u64) {
        let state = &mut *self.state.borrow_mut();
        assert!(change <= state.next, "a root holds change {change} of {}", state.next);
        state.most = None;
        state.recent.retain(|recent| recent.record.change >= change);
        state.forget_recorded();
    }

    /// The unit of the oldest change below a number that is not proven: another one has to say it.
    pub fn first_unproven(&self, below: u64) -> Option<u16> {
        let state = self.state.borrow();
        let first = state.recent.front()?;
        let recorded_on = first.recorded_by.last().filter(|_| first.has_failed);
        let unit = recorded_on.map_or(first.record.unit, |&(_, unit)| unit);
        (first.record.change < below).then_some(unit)
    }
}

impl State {
    fn position(&self, change: u64) -> Option<usize> {
        let first = self.recent.front()?.record.change;
        usize::try_from(change.checked_sub(first)?).ok()
    }

    fn get(&self, change: u64) -> Option<&Recent> {
        self.recent.get(self.position(change)?)
    }

    fn get_mut(&mut self, change: u64) -> Option<&mut Recent> {
        let at = self.position(change)?;
        self.recent.get_mut(at)
    }

    /// Whether a durable head says that a change is proven, on another unit than the change.
    fn is_proven(&self, Recent { record, has_failed, .. }: &Recent, is_alone: bool) -> bool {
        let says = |said: &Statement| {
            let is_apart = said.unit != record.unit || is_alone || *has_failed;
            said.proven_below > record.change && is_apart
        };
        self.stated.iter().any(says)
    }

    /// Forgets the numbers of changes that are no longer recent.
    fn forget_recorded(&mut self) {
        let first = self.recent.front().map_or(self.next, |first| first.record.change);
        self.unrecorded.retain(|&at| at >= first);
    }
}

#[cfg(test)]
mod tests;
