//! The writes of a transaction, from its command to the shard that applies them.

use crate::value::Entry;
use bytes::Bytes;
use hashbrown::HashMap;
use smallvec::SmallVec;

/// A key and its new entry; `None` deletes the key.
pub(crate) type Write = (Bytes, Option<Entry>);

/// The writes of a transaction: each key once, in order of its first write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Writes {
    entries: SmallVec<[Write; 1]>,
    /// Indices by key, used when there are too many entries for a linear search.
    index: HashMap<Bytes, usize>,
    /// All keys are removed before these writes.
    pub(crate) clear: bool,
}

/// The maximum number of writes for a linear search.
const FEW: usize = 16;

impl Writes {
    /// No writes; `clear` removes all keys.
    pub(crate) fn new(clear: bool) -> Writes {
        Writes { clear, ..Writes::default() }
    }

    /// Whether nothing changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.clear
    }

    /// The pending entry of a key; `None` where it is not written.
    pub(crate) fn get(&self, key: &Bytes) -> Option<&Option<Entry>> {
        let (_, entry) = self.entries.get(self.find(key)?)?;
        Some(entry)
    }

    /// Writes a key; the last write of a key counts.
    pub(crate) fn set(&mut self, key: Bytes, entry: Option<Entry>) {
        if let Some((_, pending)) = self.find(&key).and_then(|place| self.entries.get_mut(place)) {
            *pending = entry;
            return;
        }
        if self.entries.len() == FEW {
            let places = self.entries.iter().enumerate();
            self.index = places.map(|(place, (key, _))| (key.clone(), place)).collect();
        }
        if self.entries.len() >= FEW {
            self.index.insert(key.clone(), self.entries.len());
        }
        self.entries.push((key, entry));
    }

    fn find(&self, key: &Bytes) -> Option<usize> {
        if self.index.is_empty() {
            self.entries.iter().position(|(written, _)| written == key)
        } else {
            self.index.get(key).copied()
        }
    }

    /// The keys, in order of their first write.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Bytes> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// The keys and their new entries, in order of their first write.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Write> {
        self.entries.iter()
    }

    /// The writes themselves.
    pub(crate) fn into_entries(self) -> impl Iterator<Item = Write> {
        self.entries.into_iter()
    }

    /// Bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let entry =
            |(key, entry): &Write| key.len() + entry.as_ref().map_or(0, |entry| entry.value.len());
        self.entries.iter().map(entry).sum()
    }

    /// Whether they add data.
    pub(crate) fn grow(&self) -> bool {
        self.entries.iter().any(|(_, entry)| entry.is_some())
    }
}

impl FromIterator<Write> for Writes {
    fn from_iter<T: IntoIterator<Item = Write>>(writes: T) -> Writes {
        let mut collected = Writes::default();
        writes.into_iter().for_each(|(key, entry)| collected.set(key, entry));
        collected
    }
}
