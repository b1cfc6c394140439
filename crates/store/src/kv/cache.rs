//! The read cache: entries by key, evicted by S3-FIFO.
//!
//! An entry enters at the end of the small queue. One that reaches its head unread is evicted: it
//! was read once, or only written. One that was read meanwhile, or that returns soon after its
//! eviction, gets to the main queue, where each further read earns another round. The cache has no
//! size of its own: with each entry the caller says how much room there is now.

mod ghosts;

use crate::value::Entry;
use bytes::Bytes;
use ghosts::Ghosts;
use hashbrown::{DefaultHashBuilder, HashTable};
use std::cell::Cell;
use std::collections::VecDeque;
use std::hash::BuildHasher;

/// A cached entry.
#[derive(Debug, Clone)]
pub struct Cached {
    /// The newest entry on flash.
    pub entry: Entry,
    /// The sequence number of its record.
    pub seq: u64,
}

/// The memory overhead of an entry, in bytes: its slot, its places in index, queue and ghosts, and
/// the headers of key and value.
const OVERHEAD_BYTES: usize = 224;
/// The share of the small queue, as a divisor.
const SMALL_SHARE: u64 = 10;
/// An entry larger than this share of the cache, as a divisor, is not cached.
const LARGEST_SHARE: u64 = 32;
/// The reads that count.
const MAX_READS: u8 = 3;

/// Where an entry is: its slot, and a part of its key's hash.
struct Place {
    slot: u32,
    tag: u32,
}

impl Place {
    fn hash(&self) -> u64 {
        spread(self.tag)
    }
}

/// The hash of a tag in the index, whose tables take the highest and the lowest bits.
fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

struct Slot {
    key: Bytes,
    /// `None` once the entry is removed; the slot is reused when it reaches the head of its queue.
    cached: Option<Cached>,
    tag: u32,
    reads: Cell<u8>,
    is_main: bool,
}

impl Slot {
    fn bytes(&self) -> u64 {
        self.cached.as_ref().map_or(0, |cached| bytes_of(&self.key, cached))
    }
}

/// Bytes of memory of an entry. An allocator rounds values up, by a sixteenth on average.
fn bytes_of(key: &Bytes, cached: &Cached) -> u64 {
    let value = cached.entry.value.len();
    (key.len() + value + value / 16 + OVERHEAD_BYTES) as u64
}

/// Entries that are on flash and not in a memtable. A write removes its key, so that every cached
/// entry is current.
#[derive(Default)]
pub struct ReadCache {
    hasher: DefaultHashBuilder,
    index: HashTable<Place>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    small: Queue,
    main: Queue,
    ghosts: Ghosts,
}

/// Slots from the oldest to the newest, and the bytes of their entries.
#[derive(Default)]
struct Queue {
    slots: VecDeque<u32>,
    bytes: u64,
}

impl ReadCache {
    /// The cached entry of `key`.
    pub fn get(&self, key: &[u8]) -> Option<&Cached> {
        if self.index.is_empty() {
            return None;
        }
        let place = self.index.find(spread(self.tag_of(key)), |place| self.is_at(place, key))?;
        let slot = self.slots.get(place.slot as usize)?;
        slot.reads.set((slot.reads.get() + 1).min(MAX_READS));
        slot.cached.as_ref()
    }

    /// Adds an entry, unless it would fill a large part of the cache, which may then have
    /// `room_bytes`.
    pub fn insert(&mut self, key: Bytes, cached: Cached, room_bytes: u64) {
        self.remove(&key);
        let bytes = bytes_of(&key, &cached);
        if bytes <= room_bytes / LARGEST_SHARE {
            self.shrink_to(room_bytes - bytes);
            self.add(key, cached, bytes);
        }
    }

    /// Removes `key`, which has been written.
    pub fn remove(&mut self, key: &[u8]) {
        // In write-only workloads the cache is empty: the check saves hashing the key.
        if self.index.is_empty() {
            return;
        }
        let hash = spread(self.tag_of(key));
        let slots = &self.slots;
        let is_it = |place: &Place| slots.get(place.slot as usize).is_some_and(|s| s.key == key);
        let Ok(found) = self.index.find_entry(hash, is_it) else { return };
        let (place, _) = found.remove();
        let Some(slot) = self.slots.get_mut(place.slot as usize) else { return };
        let bytes = slot.bytes();
        (slot.key, slot.cached) = (Bytes::new(), None);
        let queue = if slot.is_main { &mut self.main } else { &mut self.small };
        queue.bytes -= bytes;
        self.sweep();
    }

    /// Evicts entries until the others have at most `room_bytes`.
    pub fn shrink_to(&mut self, room_bytes: u64) {
        while self.bytes() > room_bytes && self.evict_one() {}
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        *self = ReadCache::default();
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.small.bytes + self.main.bytes
    }

    fn tag_of(&self, key: &[u8]) -> u32 {
        (self.hasher.hash_one(key) >> 32) as u32
    }

    fn is_at(&self, place: &Place, key: &[u8]) -> bool {
        self.slots.get(place.slot as usize).is_some_and(|slot| slot.key == key)
    }

    fn add(&mut self, key: Bytes, cached: Cached, bytes: u64) {
        let tag = self.tag_of(&key);
        let is_main = self.ghosts.take(tag);
        let slot = Slot { key, cached: Some(cached), tag, reads: Cell::new(0), is_main };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(free) = self.slots.get_mut(place as usize) {
                    *free = slot;
                }
                place
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert_unique(spread(tag), Place { slot: place, tag }, Place::hash);
        let queue = if is_main { &mut self.main } else { &mut self.small };
        queue.slots.push_back(place);
        queue.bytes += bytes;
    }

    /// Evicts an entry, or moves one that was read; false if the cache is empty.
    fn evict_one(&mut self) -> bool {
        let from_small = self.small.bytes > self.bytes() / SMALL_SHARE || self.main.bytes == 0;
        let queue = if from_small { &mut self.small } else { &mut self.main };
        let Some(place) = queue.slots.pop_front() else { return !self.index.is_empty() };
        let Some(slot) = self.slots.get_mut(place as usize) else { return true };
        if slot.cached.is_none() {
            self.free.push(place);
            return true;
        }
        let (bytes, reads) = (slot.bytes(), slot.reads.get());
        queue.bytes -= bytes;
        if reads > 0 {
            slot.reads.set(if from_small { 0 } else { reads - 1 });
            slot.is_main = true;
            self.main.slots.push_back(place);
            self.main.bytes += bytes;
            return true;
        }
        let tag = slot.tag;
        (slot.key, slot.cached) = (Bytes::new(), None);
        self.free.push(place);
        if let Ok(found) = self.index.find_entry(spread(tag), |other| other.slot == place) {
            found.remove();
        }
        if from_small {
            self.ghosts.add(tag, self.index.len());
        }
        true
    }

    /// Frees the slots of removed entries when they are the majority: without evictions they do not
    /// reach the head of their queue.
    fn sweep(&mut self) {
        let queued = self.small.slots.len() + self.main.slots.len();
        if queued < 2 * self.index.len() + 64 {
            return;
        }
        let (slots, free) = (&self.slots, &mut self.free);
        for queue in [&mut self.small, &mut self.main] {
            queue.slots.retain(|place| {
                let is_live = slots.get(*place as usize).is_some_and(|slot| slot.cached.is_some());
                if !is_live {
                    free.push(*place);
                }
                is_live
            });
        }
    }
}

#[cfg(test)]
mod tests;
