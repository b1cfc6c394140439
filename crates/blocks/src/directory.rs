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
        let id = self.next_id.get();
        self.next_id.set(id + 1);
        BlockId(id)
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

    /// Changes the place of a block; `None` for a block that is not known.
    pub(crate) fn change<T>(&self, id: BlockId, change: impl FnOnce(&mut Place) -> T) -> Option<T> {
        self.places.borrow_mut().get_mut(&id).map(change)
    }

    pub(crate) fn insert(&self, id: BlockId, place: Place) -> Option<Place> {
        self.places.borrow_mut().insert(id, place)
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
