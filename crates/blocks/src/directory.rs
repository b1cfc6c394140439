//! The directory: which superblocks hold which block.

use crate::tag::BlockId;
use hashbrown::HashMap;
use smallvec::SmallVec;
use softflash_ftl::Superblock;
use std::cell::{Cell, RefCell};

/// The superblocks of a block, one a copy.
pub(crate) type Copies = SmallVec<[Superblock; 2]>;

/// Where a block is.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) copies: Copies,
    pub(crate) on_log: bool,
    /// The number of the attempt that wrote it, from 0.
    pub(crate) attempt: u8,
    /// The mount found one of two copies. Either the other copy was lost, or a power cut came
    /// before both were begun, and nothing in this copy was acknowledged.
    pub(crate) is_half: bool,
}

/// All blocks of a shard.
#[derive(Default)]
pub(crate) struct Directory {
    places: RefCell<HashMap<BlockId, Place>>,
    next_id: Cell<u64>,
}

impl Directory {
    pub(crate) fn reserve_ids(&self, next: u64) {
        self.next_id.set(self.next_id.get().max(next));
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.next_id.get()
    }

    pub(crate) fn new_id(&self) -> BlockId {
        let id = BlockId(self.next_id.get());
        assert!(!self.contains(id), "{id} is assigned twice");
        self.next_id.set(id.0 + 1);
        id
    }

    pub(crate) fn contains(&self, id: BlockId) -> bool {
        self.places.borrow().contains_key(&id)
    }

    pub(crate) fn place(&self, id: BlockId) -> Option<Place> {
        self.places.borrow().get(&id).cloned()
    }

    /// Empty for a block that is not known.
    pub(crate) fn copies(&self, id: BlockId) -> Copies {
        self.places.borrow().get(&id).map(|place| place.copies.clone()).unwrap_or_default()
    }

    /// A property of the place of a block; `None` for a block that is not known.
    pub(crate) fn ask<T>(&self, id: BlockId, about: impl Fn(&Place) -> T) -> Option<T> {
        self.places.borrow().get(&id).map(about)
    }

    /// Whether the mount found one of two copies of the block.
    pub(crate) fn is_half(&self, id: BlockId) -> bool {
        self.ask(id, |place| place.is_half).unwrap_or(false)
    }

    /// Changes the place of a block; `None` for a block that is not known.
    pub(crate) fn change<T>(&self, id: BlockId, change: impl FnOnce(&mut Place) -> T) -> Option<T> {
        self.places.borrow_mut().get_mut(&id).map(change)
    }

    /// Adds a block that is not known.
    pub(crate) fn insert(&self, id: BlockId, place: Place) {
        let before = self.places.borrow_mut().insert(id, place);
        assert!(before.is_none(), "{id} has a place already: {before:?}");
    }

    /// Moves a block to the place of a later attempt; returns the earlier place, if there was one.
    pub(crate) fn replace(&self, id: BlockId, place: Place) -> Option<Place> {
        let attempt = place.attempt;
        let before = self.places.borrow_mut().insert(id, place);
        assert!(
            before.as_ref().is_none_or(|before| before.attempt < attempt),
            "attempt {attempt} of {id} replaces a later one: {before:?}"
        );
        before
    }

    pub(crate) fn remove(&self, id: BlockId) -> Option<Place> {
        self.places.borrow_mut().remove(&id)
    }

    /// Removes the copies that are not among `kept`; returns them, and whether they are on the
    /// log's flash.
    pub(crate) fn keep_copies(&self, id: BlockId, kept: &[Superblock]) -> Option<(Copies, bool)> {
        self.change(id, |place| {
            let (kept, dropped) = place.copies.drain(..).partition(|copy| kept.contains(copy));
            place.copies = kept;
            (dropped, place.on_log)
        })
    }

    /// The block with this copy.
    pub(crate) fn id_at(&self, superblock: &Superblock) -> Option<BlockId> {
        let places = self.places.borrow();
        places.iter().find(|(_, place)| place.copies.contains(superblock)).map(|(id, _)| *id)
    }

    /// Every block, in order.
    pub(crate) fn ids(&self) -> Vec<BlockId> {
        self.ids_where(|_| true)
    }

    /// The blocks of which a copy is on the unit, in order.
    pub(crate) fn ids_on(&self, unit: u16, on_log: bool) -> Vec<BlockId> {
        self.ids_where(|place| {
            place.on_log == on_log && place.copies.iter().any(|copy| copy.unit.0 == unit)
        })
    }

    fn ids_where(&self, holds: impl Fn(&Place) -> bool) -> Vec<BlockId> {
        let places = self.places.borrow();
        let mut ids: Vec<BlockId> =
            places.iter().filter(|(_, place)| holds(place)).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: BlockId = BlockId(5);

    fn place(attempt: u8) -> Place {
        Place { copies: Copies::new(), on_log: false, attempt, is_half: false }
    }

    #[test]
    fn a_later_attempt_replaces_an_earlier_place() {
        let directory = Directory::default();
        assert!(directory.replace(ID, place(0)).is_none());
        assert_eq!(directory.replace(ID, place(1)).map(|before| before.attempt), Some(0));
    }

    #[test]
    #[should_panic(expected = "replaces a later one")]
    fn the_same_attempt_does_not_replace_a_place() {
        let directory = Directory::default();
        directory.insert(ID, place(1));
        directory.replace(ID, place(1));
    }

    #[test]
    #[should_panic(expected = "has a place already")]
    fn a_known_block_is_not_inserted() {
        let directory = Directory::default();
        directory.insert(ID, place(0));
        directory.insert(ID, place(1));
    }

    #[test]
    #[should_panic(expected = "is assigned twice")]
    fn a_known_id_is_not_assigned() {
        let directory = Directory::default();
        directory.insert(ID, place(0));
        directory.reserve_ids(ID.0);
        directory.new_id();
    }
}
