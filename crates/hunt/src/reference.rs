//! The reference: acknowledged writes of a client, and which contents are correct after a cut.
//! Shares no code with the store.

use bytes::Bytes;
use std::collections::BTreeMap;

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
    /// Number of these writes that must have survived.
    firm: usize,
}

/// Why the contents found are wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach(pub String);

impl Promise {
    /// A write request starts.
    pub fn begins(&mut self, batch: Batch) {
        self.since.push(batch);
    }

    /// The last write was acknowledged and is durable.
    pub fn is_firm(&mut self) {
        self.firm = self.since.len();
    }

    /// The contents that the client must read while there was no cut.
    pub fn current(&self) -> Contents {
        let mut contents = self.base.clone();
        self.since.iter().for_each(|batch| apply(&mut contents, batch));
        contents
    }

    /// Compares with the contents found: all durable writes must be there, plus any prefix of the
    /// later ones. The contents found become the new base.
    pub fn found(&mut self, found: Contents) -> Result<(), Breach> {
        let mut expected = self.base.clone();
        self.since[..self.firm].iter().for_each(|batch| apply(&mut expected, batch));
        let least = expected.clone();
        let mut later = self.since[self.firm..].iter();
        while expected != found {
            match later.next() {
                Some(batch) => apply(&mut expected, batch),
                None => return Err(self.breach(&least, &found)),
            }
        }
        *self = Promise { base: found, ..Promise::default() };
        Ok(())
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
            let open = self.since[self.firm..].iter().flatten().filter(|(other, _)| other == key);
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
        promise.is_firm();
        promise.begins(vec![put("a", "2"), put("b", "2")]);
        promise.begins(vec![(Bytes::from("a"), None)]);
        let found = |entries: &[_]| promise.clone().found(contents(entries));
        assert_eq!(found(&[("a", "1")]), Ok(()));
        assert_eq!(found(&[("a", "2"), ("b", "2")]), Ok(()));
        assert_eq!(found(&[("b", "2")]), Ok(()));
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
    fn contents_found_become_the_base() {
        let mut promise = Promise::default();
        promise.begins(vec![put("a", "1")]);
        promise.found(contents(&[])).unwrap();
        assert!(promise.clone().found(contents(&[("a", "1")])).is_err(), "it reappeared later");
        assert_eq!(promise.current(), contents(&[]));
    }
}
