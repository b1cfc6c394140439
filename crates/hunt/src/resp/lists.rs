//! Keys that all clients write: append-only lists of unique marks. The value of a list shows the
//! order of all appends, and so reveals lost updates and wrong contents.

use super::ledger::Slack;
use super::stages::Removals;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a mark.
const MARK_BYTES: usize = 8;

/// Maximum length of a list.
const LONGEST: usize = 4000;

/// The reference of all lists. An *era* is the time between two removals of all keys: a list has
/// marks of one era only.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    lists: BTreeMap<Bytes, List>,
    next_mark: u64,
    /// Marks of transactions on several lists: all of these lists have the mark, or none.
    joint: BTreeMap<Mark, BTreeSet<Bytes>>,
    removals: Removals,
}

type Mark = Vec<u8>;

/// One list.
#[derive(Debug, Clone, Default)]
struct List {
    /// The longest list that was read, by era.
    seen: BTreeMap<usize, Vec<Mark>>,
    /// Marks whose append was sent and not refused.
    marks: BTreeMap<Mark, Append>,
    /// Number of appends ever started.
    begun: u64,
    /// Number of appends in flight.
    under_way: u32,
}

/// An append.
#[derive(Debug, Clone, Copy)]
struct Append {
    /// The first possible era.
    from: usize,
    /// The last possible era; none: not answered yet.
    to: Option<usize>,
    /// Length of the list after the append, from the reply.
    length: Option<usize>,
}

impl Append {
    fn may_be_of(self, era: usize) -> bool {
        self.from <= era && self.to.is_none_or(|to| era <= to)
    }

    fn is_surely_of(self, era: usize) -> bool {
        self.from == era && self.to == Some(era)
    }
}

/// The required contents of a list at the start of a read.
#[derive(Debug, Clone)]
pub struct Look {
    seen: BTreeMap<usize, usize>,
    acknowledged: Vec<(Mark, Append)>,
    begun: u64,
    quiet: bool,
    removals: Removals,
}

impl Lists {
    /// A new mark.
    pub fn mark(&mut self) -> Bytes {
        self.next_mark += 1;
        Bytes::from(format!("<{:06}>", self.next_mark))
    }

    /// Removals of everything.
    pub fn removals(&self) -> Removals {
        self.removals
    }

    /// A removal of all keys has started.
    pub fn removal_begins(&mut self) {
        self.removals.begun += 1;
    }

    /// A removal of all keys was answered.
    pub fn removal_ended(&mut self) {
        self.removals.ended += 1;
    }

    /// Whether the list has elements, and no removal of all keys is under way.
    pub fn exists(&self, key: &Bytes) -> bool {
        let era = self.removals.ended;
        let appended = |list: &List| list.marks.values().any(|append| append.is_surely_of(era));
        !self.removals.is_under_way() && self.lists.get(key).is_some_and(appended)
    }

    /// Whether the list has room for more.
    pub fn has_room(&self, key: &Bytes) -> bool {
        let longest = |list: &List| list.seen.last_key_value().map_or(0, |(_, seen)| seen.len());
        self.lists.get(key).is_none_or(|list| longest(list) * MARK_BYTES < LONGEST)
    }

    /// An append of a mark to these lists, in one transaction, has started.
    pub fn begins(&mut self, mark: &Bytes, keys: &[Bytes]) {
        for key in keys {
            let list = self.lists.entry(key.clone()).or_default();
            let append = Append { from: self.removals.ended, to: None, length: None };
            list.marks.insert(mark.to_vec(), append);
            list.begun += 1;
            list.under_way += 1;
        }
        if keys.len() > 1 {
            self.joint.insert(mark.to_vec(), keys.iter().cloned().collect());
        }
    }

    /// The append succeeded; the reply gives the length of each list.
    pub fn appended(&mut self, mark: &Bytes, lengths: &[(Bytes, usize)]) {
        for (key, length) in lengths {
            let list = self.lists.entry(key.clone()).or_default();
            list.under_way -= 1;
            if let Some(append) = list.marks.get_mut(&mark[..]) {
                append.to = Some(append.to.unwrap_or(self.removals.begun));
                append.length = Some(*length);
            }
        }
    }

    /// The append was refused.
    pub fn refused(&mut self, mark: &Bytes, keys: &[Bytes]) {
        for key in keys {
            let list = self.lists.entry(key.clone()).or_default();
            list.under_way -= 1;
            list.marks.remove(&mark[..]);
        }
    }

    /// A read of a list starts.
    pub fn look(&self, key: &Bytes) -> Look {
        let list = self.lists.get(key).cloned().unwrap_or_default();
        let acknowledged = list.marks.into_iter().filter(|(_, append)| append.to.is_some());
        Look {
            seen: list.seen.iter().map(|(era, seen)| (*era, seen.len())).collect(),
            acknowledged: acknowledged.collect(),
            begun: list.begun,
            quiet: list.under_way == 0,
            removals: self.removals,
        }
    }

    /// Whether no other client can have written the list since the read started, and no append was
    /// in flight then.
    pub fn untouched_since(&self, key: &Bytes, look: &Look) -> bool {
        let begun = self.lists.get(key).map_or(0, |list| list.begun);
        look.quiet && begun == look.begun
    }

    /// Appends started since the read started.
    pub fn begun_since(&self, key: &Bytes, look: &Look) -> u64 {
        self.lists.get(key).map_or(0, |list| list.begun) - look.begun
    }

    /// Checks the result of a read.
    ///
    /// # Errors
    /// An inconsistency of the list.
    pub fn read(&mut self, key: &Bytes, value: &[u8], look: &Look) -> Result<(), String> {
        let list = self.lists.entry(key.clone()).or_default();
        let (mut read, mut wrong) = (Vec::new(), None);
        for era in look.removals.ended..=self.removals.begun {
            match list.read(key, value, look, era) {
                Ok(marks) => read.push((era, marks)),
                Err(what) => wrong = Some(what),
            }
        }
        match (&mut read[..], wrong) {
            ([], wrong) => return Err(wrong.unwrap_or_default()),
            ([(era, marks)], _) => list.learn(*era, std::mem::take(marks)),
            // The era of the value is not known.
            _ => {}
        }
        Ok(())
    }

    /// Checks lists that were read at one instant.
    ///
    /// # Errors
    /// A mark that is in one of its lists and not in all of them.
    pub fn read_at_once<'a>(
        &self,
        lists: impl Iterator<Item = (&'a Bytes, &'a Bytes)>,
    ) -> Result<(), String> {
        let marks = |value: &'a Bytes| value.chunks(MARK_BYTES).collect::<BTreeSet<_>>();
        let read: BTreeMap<&Bytes, _> = lists.map(|(key, value)| (key, marks(value))).collect();
        for (mark, keys) in &self.joint {
            Lists::is_whole(mark, keys, |key| {
                read.get(key).is_some_and(|list| list.contains(&mark[..]))
            })?;
        }
        Ok(())
    }

    /// Whether a mark is in all of its lists, or in none.
    fn is_whole(
        mark: &Mark,
        keys: &BTreeSet<Bytes>,
        there: impl Fn(&Bytes) -> bool,
    ) -> Result<(), String> {
        let missing = keys.iter().find(|key| !there(key));
        match missing {
            Some(key) if keys.iter().any(&there) => Err(message(
                key,
                mark,
                "is in another list of its transaction, but not in this one",
            )),
            _ => Ok(()),
        }
    }

    /// Checks all lists after a cut. Without slack, marks that were read or acknowledged must be
    /// there. `removals`: how many unanswered removals of all keys may have happened.
    ///
    /// # Errors
    /// An inconsistency of the lists.
    pub fn found(
        &mut self,
        found: &BTreeMap<Bytes, Bytes>,
        slack: Slack,
        removals: &BTreeSet<usize>,
    ) -> Result<(), String> {
        let mut wrong = String::new();
        for unanswered in removals {
            match self.settled(found, slack, self.removals.ended + unanswered) {
                Ok(lists) => {
                    *self = Lists { lists, next_mark: self.next_mark, ..Lists::default() };
                    return Ok(());
                }
                Err(what) => wrong = what,
            }
        }
        Err(wrong)
    }

    /// The lists found, if they can be of this era.
    fn settled(
        &self,
        found: &BTreeMap<Bytes, Bytes>,
        slack: Slack,
        era: usize,
    ) -> Result<BTreeMap<Bytes, List>, String> {
        let (empty, unknown) = (Bytes::new(), List::default());
        let mut lists: BTreeMap<Bytes, List> = BTreeMap::new();
        for key in self.lists.keys().chain(found.keys()) {
            let list = self.lists.get(key).unwrap_or(&unknown);
            let marks = list.parse(key, found.get(key).unwrap_or(&empty), era)?;
            let there: BTreeSet<&Mark> = marks.iter().collect();
            if slack.exchanges == 0 {
                let acknowledged = list.marks.iter().filter(|(_, append)| append.is_surely_of(era));
                let seen = list.seen.get(&era).into_iter().flatten();
                let mut promised = acknowledged.map(|(mark, _)| mark).chain(seen);
                if let Some(mark) = promised.find(|mark| !there.contains(mark)) {
                    return Err(message(key, mark, "was promised, and is lost"));
                }
            }
            let append = Append { from: 0, to: Some(0), length: None };
            let settled = List {
                marks: marks.iter().map(|mark| (mark.clone(), append)).collect(),
                seen: [(0, marks)].into(),
                ..List::default()
            };
            lists.insert(key.clone(), settled);
        }
        for (mark, keys) in &self.joint {
            let there =
                |key: &Bytes| lists.get(key).is_some_and(|list| list.marks.contains_key(mark));
            if slack.together {
                Lists::is_whole(mark, keys, there)?;
            }
        }
        Ok(lists)
    }
}

impl List {
    /// The marks in a value that was read in this era.
    fn read(
        &self,
        key: &Bytes,
        value: &[u8],
        look: &Look,
        era: usize,
    ) -> Result<Vec<Mark>, String> {
        let marks = self.parse(key, value, era)?;
        let there: BTreeSet<&Mark> = marks.iter().collect();
        let mut due = look.acknowledged.iter().filter(|(_, append)| append.is_surely_of(era));
        if let Some((mark, _)) = due.find(|(mark, _)| !there.contains(mark)) {
            return Err(message(key, mark, "was appended and acknowledged, and is missing"));
        }
        let seen = look.seen.get(&era).copied().unwrap_or(0);
        match self.seen.get(&era).and_then(|seen| seen.get(marks.len())) {
            Some(mark) if marks.len() < seen => {
                Err(message(key, mark, "was read before, and is missing"))
            }
            _ => Ok(marks),
        }
    }

    /// Records marks as present in this era.
    fn learn(&mut self, era: usize, marks: Vec<Mark>) {
        for mark in &marks {
            if let Some(append) = self.marks.get_mut(mark) {
                *append = Append { from: era, to: Some(era), ..*append };
            }
        }
        let seen = self.seen.entry(era).or_default();
        if marks.len() > seen.len() {
            *seen = marks;
        }
    }

    /// The marks in a value. Each must be known and of this era, occur once, and be in the order
    /// read before.
    fn parse(&self, key: &Bytes, value: &[u8], era: usize) -> Result<Vec<Mark>, String> {
        let marks: Vec<Mark> = value.chunks(MARK_BYTES).map(<[u8]>::to_vec).collect();
        let mut before = BTreeSet::new();
        for (place, mark) in marks.iter().enumerate() {
            if !before.insert(mark) {
                return Err(message(key, mark, "occurs twice"));
            }
            match self.seen.get(&era).and_then(|seen| seen.get(place)) {
                Some(seen) if seen == mark => continue,
                Some(_) => return Err(message(key, mark, "is at another position than before")),
                None => {}
            }
            match self.marks.get(mark) {
                Some(append) if append.may_be_of(era) => {
                    let length = (place + 1) * MARK_BYTES;
                    if append.length.is_some_and(|expected| expected != length) {
                        return Err(message(
                            key,
                            mark,
                            "is not at the position that the reply to its append gave",
                        ));
                    }
                }
                Some(_) => return Err(message(key, mark, "was removed by a FLUSHALL")),
                None => {
                    return Err(message(
                        key,
                        mark,
                        "was never appended, or its append was refused",
                    ));
                }
            }
        }
        Ok(marks)
    }
}

fn message(key: &Bytes, mark: &[u8], what: &str) -> String {
    format!("list `{}`: `{}` {what}", key.escape_ascii(), mark.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Bytes = Bytes::from_static(b"list");
    const OTHER: Bytes = Bytes::from_static(b"other");

    fn with(appends: usize, answered: bool) -> (Lists, Vec<Bytes>) {
        let mut lists = Lists::default();
        let marks: Vec<Bytes> = (0..appends).map(|_| lists.mark()).collect();
        for (mark, place) in marks.iter().zip(1..) {
            lists.begins(mark, &[KEY]);
            if answered {
                lists.appended(mark, &[(KEY, place * MARK_BYTES)]);
            }
        }
        (lists, marks)
    }

    #[test]
    fn a_read_shows_appends_answered_before_it_started() {
        let (mut lists, marks) = with(2, true);
        let look = lists.look(&KEY);
        assert!(lists.clone().read(&KEY, &marks[0], &look).unwrap_err().contains("is missing"));
        lists.read(&KEY, &marks.concat(), &look).unwrap();
        let swapped = [&marks[1][..], &marks[0]].concat();
        let again = lists.look(&KEY);
        assert!(lists.read(&KEY, &swapped, &again).unwrap_err().contains("another position"));
        let twice = [&marks.concat()[..], &marks[1]].concat();
        assert!(lists.read(&KEY, &twice, &again).unwrap_err().contains("twice"));
        assert!(lists.read(&KEY, &[&marks.concat()[..], b"<999999>"].concat(), &again).is_err());
    }

    #[test]
    fn a_refused_append_never_appears() {
        let (mut lists, marks) = with(1, false);
        lists.clone().read(&KEY, &marks[0], &lists.look(&KEY)).unwrap();
        lists.refused(&marks[0], &[KEY]);
        assert!(lists.clone().read(&KEY, &marks[0], &lists.look(&KEY)).is_err());
    }

    #[test]
    fn after_a_cut_unanswered_appends_are_settled() {
        let none: BTreeSet<usize> = [0].into();
        let (mut lists, marks) = with(1, false);
        lists.found(&BTreeMap::new(), Slack::NONE, &none).unwrap();
        let late: BTreeMap<Bytes, Bytes> = [(KEY, marks[0].clone())].into();
        assert!(lists.found(&late, Slack::NONE, &none).is_err(), "it reappeared later");
        let (mut lists, _) = with(1, true);
        assert!(
            lists.clone().found(&BTreeMap::new(), Slack::NONE, &none).unwrap_err().contains("lost")
        );
        lists.found(&BTreeMap::new(), Slack::INTERVAL, &none).unwrap();
    }

    #[test]
    fn joint_marks_are_in_all_lists_or_none() {
        let mut lists = Lists::default();
        let mark = lists.mark();
        lists.begins(&mark, &[KEY, OTHER]);
        let one: BTreeMap<Bytes, Bytes> = [(KEY, mark.clone())].into();
        let both: BTreeMap<Bytes, Bytes> = [(KEY, mark.clone()), (OTHER, mark)].into();
        let none: BTreeSet<usize> = [0].into();
        assert!(
            lists.clone().found(&one, Slack::NONE, &none).unwrap_err().contains("not in this one")
        );
        lists.clone().found(&both, Slack::NONE, &none).unwrap();
        lists.clone().found(&BTreeMap::new(), Slack::NONE, &none).unwrap();
    }

    #[test]
    fn a_list_has_marks_of_one_era() {
        let (mut lists, marks) = with(1, true);
        lists.removal_begins();
        // Either the old era or the new one.
        let across = lists.mark();
        lists.begins(&across, &[KEY]);
        let both = [&marks[0][..], &across].concat();
        let appended = |length| {
            let mut lists = lists.clone();
            lists.appended(&across, &[(KEY, length)]);
            lists
        };
        let (mut lists, mut first) = (appended(both.len()), appended(across.len()));
        let look = lists.look(&KEY);
        for possible in [&both[..], &marks[0], b""] {
            lists.clone().read(&KEY, possible, &look).unwrap();
        }
        for possible in [&across[..], &marks[0], b""] {
            first.clone().read(&KEY, possible, &look).unwrap();
        }
        let elsewhere = lists.clone().read(&KEY, &across, &look).unwrap_err();
        assert!(elsewhere.contains("is not at the position"), "{elsewhere}");
        assert!(first.clone().read(&KEY, &both, &look).is_err());
        first.removal_ended();
        lists.removal_ended();
        let late = lists.look(&KEY);
        assert!(lists.clone().read(&KEY, &both, &look).is_ok(), "it began before");
        let back = lists.clone().read(&KEY, &both, &late).unwrap_err();
        assert!(back.contains("was removed"), "{back}");
        assert!(lists.clone().read(&KEY, b"", &late).is_ok());
        first.read(&KEY, &across, &late).unwrap();
        assert!(first.read(&KEY, b"", &first.look(&KEY)).is_err(), "it was seen after it");
    }

    #[test]
    fn a_removal_that_was_not_answered_is_found_in_all_lists_or_none() {
        let mut lists = Lists::default();
        let mark = lists.mark();
        lists.begins(&mark, &[KEY, OTHER]);
        lists.appended(&mark, &[(KEY, mark.len()), (OTHER, mark.len())]);
        lists.removal_begins();
        let none = BTreeMap::new();
        let both: BTreeMap<Bytes, Bytes> = [(KEY, mark.clone()), (OTHER, mark)].into();
        let judged = |found: &BTreeMap<Bytes, Bytes>, removals: &[usize]| {
            let removals = removals.iter().copied().collect();
            lists.clone().found(found, Slack::NONE, &removals).is_ok()
        };
        assert!(judged(&both, &[0]) && judged(&none, &[1]));
        assert!(!judged(&both, &[1]) && !judged(&none, &[0]));
        assert!(judged(&both, &[0, 1]) && judged(&none, &[0, 1]));
    }
}
