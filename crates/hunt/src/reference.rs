//! The reference: acknowledged writes of a client, and which contents are correct after a cut.
//! Shares no code with the store.

use bytes::Bytes;
use softflash_base::Time;
use std::collections::BTreeMap;
use std::time::Duration;

/// Keys and values of one client.
pub type Contents = BTreeMap<Bytes, Bytes>;

/// The writes of one request, which is atomic: a value, or none for a deletion.
pub type Batch = Vec<(Bytes, Option<Bytes>)>;

/// The writes of one client, in order.
#[derive(Debug, Clone, Default)]
pub struct Promise {
    /// Contents at the last comparison.
    base: Contents,
    /// Writes after the last comparison, in order. The outcome of the last may be unknown.
    since: Vec<Batch>,
    /// When each of these writes was acknowledged, in order.
    answered: Vec<Time>,
    /// Number of these writes that must have survived.
    durable: usize,
    /// The end of the session in which they were made.
    ended_at: Option<Time>,
}

/// Why the contents found are wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach(pub String);

impl Promise {
    /// A write request starts.
    pub fn begins(&mut self, batch: Batch) {
        self.since.push(batch);
    }

    /// The last write was acknowledged.
    pub fn is_answered(&mut self, now: Time) {
        self.answered.push(now);
    }

    /// Number of acknowledged writes since the last comparison.
    pub fn answered(&self) -> usize {
        self.answered.len()
    }

    /// The session ends; one that only recovered does not count.
    pub fn ends(&mut self, now: Time) {
        self.ended_at.get_or_insert(now);
    }

    /// The last write was acknowledged and is durable.
    pub fn is_durable(&mut self) {
        self.durable = self.since.len();
    }

    /// The contents that the client must read while there was no cut.
    pub fn current(&self) -> Contents {
        let mut contents = self.base.clone();
        self.since.iter().for_each(|batch| apply(&mut contents, batch));
        contents
    }

    /// The values that each key has had since so many writes were acknowledged; none: it did not
    /// exist.
    pub fn possible_since(&self, answered: usize) -> BTreeMap<Bytes, Vec<Option<Bytes>>> {
        let (before, since) = self.since.split_at(answered.min(self.since.len()));
        let mut contents = self.base.clone();
        before.iter().for_each(|batch| apply(&mut contents, batch));
        let written = self.since.iter().flatten().map(|(key, _)| key);
        let keys = self.base.keys().chain(written);
        let mut possible: BTreeMap<Bytes, Vec<Option<Bytes>>> =
            keys.map(|key| (key.clone(), vec![contents.get(key).cloned()])).collect();
        for (key, value) in since.iter().flatten() {
            possible.entry(key.clone()).or_default().push(value.clone());
        }
        possible
    }

    /// Compares with the contents found: all durable writes must be there, plus any prefix of the
    /// later ones. The contents found become the new base. Returns for how long the oldest of the
    /// lost writes had been acknowledged when the session ended.
    pub fn found(&mut self, found: Contents) -> Result<Option<Duration>, Breach> {
        let mut expected = self.base.clone();
        self.since[..self.durable].iter().for_each(|batch| apply(&mut expected, batch));
        let least = expected.clone();
        // Of several prefixes, as with writes of what was there already, the longest.
        let mut fits = (expected == found).then_some(self.durable);
        for (number, batch) in (self.durable + 1..).zip(&self.since[self.durable..]) {
            apply(&mut expected, batch);
            if expected == found {
                fits = Some(number);
            }
        }
        let Some(left) = fits else { return Err(self.breach(&least, &found)) };
        let age = self.answered.get(left).zip(self.ended_at);
        let age = age.map(|(answered, ended)| Duration::from_nanos(ended.since_ns(*answered)));
        *self = Promise { base: found, ..Promise::default() };
        Ok(age)
    }

    fn breach(&self, least: &Contents, found: &Contents) -> Breach {
        let shown = |value: Option<&Bytes>| {
            value.map_or("nothing".to_owned(), |value| {
                let begin = &value[..value.len().min(8)];
                format!("{} bytes `{}`", value.len(), begin.escape_ascii())
            })
        };
        let keys = least.keys().chain(found.keys());
        let differing = keys.filter(|key| least.get(*key) != found.get(*key));
        let each = differing.take(3).map(|key| {
            let open =
                self.since[self.durable..].iter().flatten().filter(|(other, _)| other == key);
            let open: Vec<String> = open.map(|(_, value)| shown(value.as_ref())).collect();
            format!(
                "key `{}`: {} was promised, {} found; written since, of unknown outcome: {}",
                key.escape_ascii(),
                shown(least.get(key)),
                shown(found.get(key)),
                if open.is_empty() { "nothing".to_owned() } else { open.join(", ") },
            )
        });
        Breach(each.collect::<Vec<_>>().join("; "))
    }
}

fn apply(contents: &mut Contents, batch: &Batch) {
    for (key, value) in batch {
        match value {
            Some(value) => contents.insert(key.clone(), value.clone()),
            None => contents.remove(key),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &'static str, value: &'static str) -> (Bytes, Option<Bytes>) {
        (Bytes::from(key), Some(Bytes::from(value)))
    }

    fn contents(entries: &[(&'static str, &'static str)]) -> Contents {
        entries.iter().map(|(key, value)| (Bytes::from(*key), Bytes::from(*value))).collect()
    }

    #[test]
    fn durable_writes_must_be_there_plus_a_prefix_of_later_ones() {
        let mut promise = Promise::default();
        promise.begins(vec![put("a", "1")]);
        promise.is_durable();
        promise.begins(vec![put("a", "2"), put("b", "2")]);
        promise.begins(vec![(Bytes::from("a"), None)]);
        let found = |entries: &[_]| promise.clone().found(contents(entries));
        assert_eq!(found(&[("a", "1")]), Ok(None));
        assert_eq!(found(&[("a", "2"), ("b", "2")]), Ok(None));
        assert_eq!(found(&[("b", "2")]), Ok(None));
        assert!(found(&[]).is_err(), "lost");
        assert!(found(&[("a", "2")]).is_err(), "torn");
        assert!(found(&[("a", "1"), ("c", "0")]).is_err(), "invented");
        let breach = found(&[("a", "0")]).unwrap_err().0;
        assert!(
            breach.contains("key `a`: 1 bytes `1` was promised, 1 bytes `0` found"),
            "{breach}"
        );
    }

    #[test]
    fn the_oldest_lost_write_has_an_age() {
        let mut promise = Promise::default();
        for (at, value) in [(10, "1"), (20, "2"), (30, "3")] {
            promise.begins(vec![put("a", value)]);
            promise.is_answered(Time(at));
        }
        promise.begins(vec![put("a", "4")]);
        promise.ends(Time(100));
        promise.ends(Time(5));
        let age = |value| promise.clone().found(contents(&[("a", value)])).unwrap();
        assert_eq!(age("1"), Some(Duration::from_nanos(80)));
        assert_eq!(age("2"), Some(Duration::from_nanos(70)));
        assert_eq!((age("3"), age("4")), (None, None), "the last one was not acknowledged");
        assert_eq!(promise.found(contents(&[])).unwrap(), Some(Duration::from_nanos(90)));
    }

    #[test]
    fn a_scan_may_show_every_value_since_it_began() {
        let mut promise = Promise::default();
        for value in ["1", "2"] {
            promise.begins(vec![put("a", value)]);
            promise.is_answered(Time::ZERO);
        }
        promise.begins(vec![put("b", "1")]);
        let values = |answered, key: &'static str| {
            promise.possible_since(answered)[&Bytes::from(key)].clone()
        };
        let some = |value: &'static str| Some(Bytes::from(value));
        assert_eq!(values(1, "a"), [some("1"), some("2")]);
        assert_eq!(values(2, "a"), [some("2")]);
        assert_eq!(values(2, "b"), [None, some("1")]);
    }

    #[test]
    fn contents_found_become_the_base() {
        let mut promise = Promise::default();
        promise.begins(vec![put("a", "1")]);
        promise.found(contents(&[])).unwrap();
        assert!(promise.clone().found(contents(&[("a", "1")])).is_err(), "it reappeared later");
        assert_eq!(promise.current(), contents(&[]));
    }
}
