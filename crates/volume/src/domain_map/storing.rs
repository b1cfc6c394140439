//! The map as a checkpoint writes it and recovery reads it.

use super::{DomainMap, HOLE, INHERITED, LOST, UNSET};
use crate::format::leaf::LEAF_UNITS;
use crate::format::root::StoredHalf;
use crate::leaves::{Freshness, LeafOwner};
use softflash_base::cast::index;

impl DomainMap {
    /// Freezes the leaves that have changed; [`take_frozen`](DomainMap::take_frozen) returns each
    /// as it is now.
    pub fn freeze(&mut self) -> Vec<u32> {
        self.leaves.freeze()
    }

    /// The encoded halves of a frozen leaf.
    pub fn take_frozen(&mut self, leaf: u32) -> [Vec<u8>; 2] {
        self.leaves.taken();
        if let Some(saved) = self.saved.remove(&leaf) {
            return saved;
        }
        self.leaves.get_mut(leaf).freshness = Freshness::Clean;
        self.encode(leaf)
    }

    /// The checkpoint of the frozen leaves has failed: they are as changed as before it.
    pub fn thaw(&mut self) {
        self.saved.clear();
        self.leaves.thaw();
    }

    /// Lets the next checkpoint write a leaf, changed or not.
    pub fn touch(&mut self, leaf: u32) {
        self.change(leaf);
    }

    pub(super) fn encode(&self, leaf: u32) -> [Vec<u8>; 2] {
        let first = leaf * LEAF_UNITS;
        [0, 1].map(|half| {
            crate::format::leaf::encode(half, |at| {
                let slot = self.map.physical_of(first + at);
                let has_data = self.map.is_page(slot);
                (slot, if has_data { self.checksums[index(first + at)] } else { 0 })
            })
        })
    }

    /// Gives a leaf to its owner as a root says; `stored` are the slots of its halves.
    pub fn restore_leaf(&mut self, leaf: u32, owner: LeafOwner, stored: Option<[StoredHalf; 2]>) {
        self.leaves.restore(leaf, owner, stored);
        self.grow(self.leaves.len());
    }

    /// Whether an entry can be one of a leaf: a mark, or a slot that exists.
    pub fn is_possible(&self, entry: u32) -> bool {
        self.map.is_page(entry) || [UNSET, HOLE, INHERITED, LOST].contains(&entry)
    }

    /// Sets a possible entry of a leaf that has none there yet.
    pub fn restore(&mut self, leaf: u32, at: u32, slot: u32, checksum: u32) {
        if slot == UNSET {
            return;
        }
        let logical = leaf * LEAF_UNITS + at;
        let has_data = self.map.is_page(slot);
        self.checksums[index(logical)] = checksum;
        self.map.restore(logical, slot);
        let counts = self.leaves.get_mut(leaf);
        *(if has_data { &mut counts.slots } else { &mut counts.marks }) += 1;
    }

    /// Ends recovery: computes the reverse of the map and the valid slots of each block.
    ///
    /// # Errors
    /// A slot that two mapping units have.
    pub fn recovered(&mut self) -> Result<(), u32> {
        self.leaves.list_free();
        self.grow(self.leaves.len());
        self.map.rebuild_reverse()?;
        let blocks = self.geometry.slots() / self.geometry.block_units;
        for block in 0..blocks {
            let slots = self.geometry.slots_of(block);
            let valid = self.map.count_valid(slots.start, slots.end);
            self.blocks.set_valid(block, valid);
        }
        self.used = (0..blocks).map(|block| self.blocks.valid_in(block)).sum();
        self.recovering = false;
        self.count_held();
        Ok(())
    }
}
