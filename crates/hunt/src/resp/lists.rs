//! Keys that all clients write: lists that only grow, by marks that are told apart. What is read of such a list tells
//! the order of all that was appended to it, so it shows lost updates, and whatever is there that should not be.

use super::ledger::Slack;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a mark.
const MARK_BYTES: usize = 8;

/// A list is not appended to beyond this.
const LONGEST: usize = 4000;

/// What everybody knows of all lists.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    lists: BTreeMap<Bytes, List>,
    next_mark: u64,
    /// Marks that belong to several lists: all of them have it, or none.
    joint: BTreeMap<Mark, BTreeSet<Bytes>>,
}

type Mark = Vec<u8>;

/// One list.
#[derive(Debug, Clone, Default)]
struct List {
    /// The longest that was read.
    seen: Vec<Mark>,
    /// Marks whose append was answered.
    acknowledged: BTreeSet<Mark>,
    /// Marks whose append was sent and not answered.
    open: BTreeSet<Mark>,
    /// Appends that were begun since ever.
    begun: u64,
    /// Their number as the last one was not under way any more.
    under_way: u32,
}

/// What had to be in a list when a look at it began.
#[derive(Debug, Clone)]
pub struct Look {
    seen: usize,
    acknowledged: BTreeSet<Mark>,
    begun: u64,
    quiet: bool,
}

impl Lists {
    /// A mark that nobody has used.
    pub fn mark(&mut self) -> Bytes {
        self.next_mark += 1;
        Bytes::from(format!("<{:06}>", self.next_mark))
    }

    /// Whether more may be appended.
    pub fn has_room(&self, key: &Bytes) -> bool {
        self.lists.get(key).is_none_or(|list| list.seen.len() * MARK_BYTES < LONGEST)
    }

    /// A mark is about to be appended to these lists at once.
    pub fn begins(&mut self, mark: &Bytes, keys: &[Bytes]) {
        for key in keys {
            let list = self.lists.entry(key.clone()).or_default();
            list.open.insert(mark.to_vec());
            list.begun += 1;
            list.under_way += 1;
        }
        if keys.len() > 1 {
            self.joint.insert(mark.to_vec(), keys.iter().cloned().collect());
        }
    }

    /// The append was answered: it happened, or did not.
    pub fn ends(&mut self, mark: &Bytes, keys: &[Bytes], happened: bool) {
        for key in keys {
            let list = self.lists.entry(key.clone()).or_default();
            list.open.remove(&mark[..]);
            list.under_way -= 1;
            if happened {
                list.acknowledged.insert(mark.to_vec());
            }
        }
    }

    /// Somebody is about to look at a list.
    pub fn look(&self, key: &Bytes) -> Look {
        let list = self.lists.get(key).cloned().unwrap_or_default();
        Look {
            seen: list.seen.len(),
            acknowledged: list.acknowledged,
            begun: list.begun,
            quiet: list.under_way == 0,
        }
    }

    /// Whether nobody else can have written the list since a look began at which nobody was writing it.
    pub fn untouched_since(&self, key: &Bytes, look: &Look) -> bool {
        let begun = self.lists.get(key).map_or(0, |list| list.begun);
        look.quiet && begun == look.begun
    }

    /// Appends that have begun since a look.
    pub fn begun_since(&self, key: &Bytes, look: &Look) -> u64 {
        self.lists.get(key).map_or(0, |list| list.begun) - look.begun
    }

    /// A list was read, after a look began.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(&mut self, key: &Bytes, value: &[u8], look: &Look) -> Result<(), String> {
        let list = self.lists.entry(key.clone()).or_default();
        let marks = list.parse(key, value)?;
        let there: BTreeSet<&Mark> = marks.iter().collect();
        let missing = look.acknowledged.iter().find(|mark| !there.contains(mark));
        if let Some(mark) = missing {
            return Err(told(key, mark, "was appended, answered, and is not there"));
        }
        if marks.len() < look.seen {
            return Err(told(key, &list.seen[marks.len()], "was read before, and is not there"));
        }
        if marks.len() > list.seen.len() {
            list.seen = marks;
        }
        Ok(())
    }

    /// All lists as they were found after a cut. Unless there is slack, what was read or acknowledged must be there. `cleared`
    /// tells whether a removal of everything may have happened (true) or must not (false).
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn found(
        &mut self,
        found: &BTreeMap<Bytes, Bytes>,
        slack: Slack,
        cleared: &BTreeSet<usize>,
    ) -> Result<(), String> {
        let empty = Bytes::new();
        if cleared.contains(&1) && found.is_empty() {
            self.clear();
            return Ok(());
        }
        if !cleared.contains(&0) {
            return Err("the lists outlived what removed everything else".to_owned());
        }
        for key in found.keys() {
            self.lists.entry(key.clone()).or_default();
        }
        for (key, list) in &mut self.lists {
            let marks = list.parse(key, found.get(key).unwrap_or(&empty))?;
            let there: BTreeSet<&Mark> = marks.iter().collect();
            if slack.exchanges == 0 {
                let promised = list.acknowledged.iter().chain(&list.seen);
                if let Some(mark) = promised.into_iter().find(|mark| !there.contains(mark)) {
                    return Err(told(key, mark, "was promised, and is lost"));
                }
            }
            *list = List {
                acknowledged: marks.iter().cloned().collect(),
                seen: marks,
                ..List::default()
            };
        }
        for (mark, keys) in std::mem::take(&mut self.joint) {
            let there = |key: &Bytes| {
                self.lists.get(key).is_some_and(|list| list.acknowledged.contains(&mark))
            };
            if slack.together && keys.iter().any(there) && !keys.iter().all(there) {
                let key = keys.iter().find(|key| !there(key)).unwrap_or(&empty);
                return Err(told(
                    key,
                    &mark,
                    "is in another list of its transaction, and not here",
                ));
            }
        }
        Ok(())
    }

    /// Everything was removed.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.joint.clear();
    }
}

impl List {
    /// The marks in a value; each must be known, be there once, and in the order that was seen.
    fn parse(&self, key: &Bytes, value: &[u8]) -> Result<Vec<Mark>, String> {
        let marks: Vec<Mark> = value.chunks(MARK_BYTES).map(<[u8]>::to_vec).collect();
        let mut before = BTreeSet::new();
        for (place, mark) in marks.iter().enumerate() {
            if !before.insert(mark) {
                return Err(told(key, mark, "is there twice"));
            }
            match self.seen.get(place) {
                Some(seen) if seen == mark => {}
                Some(_) => return Err(told(key, mark, "is in another place than before")),
                None if self.acknowledged.contains(mark) || self.open.contains(mark) => {}
                None => {
                    return Err(told(key, mark, "was never appended, or it was said not to be"));
                }
            }
        }
        Ok(marks)
    }
}

fn told(key: &Bytes, mark: &[u8], what: &str) -> String {
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
        for mark in &marks {
            lists.begins(mark, &[KEY]);
            if answered {
                lists.ends(mark, &[KEY], true);
            }
        }
        (lists, marks)
    }

    #[test]
    fn a_read_shows_what_was_answered_before_it_began() {
        let (mut lists, marks) = with(2, true);
        let look = lists.look(&KEY);
        assert!(lists.clone().read(&KEY, &marks[0], &look).unwrap_err().contains("is not there"));
        lists.read(&KEY, &marks.concat(), &look).unwrap();
        let swapped = [&marks[1][..], &marks[0]].concat();
        let again = lists.look(&KEY);
        assert!(lists.read(&KEY, &swapped, &again).unwrap_err().contains("another place"));
        let twice = [&marks.concat()[..], &marks[1]].concat();
        assert!(lists.read(&KEY, &twice, &again).unwrap_err().contains("twice"));
        assert!(lists.read(&KEY, &[&marks.concat()[..], b"<999999>"].concat(), &again).is_err());
    }

    #[test]
    fn what_was_refused_never_appears() {
        let (mut lists, marks) = with(1, false);
        lists.clone().read(&KEY, &marks[0], &lists.look(&KEY)).unwrap();
        lists.ends(&marks[0], &[KEY], false);
        assert!(lists.clone().read(&KEY, &marks[0], &lists.look(&KEY)).is_err());
    }

    #[test]
    fn after_a_cut_open_ends_are_settled() {
        let none: BTreeSet<usize> = [0].into();
        let (mut lists, marks) = with(1, false);
        lists.found(&BTreeMap::new(), Slack::NONE, &none).unwrap();
        let late: BTreeMap<Bytes, Bytes> = [(KEY, marks[0].clone())].into();
        assert!(lists.found(&late, Slack::NONE, &none).is_err(), "it came back later");
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
        assert!(lists.clone().found(&one, Slack::NONE, &none).unwrap_err().contains("not here"));
        lists.clone().found(&both, Slack::NONE, &none).unwrap();
        lists.clone().found(&BTreeMap::new(), Slack::NONE, &none).unwrap();
        let cleared: BTreeSet<usize> = [1].into();
        assert!(lists.clone().found(&both, Slack::NONE, &cleared).is_err());
        lists.found(&BTreeMap::new(), Slack::NONE, &cleared).unwrap();
    }
}
