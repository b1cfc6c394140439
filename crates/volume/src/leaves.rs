//! The leaves of the map: the image of each, the number of its entries, and whether a checkpoint
//! has still to write it.

use crate::format::root::StoredHalf;
use crate::image::ImageId;
use softflash_base::cast::index;

/// The position of a leaf: an image, and the leaf's number there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeafOwner {
    pub image: ImageId,
    pub position: u32,
}

/// Whether the leaf on the flash is as it is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Freshness {
    /// The last checkpoint wrote it, or it was never used.
    #[default]
    Clean,
    /// It has changed since.
    Changed,
    /// A checkpoint will write it, as it is now.
    Frozen,
}

/// One leaf.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Leaf {
    pub owner: Option<LeafOwner>,
    /// Entries that are slots.
    pub slots: u16,
    /// Entries that are marks.
    pub marks: u16,
    pub freshness: Freshness,
    /// Its halves on the flash, for the last checkpoint.
    pub stored: Option<[StoredHalf; 2]>,
}

/// All leaves.
#[derive(Debug, Default)]
pub(crate) struct Leaves {
    leaves: Vec<Leaf>,
    free: Vec<u32>,
    /// Leaves that have changed since they were frozen last.
    changed: Vec<u32>,
    /// Leaves of the last freeze.
    frozen: Vec<u32>,
    /// Those of them that the checkpoint has not taken yet.
    frozen_left: u32,
}

impl Leaves {
    /// Leaves ever used.
    pub fn len(&self) -> u32 {
        softflash_base::cast::saturating_u32(self.leaves.len())
    }

    /// Leaves that images hold.
    pub fn held(&self) -> u32 {
        self.len() - softflash_base::cast::saturating_u32(self.free.len())
    }

    /// Leaves that a checkpoint has still to write.
    pub fn unwritten(&self) -> u32 {
        softflash_base::cast::saturating_u32(self.changed.len()) + self.frozen_left
    }

    pub fn get(&self, leaf: u32) -> &Leaf {
        &self.leaves[index(leaf)]
    }

    pub fn get_mut(&mut self, leaf: u32) -> &mut Leaf {
        &mut self.leaves[index(leaf)]
    }

    /// Whether an image holds a leaf.
    pub fn is_held(&self, leaf: u32) -> bool {
        self.leaves.get(index(leaf)).is_some_and(|leaf| leaf.owner.is_some())
    }

    pub fn numbered(&self) -> impl Iterator<Item = (u32, &Leaf)> {
        (0..).zip(&self.leaves)
    }

    /// Gives an unused leaf to an owner.
    pub fn take(&mut self, owner: LeafOwner) -> u32 {
        let leaf = self.free.pop().unwrap_or_else(|| {
            self.leaves.push(Leaf::default());
            self.len() - 1
        });
        let before = self.get_mut(leaf).owner.replace(owner);
        assert_eq!(before, None, "leaf {leaf} has two owners");
        leaf
    }

    /// Takes a leaf from its owner. Its entries must be unset.
    pub fn give_back(&mut self, leaf: u32) {
        let Leaf { owner, slots, marks, .. } = self.get_mut(leaf);
        assert!(owner.is_some(), "leaf {leaf} is given back twice");
        assert!(*slots == 0 && *marks == 0, "leaf {leaf} is given back with {slots} slots");
        *owner = None;
        self.free.push(leaf);
    }

    /// Notes a change of a leaf. Returns whether it was frozen: then the caller saves it first.
    #[inline]
    pub fn note_change(&mut self, leaf: u32) -> bool {
        let freshness = &mut self.leaves[index(leaf)].freshness;
        match std::mem::replace(freshness, Freshness::Changed) {
            Freshness::Changed => false,
            before => {
                self.changed.push(leaf);
                before == Freshness::Frozen
            }
        }
    }

    /// Freezes the leaves that have changed; returns them.
    pub fn freeze(&mut self) -> Vec<u32> {
        let frozen = std::mem::take(&mut self.changed);
        for &leaf in &frozen {
            self.get_mut(leaf).freshness = Freshness::Frozen;
        }
        self.frozen.clone_from(&frozen);
        self.frozen_left = softflash_base::cast::saturating_u32(frozen.len());
        frozen
    }

    /// A checkpoint writes a frozen leaf.
    ///
    /// # Panics
    /// If it has written all of them.
    pub fn taken(&mut self) {
        assert!(self.frozen_left > 0, "a checkpoint writes more leaves than were frozen");
        self.frozen_left -= 1;
    }

    /// Makes the leaves of the last freeze changed again.
    pub fn thaw(&mut self) {
        self.frozen_left = 0;
        for leaf in std::mem::take(&mut self.frozen) {
            let freshness = &mut self.leaves[index(leaf)].freshness;
            if std::mem::replace(freshness, Freshness::Changed) != Freshness::Changed {
                self.changed.push(leaf);
            }
        }
    }

    /// Restores the leaves of a recovered root.
    pub fn restore(&mut self, leaf: u32, owner: LeafOwner, stored: Option<[StoredHalf; 2]>) {
        let end = self.leaves.len().max(index(leaf) + 1);
        self.leaves.resize(end, Leaf::default());
        *self.get_mut(leaf) = Leaf { owner: Some(owner), stored, ..Leaf::default() };
    }

    /// Memory of the list, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        softflash_base::cast::wide(self.leaves.capacity() * size_of::<Leaf>())
    }

    /// Computes the list of unused leaves, after the last [`restore`](Leaves::restore).
    pub fn list_free(&mut self) {
        let unused = self.numbered().filter(|(_, leaf)| leaf.owner.is_none());
        self.free = unused.map(|(leaf, _)| leaf).collect();
    }
}
