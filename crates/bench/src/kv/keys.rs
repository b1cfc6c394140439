//! The keys of one thread during the run.

use super::distribution::{Order, Picker};
use super::load::{Load, key};
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_store::StoreLayout;

/// The keys of a thread's shard. Workloads insert further ones and delete some.
pub struct Keys {
    shard: ShardId,
    layout: StoreLayout,
    /// Numbers of the keys, in the order of their first write.
    numbers: Vec<u32>,
    /// Whether the key at this place is deleted; empty without deletions.
    deleted: Vec<bool>,
    deletions: u64,
    next_new: u32,
}

impl Keys {
    /// The keys of the data set.
    pub fn new(load: &Load, layout: &StoreLayout, shard: ShardId) -> Keys {
        Keys {
            shard,
            layout: layout.clone(),
            numbers: load.numbers_of(layout, shard),
            deleted: Vec::new(),
            deletions: 0,
            next_new: load.first_new(),
        }
    }

    /// Number of keys, deleted ones included.
    pub fn len(&self) -> u64 {
        self.numbers.len() as u64
    }

    /// Number of keys that have values, once each was written.
    pub fn live(&self) -> u64 {
        self.len() - self.deletions
    }

    /// Draws places of these keys.
    pub fn picker(&self, order: Order) -> Picker {
        Picker::new(order, self.len())
    }

    /// A place by this picker, and the key there.
    pub fn pick(&self, picker: &mut Picker, rng: &mut Rng) -> (u64, Bytes) {
        let place = picker.pick(self.len(), rng);
        (place, self.at(place))
    }

    /// The key at a place.
    pub fn at(&self, place: u64) -> Bytes {
        key(self.numbers.get(place as usize).copied().unwrap_or_default())
    }

    /// The number of a key of this shard that was never written. It joins the others by
    /// [`inserted`](Self::inserted) once it is there.
    pub fn new_number(&mut self) -> u32 {
        loop {
            let number = self.next_new;
            self.next_new = self.next_new.wrapping_add(1);
            if self.layout.shard_of(&key(number)) == self.shard {
                return number;
            }
        }
    }

    /// A new key has its value.
    pub fn inserted(&mut self, number: u32) {
        self.numbers.push(number);
    }

    /// The key at a place was deleted.
    pub fn deleted(&mut self, place: u64) {
        self.deleted.resize(self.numbers.len(), false);
        if let Some(deleted @ false) = self.deleted.get_mut(place as usize) {
            *deleted = true;
            self.deletions += 1;
        }
    }

    /// The key at a place was written.
    pub fn written(&mut self, place: u64) {
        if let Some(deleted @ true) = self.deleted.get_mut(place as usize) {
            *deleted = false;
            self.deletions -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_shards() -> [Keys; 2] {
        let layout = StoreLayout::new(2, 4, 4);
        let load = Load::new(100, 1000, 1, 1);
        [0, 1].map(|shard| Keys::new(&load, &layout, ShardId(shard)))
    }

    #[test]
    fn each_key_is_of_one_thread_and_new_keys_are_new_and_of_the_same_shard() {
        let [mut one, other] = two_shards();
        assert_eq!(one.len() + other.len(), 1000);
        assert!(one.len() > 300 && other.len() > 300);
        let (first, second) = (one.new_number(), one.new_number());
        assert!(1000 <= first && first < second);
        assert_eq!(one.layout.shard_of(&key(second)), one.shard);
        let before = one.live();
        one.inserted(first);
        assert_eq!(one.live(), before + 1);
        assert_eq!(one.at(before), key(first));
    }

    #[test]
    fn a_key_deleted_twice_is_missing_once_and_a_write_brings_it_back() {
        let [mut keys, _] = two_shards();
        let all = keys.len();
        keys.written(3);
        assert_eq!(keys.live(), all);
        keys.deleted(3);
        keys.deleted(3);
        keys.deleted(4);
        assert_eq!(keys.live(), all - 2);
        keys.written(3);
        keys.written(3);
        assert_eq!(keys.live(), all - 1);
    }
}
