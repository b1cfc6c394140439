//! The newest records of a slice, in memory.
//!
//! A hash map serves lookups; a sorted set of the keys serves scans and flushes. Overwriting a key,
//! the common case, changes only the map.

pub use crate::format::version::Version;

use crate::format::record::Record;
use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use hashbrown::hash_table::{Entry, HashTable};
use softflash_base::planted::{self, Bug};
use std::collections::BTreeSet;
use std::hash::BuildHasher;
use std::ops::Bound;

/// The approximate memory overhead of a version, in bytes.
pub const OVERHEAD_BYTES: usize = 256;

/// Whether a key existed on flash before the memtable's first record of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presence {
    /// The key did not exist.
    New,
    /// The key existed.
    Replaces,
    /// Not looked up.
    #[default]
    Unknown,
}

/// Bytes of a fragment of a separated value after the first, beside its key: its reference, and the
/// head of its record in the patch that the memtable becomes.
const BYTES_OF_FRAGMENT: usize = 52;

/// Bytes of the fragments of a separated value after the first.
pub fn bytes_of_fragments(key: &[u8], fragments: usize) -> usize {
    fragments.saturating_sub(1) * (BYTES_OF_FRAGMENT + key.len())
}

/// Bytes of a version in the memtable. The value log counts separated values that are not written.
fn bytes_of(key: &[u8], version: &Version) -> usize {
    let fragments = version.as_separated().map_or(1, |separated| separated.fragments());
    OVERHEAD_BYTES
        + version.inline().map_or(0, |entry| entry.value.len())
        + bytes_of_fragments(key, fragments)
}

struct Slot {
    key: Bytes,
    newest: Version,
    /// Older versions that snapshots need, newest first.
    older: Vec<Version>,
    presence: Presence,
}

/// A sorted map from keys to versions.
#[derive(Default)]
pub struct Memtable {
    hasher: DefaultHashBuilder,
    slots: HashTable<Slot>,
    order: BTreeSet<Bytes>,
    bytes: usize,
}

impl Memtable {
    /// Whether it has no records.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Keys inside.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Approximate bytes of memory in use.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The newest version of `key` not newer than `max_seq`.
    pub fn get(&self, key: &[u8], max_seq: u64) -> Option<&Version> {
        let slot = self.slot(key)?;
        if slot.newest.seq <= max_seq {
            return Some(&slot.newest);
        }
        slot.older.iter().find(|version| version.seq <= max_seq)
    }

    /// Adds a version newer than all others. The previous version is kept only if a snapshot needs
    /// it; `newest_snapshot` is the newest snapshot. Returns whether the key is new here: then it
    /// is copied, so that callers need not own it.
    pub fn insert(&mut self, key: &Bytes, version: Version, newest_snapshot: Option<u64>) -> bool {
        self.bytes += bytes_of(key, &version);
        let hasher = &self.hasher;
        let is_it = |slot: &Slot| slot.key == key;
        match self.slots.entry(hasher.hash_one(key), is_it, |slot| hasher.hash_one(&slot.key)) {
            Entry::Occupied(mut slot) => {
                let slot = slot.get_mut();
                let before = std::mem::replace(&mut slot.newest, version);
                let least = before.seq + u64::from(planted::bug(Bug::SnapshotForgetsItsVersion));
                if newest_snapshot.is_some_and(|newest| newest >= least) {
                    slot.older.insert(0, before);
                } else if newest_snapshot.is_some() {
                    self.bytes -= bytes_of(key, &before);
                } else {
                    let dropped = bytes_of(key, &before)
                        + slot
                            .older
                            .drain(..)
                            .map(|version| bytes_of(key, &version))
                            .sum::<usize>();
                    self.bytes -= dropped;
                }
                false
            }
            Entry::Vacant(place) => {
                let key = Bytes::copy_from_slice(key);
                self.bytes += key.len();
                self.order.insert(key.clone());
                let (older, presence) = (Vec::new(), Presence::Unknown);
                place.insert(Slot { key, newest: version, older, presence });
                true
            }
        }
    }

    fn slot(&self, key: &[u8]) -> Option<&Slot> {
        self.slots.find(self.hasher.hash_one(key), |slot| slot.key == key)
    }

    /// Keys in order from the first one after `after`, with their newest versions.
    pub fn newest_after(
        &self,
        after: Option<&Bytes>,
    ) -> impl Iterator<Item = (&Bytes, &Version, Presence)> {
        self.keys_after(after).filter_map(|key| {
            let slot = self.slot(key)?;
            Some((key, &slot.newest, slot.presence))
        })
    }

    /// Remembers whether the key existed on flash.
    pub fn set_presence(&mut self, key: &[u8], presence: Presence) {
        let hash = self.hasher.hash_one(key);
        if let Some(slot) = self.slots.find_mut(hash, |slot| slot.key == key) {
            slot.presence = presence;
        }
    }

    /// The records of up to `keys` keys in order, from the first key after `after` on: all
    /// versions, newest first.
    pub fn records_after(&self, after: Option<&Bytes>, keys: usize) -> Vec<Record> {
        let mut records = Vec::new();
        for key in self.keys_after(after).take(keys) {
            let Some(slot) = self.slot(key) else { continue };
            for version in std::iter::once(&slot.newest).chain(&slot.older) {
                records.extend(version.records(key));
            }
        }
        records
    }

    fn keys_after(&self, after: Option<&Bytes>) -> impl Iterator<Item = &Bytes> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range::<Bytes, _>((from, Bound::Unbounded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Entry;

    fn version(seq: u64, value: &'static str) -> Version {
        let entry = Entry::new(Bytes::from_static(value.as_bytes()));
        Version::seal(&Bytes::from_static(b"k"), seq, Some(entry)).unwrap()
    }

    #[test]
    fn overwriting_keeps_old_versions_only_for_snapshots() {
        let mut table = Memtable::default();
        let key = Bytes::from_static(b"k");
        table.insert(&key, version(1, "one"), None);
        let alone = table.bytes();
        table.insert(&key, version(2, "two"), None);
        assert_eq!((table.bytes(), table.get(b"k", 1)), (alone, None));
        table.insert(&key, version(3, "three"), Some(2));
        assert_eq!(table.get(b"k", 2).map(|found| found.seq), Some(2));
        assert_eq!(table.get(b"k", u64::MAX).map(|found| found.seq), Some(3));
        assert_eq!(table.records_after(None, 9).len(), 2);
        let deleted = Version::seal(&key, 4, None).unwrap();
        table.insert(&key, deleted, None);
        assert_eq!(table.records_after(None, 9).len(), 1, "no snapshot is left");
        assert_eq!(table.bytes(), 1 + OVERHEAD_BYTES);
    }

    #[test]
    fn each_fragment_of_a_separated_value_counts_until_the_value_is_overwritten() {
        let (mut table, key) = (Memtable::default(), Bytes::from_static(b"k"));
        let entry = Entry::new(Bytes::from_static(&[7; 1000]));
        table.insert(&key, Version::separate(&key, 1, entry, 100).unwrap(), None);
        let fragments = 9 * (BYTES_OF_FRAGMENT + key.len());
        assert_eq!(table.bytes(), 1 + OVERHEAD_BYTES + fragments);
        table.insert(&key, Version::seal(&key, 2, None).unwrap(), None);
        assert_eq!(table.bytes(), 1 + OVERHEAD_BYTES);
    }

    #[test]
    fn keys_come_in_order_from_any_point() {
        let mut table = Memtable::default();
        for (seq, key) in ["b", "d", "a", "c"].iter().enumerate() {
            table.insert(&Bytes::from_static(key.as_bytes()), version(seq as u64, "x"), None);
        }
        let after = Bytes::from_static(b"aa");
        let keys: Vec<_> = table.newest_after(Some(&after)).map(|(key, ..)| key.clone()).collect();
        assert_eq!(keys, ["b", "c", "d"]);
    }
}
