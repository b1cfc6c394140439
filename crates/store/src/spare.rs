//! Memory that the store's owner has for requests and replies: while they do not need it, the read
//! caches use it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Growth of the taken memory that does not shrink the caches at once.
const SHRINK_STEP_BYTES: u64 = 4 << 20;

/// Spare memory of a store's owner. A clone is the same memory; none by default.
#[derive(Debug, Clone, Default)]
pub struct SpareMemory {
    total_bytes: u64,
    taken: Arc<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicU64,
    /// Those of unsent replies.
    unsent_bytes: AtomicU64,
    /// Reads that wait for room beside them.
    waiting: AtomicUsize,
    /// The taken bytes for which the caches have made room.
    made_room_bytes: AtomicU64,
}

impl SpareMemory {
    /// Memory of `total_bytes`, none of it taken.
    pub fn new(total_bytes: u64) -> SpareMemory {
        SpareMemory { total_bytes, taken: Arc::default() }
    }

    /// All bytes, taken or not.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Bytes in use, which may be more than there are.
    pub fn taken_bytes(&self) -> u64 {
        self.taken.bytes.load(Ordering::Relaxed)
    }

    /// The owner uses `after` bytes for something that had `before`.
    pub fn change(&self, before: u64, after: u64) {
        let taken = &self.taken;
        if after >= before {
            taken.bytes.fetch_add(after - before, Ordering::Relaxed);
        } else {
            let left = taken.bytes.fetch_sub(before - after, Ordering::Relaxed);
            taken.made_room_bytes.fetch_min(left - (before - after), Ordering::Relaxed);
        }
    }

    /// As [`change`](Self::change), for unsent replies.
    pub fn change_unsent(&self, before: u64, after: u64) {
        let unsent = &self.taken.unsent_bytes;
        match after >= before {
            true => unsent.fetch_add(after - before, Ordering::Relaxed),
            false => unsent.fetch_sub(before - after, Ordering::Relaxed),
        };
        self.change(before, after);
    }

    /// The part of it that is for replies: half.
    pub(crate) fn reply_bytes(&self) -> u64 {
        self.total_bytes / 2
    }

    /// Whether a reply of so many bytes has room beside the unsent ones. The first one has.
    pub(crate) fn holds_reply(&self, bytes: u64) -> bool {
        let unsent = self.taken.unsent_bytes.load(Ordering::Relaxed);
        unsent == 0 || unsent + bytes <= self.reply_bytes()
    }

    /// Counts a read that waits for room, as long as the result lives.
    pub(crate) fn wait(&self) -> WaitingRead<'_> {
        self.taken.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingRead(&self.taken)
    }

    /// Reads that wait until replies have been sent.
    pub fn waiting_reads(&self) -> usize {
        self.taken.waiting.load(Ordering::Relaxed)
    }

    /// Whether so much has been taken that the caches must make room; they are then taken to have
    /// made it.
    pub fn needs_cache_shrink(&self) -> bool {
        let bytes = self.taken.bytes.load(Ordering::Relaxed);
        let is_much =
            bytes > self.taken.made_room_bytes.load(Ordering::Relaxed) + SHRINK_STEP_BYTES;
        if is_much {
            self.taken.made_room_bytes.store(bytes, Ordering::Relaxed);
        }
        is_much
    }
}

/// Large values that a batch of requests has read for replies that are not made yet. They count as
/// unsent replies. A clone is the same batch, also on other threads.
#[derive(Debug, Clone)]
pub struct HeldValues(Arc<Held>);

#[derive(Debug)]
struct Held {
    spare: SpareMemory,
    bytes: AtomicU64,
}

impl HeldValues {
    /// A batch that holds no value.
    pub fn of(spare: SpareMemory) -> HeldValues {
        HeldValues(Arc::new(Held { spare, bytes: AtomicU64::new(0) }))
    }

    /// Whether it holds a value.
    pub fn is_any(&self) -> bool {
        self.0.bytes.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn take(&self, bytes: u64) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.0.spare.change_unsent(0, bytes);
    }

    /// The batch has ended: its replies are counted by their owner.
    pub fn release(&self) {
        self.0.spare.change_unsent(self.0.bytes.swap(0, Ordering::Relaxed), 0);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.spare.change_unsent(*self.bytes.get_mut(), 0);
    }
}

/// A read that waits for room beside unsent replies.
pub(crate) struct WaitingRead<'a>(&'a Taken);

impl Drop for WaitingRead<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for SpareMemory {
    /// Whether it is the same amount.
    fn eq(&self, other: &SpareMemory) -> bool {
        self.total_bytes == other.total_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_reply_has_room_in_half_of_the_memory_and_the_first_one_always() {
        let spare = SpareMemory::new(64 * MIB);
        spare.change(0, 40 * MIB);
        assert!(spare.holds_reply(100 * MIB), "requests do not take the room of replies");
        spare.change_unsent(0, 20 * MIB);
        assert!(spare.holds_reply(12 * MIB));
        assert!(!spare.holds_reply(13 * MIB));
        assert_eq!(spare.taken_bytes(), 60 * MIB);
        spare.change_unsent(20 * MIB, 0);
        assert!(spare.holds_reply(13 * MIB));
    }

    #[test]
    fn held_values_are_unsent_until_their_batch_ends() {
        let spare = SpareMemory::new(64 * MIB);
        let (held, other) = (HeldValues::of(spare.clone()), HeldValues::of(spare.clone()));
        held.clone().take(20 * MIB);
        assert!(held.is_any() && !other.is_any());
        assert!(!spare.holds_reply(13 * MIB));
        other.take(2 * MIB);
        held.release();
        assert!(!held.is_any() && spare.holds_reply(30 * MIB));
        drop(other);
        assert_eq!(spare.taken_bytes(), 0);
    }

    #[test]
    fn taken_memory_is_not_free_and_a_large_growth_shrinks_the_caches_once() {
        let spare = SpareMemory::new(64 * MIB);
        let same = spare.clone();
        spare.change(0, MIB);
        assert_eq!((same.total_bytes(), same.taken_bytes()), (64 * MIB, MIB));
        assert!(!same.needs_cache_shrink());
        spare.change(MIB, 80 * MIB);
        assert_eq!(same.taken_bytes(), 80 * MIB, "one request may exceed the memory");
        assert!(same.needs_cache_shrink());
        assert!(!same.needs_cache_shrink());
        spare.change(80 * MIB, 0);
        assert_eq!(same.taken_bytes(), 0);
        spare.change(0, 5 * MIB);
        assert!(same.needs_cache_shrink(), "shrinks again after it was given back");
    }
}
