//! The map of a domain: from the mapping units of images to slots on the flash. It has no time and
//! does no I/O; live writes and recovery change it by the same functions.

use crate::format::entry::{Entry, data_seed};
use crate::format::leaf::LEAF_UNITS;
use crate::format::operation::Operation;
use crate::format::pair::PairRecord;
use crate::geometry::Geometry;
use crate::image::{Image, ImageId, Images, Role};
use crate::leaves::{LeafOwner, Leaves};
use held::Held;
use softflash_base::cast::{index, wide};
use softflash_base::checksum::checksum64;
use softflash_base::planted::{self, Bug};
use softflash_mapping::memory::{grow, prefetch};
use softflash_mapping::{Blocks, NONE, PageMap};
use std::collections::HashMap;
use std::ops::Range;

/// The image does not hold the mapping unit; see [`Images`] for where it is looked up then.
pub(crate) const UNSET: u32 = NONE;
/// The mapping unit reads as zeros.
pub(crate) const HOLE: u32 = NONE - 1;
/// Of a snapshot: the mapping unit is that of the parent of its volume.
pub(crate) const INHERITED: u32 = NONE - 2;
/// The flash has lost what the mapping unit holds: reads fail until it is written or discarded.
pub(crate) const LOST: u32 = NONE - 3;
/// Numbers that are marks and no slots.
pub(crate) const MARKS: u32 = 4;

/// A mapping unit that was looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// It reads as zeros.
    Zeros,
    /// Its data are lost. The lower bits of their checksum, where the map has them.
    Lost { checksum: u32 },
    /// Its slot, the volume that it was written as, or one that was promoted since, and the lower
    /// bits of its checksum.
    At { slot: u32, origin: ImageId, checksum: u32 },
}

/// The map of a domain.
pub(crate) struct DomainMap {
    pub images: Images,
    pub leaves: Leaves,
    pub blocks: Blocks,
    map: PageMap,
    /// The lower half of the checksum of each mapping unit that has a slot, in the order of the
    /// leaves: a checkpoint writes them, and recovery reads them, one behind the other.
    checksums: Vec<u32>,
    geometry: Geometry,
    /// Slots that hold data.
    used: u32,
    held: Held,
    /// Of a domain that is one of a pair.
    pub pair: Option<PairRecord>,
    /// Frozen leaves that changed before the checkpoint wrote them, as they were.
    saved: HashMap<u32, [Vec<u8>; 2]>,
    /// Recovery changes the map without its reverse; see [`DomainMap::recovered`].
    recovering: bool,
}

impl DomainMap {
    /// An empty map, for recovery.
    pub fn new(geometry: Geometry) -> DomainMap {
        let blocks = (0..geometry.unit_slots.count()).map(|unit| geometry.blocks_of(unit));
        DomainMap {
            images: Images::default(),
            leaves: Leaves::default(),
            blocks: Blocks::none_free(blocks, geometry.block_units),
            map: PageMap::new(0, geometry.slots()),
            checksums: Vec::new(),
            geometry,
            used: 0,
            held: Held::default(),
            pair: None,
            saved: HashMap::new(),
            recovering: true,
        }
    }

    /// Units have joined the domain: it has more blocks and slots.
    pub fn add_blocks(&mut self) {
        for unit in self.blocks.groups()..self.geometry.unit_slots.count() {
            self.blocks.add_group(self.geometry.blocks_of(unit));
        }
        self.map.grow_physical(self.geometry.slots());
    }

    /// Slots that hold data.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Looks up a mapping unit of an image.
    pub fn find(&self, image: ImageId, lba: u32) -> Found {
        let mut at = Some(image);
        while let Some((id, image)) = at.and_then(|id| Some((id, self.images.get(id)?))) {
            let origin = match image.role {
                Role::Volume { .. } => id,
                Role::Snapshot { of } => of,
            };
            let logical = logical_of(image, lba);
            at = match (self.entry_at(logical), image.role, logical) {
                (HOLE, ..) => None,
                (LOST, _, Some(logical)) => {
                    return Found::Lost { checksum: self.checksums[index(logical)] };
                }
                (INHERITED, ..) => self.images.get(origin).and_then(Image::parent),
                (slot, _, Some(logical)) if slot != UNSET => {
                    let checksum = self.checksums[index(logical)];
                    return Found::At { slot, origin, checksum };
                }
                (_, Role::Volume { parent }, _) => parent,
                (_, Role::Snapshot { of }, _) => Some(image.newer.unwrap_or(of)),
            };
        }
        Found::Zeros
    }

    /// The number of a mapping unit of a volume among all of them, or the one that it will have,
    /// and its slot, if it has one.
    pub fn place(&self, volume: &Image, lba: u32) -> (u32, Option<u32>) {
        let logical = logical_of(volume, lba);
        let slot = self.entry_at(logical);
        let next = || self.leaves.len() * LEAF_UNITS + lba % LEAF_UNITS;
        (logical.unwrap_or_else(next), self.map.is_page(slot).then_some(slot))
    }

    /// Whether a write of a mapping unit takes more space: unless the volume itself holds it, and
    /// no snapshot will keep the old contents.
    pub fn grows(&self, volume: &Image, lba: u32) -> bool {
        let newest = volume.older.and_then(|snapshot| self.images.get(snapshot));
        let will_keep = newest.is_some_and(|snapshot| self.entry(snapshot, lba) == UNSET);
        will_keep || !self.map.is_page(self.entry(volume, lba))
    }

    /// Maps a mapping unit of a volume to a new slot. The newest snapshot takes the old slot,
    /// unless it has one. A volume that was deleted is not mapped.
    pub fn write(&mut self, volume: ImageId, lba: u32, slot: u32, checksum: u64) {
        let before = self.used;
        let Some(logical) = self.logical_to_change(volume, lba) else { return };
        self.detach(logical, UNSET);
        self.attach(logical, slot, low(checksum));
        self.held.changed(volume, before, self.used);
        self.note_changed(volume, lba, 1);
    }

    /// Maps a mapping unit of an image to a new slot of the same data: for recovery, where
    /// collection had moved it.
    pub fn write_moved(&mut self, image: ImageId, lba: u32, slot: u32, checksum: u64) {
        let Some(logical) = self.logical(image, lba) else { return };
        self.detach(logical, UNSET);
        self.attach(logical, slot, low(checksum));
    }

    /// Whether an image shows data with this checksum at a mapping unit, or did before their
    /// superblock was released.
    pub fn shows(&self, image: ImageId, lba: u32, sum: u64) -> bool {
        match self.find(image, lba) {
            Found::Zeros => false,
            Found::At { checksum, .. } | Found::Lost { checksum } => checksum == low(sum),
        }
    }

    /// Lets reads of a mapping unit of a volume fail: its newest data are lost. As with a write, a
    /// snapshot keeps the older data.
    pub fn lose(&mut self, volume: ImageId, lba: u32) {
        let before = self.used;
        let Some(logical) = self.logical_to_change(volume, lba) else { return };
        self.detach(logical, LOST);
        // The map has the checksum of older data.
        self.checksums[index(logical)] = 0;
        self.held.changed(volume, before, self.used);
        self.note_changed(volume, lba, 1);
    }

    /// Lets reads of a mapping unit fail that an image itself holds: for recovery, where the data
    /// that collection had moved are lost.
    pub fn lose_moved(&mut self, image: ImageId, lba: u32) {
        if let Some(logical) = self.logical(image, lba) {
            self.detach(logical, LOST);
        }
    }

    /// Makes a range of a volume read as zeros.
    pub fn discard(&mut self, volume: ImageId, lba: u32, count: u32) {
        self.note_changed(volume, lba, count);
        self.unmap(volume, lba, count);
    }

    fn unmap(&mut self, volume: ImageId, lba: u32, count: u32) {
        let Some(image) = self.images.get(volume) else { return };
        let (mark, before) = (zeros(image), self.used);
        let end = lba.saturating_add(count).min(image.size);
        let mut at = lba;
        while at < end {
            let Some(image) = self.images.get(volume) else { return };
            if mark == UNSET && leaf_of(image, at).is_none() {
                at = (at / LEAF_UNITS + 1).saturating_mul(LEAF_UNITS);
                continue;
            }
            if self.find(volume, at) != Found::Zeros
                && let Some(logical) = self.logical_to_change(volume, at)
            {
                self.detach(logical, mark);
            }
            at += 1;
            if at.is_multiple_of(LEAF_UNITS) || at == end {
                self.free_if_unset(volume, (at - 1) / LEAF_UNITS);
            }
        }
        self.held.changed(volume, before, self.used);
    }

    /// Applies a change of the images, with its effect on the map.
    pub fn apply(&mut self, operation: &Operation) {
        self.note_operation(operation);
        match operation.inner() {
            Operation::Resize { image, size } => {
                let before = self.images.get(*image).map_or(0, |image| image.size);
                self.unmap(*image, *size, before.saturating_sub(*size));
            }
            Operation::Delete { image } => {
                let (volume, before) = (self.volume_of(*image), self.used);
                self.forget(*image);
                self.held.changed(volume, before, self.used);
            }
            Operation::RollBack { image, snapshot } => {
                let before = self.used;
                self.roll_back(*image, *snapshot);
                self.held.changed(*image, before, self.used);
            }
            Operation::Promote { clone, snapshot } => self.promote(*clone, *snapshot),
            _ => {}
        }
        self.images.apply(operation);
        if matches!(operation.inner(), Operation::Promote { .. }) && !self.recovering {
            // Slots went from one volume to another.
            self.count_held();
        }
    }

    /// The mapping unit that a valid slot holds: image and number. `None` if nothing is there.
    pub fn holder(&self, slot: u32) -> Option<(ImageId, u32)> {
        if !self.map.is_valid(slot) {
            return None;
        }
        let logical = self.map.logical_of(slot);
        let LeafOwner { image, position } = self.leaves.get(logical / LEAF_UNITS).owner?;
        Some((image, position * LEAF_UNITS + logical % LEAF_UNITS))
    }

    /// The seed of the checksums of new data of an image.
    pub fn seed_of(&self, image: ImageId, lba: u32) -> u64 {
        data_seed(self.volume_of(image), lba)
    }

    /// The seeds that the checksum of a mapping unit of an image may have: that of its volume, and
    /// of a promoted one those of the volumes that it took data from.
    pub fn seeds_of(&self, image: ImageId, lba: u32) -> impl Iterator<Item = u64> {
        let volume = self.volume_of(image);
        let others = self.images.get(volume).map(|volume| &volume.other_seeds[..]);
        let all = [volume].into_iter().chain(others.unwrap_or_default().iter().copied());
        all.map(move |volume| data_seed(volume, lba))
    }

    /// Whether data fit the lower half of a checksum with one of the seeds of an image.
    pub fn fits(&self, image: ImageId, lba: u32, data: &[u8], checksum: u32) -> bool {
        self.seeds_of(image, lba).any(|seed| low(checksum64(seed, data)) == checksum)
    }

    /// The lower half of the checksum of the data at a valid slot.
    pub fn checksum_at(&self, slot: u32) -> u32 {
        self.checksums[index(self.map.logical_of(slot))]
    }

    /// Prefetches the entry of a mapping unit that is written soon.
    #[inline]
    pub fn prefetch(&self, image: &Image, lba: u32) {
        if let Some(logical) = logical_of(image, lba) {
            self.prefetch_entry(logical);
        }
    }

    /// Prefetches the map's entries for all data of a frame that is replayed.
    pub fn prefetch_all(&self, entries: &[Entry]) {
        for entry in entries {
            if let Entry::Data { image, lba, .. } | Entry::Moved { image, lba, .. } = *entry
                && let Some(image) = self.images.get(image)
            {
                self.prefetch(image, lba);
            }
        }
    }

    /// Prefetches the entry of what a valid slot holds, before that moves.
    #[inline]
    pub fn prefetch_move(&self, slot: u32) {
        self.prefetch_entry(self.map.logical_of(slot));
    }

    #[inline]
    fn prefetch_entry(&self, logical: u32) {
        self.map.prefetch_entry(logical);
        prefetch(&self.checksums, index(logical));
    }

    /// Moves the contents of a valid slot to a new one.
    pub fn relocate(&mut self, from: u32, to: u32) {
        self.change(self.map.logical_of(from) / LEAF_UNITS);
        self.map.relocate(from, to);
        self.blocks.move_valid(self.geometry.block_of(from), self.geometry.block_of(to), 1);
    }

    /// Mapping units of images that are marked as lost, in the order of the leaves.
    pub fn lost(&self) -> impl Iterator<Item = (ImageId, u32)> {
        let marked = self.leaves.numbered().filter(|(_, state)| state.marks > 0);
        let owned = marked.filter_map(|(leaf, state)| Some((leaf, state.owner?)));
        owned.flat_map(move |(leaf, LeafOwner { image, position })| {
            let is_lost = move |at: &u32| self.map.physical_of(leaf * LEAF_UNITS + at) == LOST;
            (0..LEAF_UNITS).filter(is_lost).map(move |at| (image, position * LEAF_UNITS + at))
        })
    }

    /// The first valid slot in `from..end`.
    pub fn next_valid(&self, from: u32, end: u32) -> Option<u32> {
        if from < end { self.map.next_valid(from, end) } else { None }
    }

    /// The slots that an image itself holds in a range of its mapping units.
    pub fn slots_held(&self, image: ImageId, range: Range<u32>) -> impl Iterator<Item = u32> {
        let Range { start, end } = range;
        let leaves = self.images.get(image).map(|image| &image.leaves[..]).unwrap_or_default();
        (0_u32..)
            .zip(leaves)
            .skip(index(start / LEAF_UNITS))
            .take_while(move |(at, _)| at * LEAF_UNITS < end)
            .filter_map(|(at, leaf)| Some((at * LEAF_UNITS, (*leaf)?)))
            .flat_map(move |(first, leaf)| {
                let inside = |lba: u32| lba.saturating_sub(first).min(LEAF_UNITS);
                (inside(start)..inside(end)).map(move |at| leaf * LEAF_UNITS + at)
            })
            .map(|logical| self.map.physical_of(logical))
            .filter(|&entry| self.map.is_page(entry))
    }

    /// Memory of all tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let checksums = wide(self.checksums.capacity() * size_of::<u32>());
        self.map.memory_bytes()
            + self.blocks.memory_bytes()
            + self.leaves.memory_bytes()
            + checksums
    }

    /// Checks that map, reverse, counts and leaves agree; returns the first difference.
    pub fn check(&self) -> Result<(), String> {
        let valid = self.blocks.check_counts(&self.map)?;
        self.map.check(valid)?;
        if valid != u64::from(self.used) {
            return Err(format!("{} slots are counted as used, {valid} are", self.used));
        }
        self.check_held()?;
        for (number, leaf) in self.leaves.numbered() {
            let entries = (0..LEAF_UNITS).map(|at| self.map.physical_of(number * LEAF_UNITS + at));
            let set: Vec<u32> = entries.filter(|&entry| entry != UNSET).collect();
            let slots = set.iter().filter(|&&entry| self.map.is_page(entry)).count();
            if (slots, set.len() - slots) != (leaf.slots.into(), leaf.marks.into()) {
                return Err(format!("leaf {number} is counted wrongly: {leaf:?}"));
            }
            if let Some(LeafOwner { image, position }) = leaf.owner {
                let held =
                    self.images.get(image).and_then(|image| image.leaves.get(index(position)));
                if held != Some(&Some(number)) {
                    return Err(format!("{image} does not hold leaf {number}"));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn entry(&self, image: &Image, lba: u32) -> u32 {
        self.entry_at(logical_of(image, lba))
    }

    #[inline]
    fn entry_at(&self, logical: Option<u32>) -> u32 {
        logical.map_or(UNSET, |logical| self.map.physical_of(logical))
    }

    /// The logical page of a mapping unit whose entry is about to change; first lets the newest
    /// snapshot of a volume keep the entry. `None` beyond the end: of a write that was under way
    /// when the volume became smaller.
    fn logical_to_change(&mut self, image: ImageId, lba: u32) -> Option<u32> {
        let found = self.images.get(image).filter(|image| lba < image.size)?;
        let snapshot = if found.is_volume() { found.older } else { None };
        match (snapshot, logical_of(found, lba)) {
            (None, Some(logical)) => Some(logical),
            (None, None) => self.logical(image, lba),
            (Some(snapshot), _) => {
                self.preserve(image, snapshot, lba);
                self.logical(image, lba)
            }
        }
    }

    /// The logical page of a mapping unit, in a leaf that is added if there is none.
    fn logical(&mut self, image: ImageId, lba: u32) -> Option<u32> {
        let position = lba / LEAF_UNITS;
        let leaves = &mut self.images.get_mut(image)?.leaves;
        let end = leaves.len().max(index(position) + 1);
        leaves.resize(end, None);
        let stored = leaves.get_mut(index(position))?;
        let leaf = match *stored {
            Some(leaf) => leaf,
            None => {
                let leaf = self.leaves.take(LeafOwner { image, position });
                *stored = Some(leaf);
                self.grow(leaf + 1);
                leaf
            }
        };
        Some(leaf * LEAF_UNITS + lba % LEAF_UNITS)
    }

    /// Makes room for the entries of so many leaves.
    pub fn grow(&mut self, leaves: u32) {
        self.map.grow_logical(leaves * LEAF_UNITS);
        grow(&mut self.checksums, 0, index(self.map.logical_pages()));
    }

    /// Lets a snapshot keep the entry of its volume, unless it has one.
    fn preserve(&mut self, volume: ImageId, snapshot: ImageId, lba: u32) {
        let (Some(from), Some(to)) = (self.images.get(volume), self.images.get(snapshot)) else {
            return;
        };
        if self.entry(to, lba) != UNSET {
            return;
        }
        let kept = match (self.entry(from, lba), from.parent()) {
            (UNSET, Some(_)) => INHERITED,
            (UNSET, None) => HOLE,
            (entry, _) => entry,
        };
        let own = logical_of(from, lba);
        let checksum = own.map_or(0, |logical| self.checksums[index(logical)]);
        if let Some(logical) = own.filter(|_| self.map.is_page(kept)) {
            self.detach(logical, UNSET);
        }
        if let Some(logical) = self.logical(snapshot, lba) {
            self.attach(logical, kept, checksum);
        }
    }

    /// Unmaps all of an image that is deleted: the next older snapshot takes the entries that it
    /// lacks.
    fn forget(&mut self, image: ImageId) {
        let Some(forgotten) = self.images.get_mut(image) else { return };
        let leaves = std::mem::take(&mut forgotten.leaves);
        let heir = if forgotten.is_volume() { None } else { forgotten.older };
        for (position, leaf) in (0..).zip(leaves) {
            let Some(leaf) = leaf else { continue };
            self.take_entries(leaf, position, |map, lba, entry, checksum| {
                let inherits = heir
                    .and_then(|heir| map.images.get(heir))
                    .is_some_and(|heir| map.entry(heir, lba) == UNSET);
                let inherits = inherits && !planted::bug(Bug::HeirForgotten);
                if let (true, Some(heir)) = (inherits, heir)
                    && let Some(logical) = map.logical(heir, lba)
                {
                    map.attach(logical, entry, checksum);
                }
            });
        }
    }

    /// Empties and frees a leaf that its image has given up. Passes on what it held: the mapping
    /// unit, its entry and its checksum.
    fn take_entries(
        &mut self,
        leaf: u32,
        position: u32,
        mut pass_on: impl FnMut(&mut DomainMap, u32, u32, u32),
    ) {
        for at in 0..LEAF_UNITS {
            let from = leaf * LEAF_UNITS + at;
            let (entry, checksum) = (self.map.physical_of(from), self.checksums[index(from)]);
            if entry != UNSET {
                self.detach(from, UNSET);
                pass_on(self, position * LEAF_UNITS + at, entry, checksum);
            }
        }
        self.change(leaf);
        self.leaves.give_back(leaf);
    }

    fn free_if_unset(&mut self, image: ImageId, position: u32) {
        let leaves = self.images.get_mut(image).map(|image| &mut image.leaves);
        let Some(stored) = leaves.and_then(|leaves| leaves.get_mut(index(position))) else {
            return;
        };
        let Some(leaf) = *stored else { return };
        let state = self.leaves.get(leaf);
        if state.slots == 0 && state.marks == 0 {
            *stored = None;
            self.change(leaf);
            self.leaves.give_back(leaf);
        }
    }

    /// Notes the change of a leaf, before it happens.
    #[inline]
    fn change(&mut self, leaf: u32) {
        if self.leaves.note_change(leaf) && !planted::bug(Bug::FrozenLeafChanged) {
            let frozen = self.encode(leaf);
            self.saved.insert(leaf, frozen);
        }
    }

    /// Sets an unset entry to a mark, or to a slot of data with this checksum.
    #[inline]
    fn attach(&mut self, logical: u32, entry: u32, checksum: u32) {
        let leaf = logical / LEAF_UNITS;
        assert_eq!(self.map.physical_of(logical), UNSET, "an entry of leaf {leaf} is set twice");
        self.change(leaf);
        self.checksums[index(logical)] = checksum;
        let is_slot = self.map.is_page(entry);
        let counts = self.leaves.get_mut(leaf);
        *(if is_slot { &mut counts.slots } else { &mut counts.marks }) += 1;
        if self.recovering {
            self.map.restore(logical, entry);
        } else if is_slot {
            self.map.put(logical, entry);
            self.blocks.add_valid(self.geometry.block_of(entry));
            self.used += 1;
        } else {
            self.map.mark(logical, entry);
        }
    }

    /// Takes the entry away, if one is set, and leaves a mark or nothing.
    #[inline]
    fn detach(&mut self, logical: u32, mark: u32) {
        let leaf = logical / LEAF_UNITS;
        self.change(leaf);
        let old = self.map.physical_of(logical);
        let counts = self.leaves.get_mut(leaf);
        if self.map.is_page(old) {
            assert!(counts.slots > 0, "leaf {leaf} has a slot that is not counted");
            counts.slots -= 1;
        } else if old != UNSET {
            counts.marks -= 1;
        }
        counts.marks += u16::from(mark != UNSET);
        if self.recovering {
            self.map.restore(logical, mark);
        } else {
            self.map.mark(logical, mark);
            if self.map.is_page(old) {
                self.blocks.remove_valid(self.geometry.block_of(old));
                self.used -= 1;
            }
        }
    }
}

/// The entry of a mapping unit of a volume that reads as zeros.
pub(crate) fn zeros(volume: &Image) -> u32 {
    if volume.parent().is_some() { HOLE } else { UNSET }
}

/// The logical page of a mapping unit, if the image has a leaf for it.
#[inline]
fn logical_of(image: &Image, lba: u32) -> Option<u32> {
    leaf_of(image, lba).map(|leaf| leaf * LEAF_UNITS + lba % LEAF_UNITS)
}

#[inline]
fn leaf_of(image: &Image, lba: u32) -> Option<u32> {
    image.leaves.get(index(lba / LEAF_UNITS)).copied().flatten()
}

/// The part of a checksum that the map keeps.
#[inline]
pub(crate) fn low(checksum: u64) -> u32 {
    softflash_base::cast::low_u32(checksum)
}

mod beyond;
mod changed;
pub(crate) use beyond::Beyond;
mod differences;
pub(crate) use differences::Difference;
mod held;
mod promotion;
mod rolling_back;
mod storing;
#[cfg(test)]
mod tests;
