//! A clone takes the place of the volume that it was made from.
//!
//! The snapshot of the clone, and the older ones, become snapshots of the clone: what they do not
//! hold is then found in the clone and no longer in the former parent. So what both share goes over
//! to the clone, and the former parent finds it in the snapshot, as clones do. Only entries of the
//! map move; slots that moved keep checksums that are bound to the former parent.
//!
//! An image that inherits stays one that inherits in all older ones: a volume that has a mapping
//! unit of its own never inherits it again while a snapshot has it. So what is inherited at a
//! mapping unit is held in one place, the newest image that inherits it.

use super::{DomainMap, HOLE, INHERITED, UNSET};
use crate::format::leaf::LEAF_UNITS;
use crate::image::{ImageId, Images};
use crate::leaves::LeafOwner;
use softflash_base::cast::{index, saturating_u32};
use softflash_base::planted::{self, Bug};

/// The images whose entries a promotion changes.
struct Family {
    /// The snapshot that changes hands; the newer ones of the former parent, the oldest first; the
    /// former parent; the snapshots of the clone, the oldest first; the clone.
    images: Vec<ImageId>,
    /// The place of the former parent in the list.
    former: usize,
    /// The former parent is a clone itself.
    has_parent: bool,
}

impl Family {
    fn of(images: &Images, clone: ImageId, snapshot: ImageId) -> Option<Family> {
        let former = images.parent_to_replace(clone, snapshot)?;
        let newest_first = |volume: ImageId| images.snapshots_of(volume).map(|(id, _)| id);
        let newer: Vec<ImageId> = newest_first(former).take_while(|&id| id != snapshot).collect();
        let own: Vec<ImageId> = newest_first(clone).collect();
        let stay = [snapshot].into_iter().chain(newer.into_iter().rev()).chain([former]);
        let mut all: Vec<ImageId> = stay.collect();
        let former_at = all.len() - 1;
        all.extend(own.into_iter().rev().chain([clone]));
        let has_parent = images.get(former)?.parent().is_some();
        Some(Family { images: all, former: former_at, has_parent })
    }

    /// The place of the clone in the list.
    fn clone_at(&self) -> usize {
        self.images.len() - 1
    }
}

impl DomainMap {
    /// Moves what a clone shares with its snapshot to the clone. Without effect unless the clone
    /// was made from the snapshot.
    pub(super) fn promote(&mut self, clone: ImageId, snapshot: ImageId) {
        let Some(family) = Family::of(&self.images, clone, snapshot) else { return };
        for position in 0..self.groups(&family) {
            if self.pass_leaf(&family, position) {
                continue;
            }
            let mut group = Group::of(self, &family, position);
            for at in 0..LEAF_UNITS {
                self.promote_unit(&family, &mut group, at);
            }
            for &image in &family.images {
                self.free_if_unset(image, position);
            }
        }
    }

    /// The most leaves that a promotion adds to the map.
    pub fn promotion_adds(&self, clone: ImageId, snapshot: ImageId) -> u32 {
        let Some(family) = Family::of(&self.images, clone, snapshot) else { return 0 };
        let added = |position: u32| {
            let leaves: Vec<bool> =
                family.images.iter().map(|&id| self.leaf_at(id, position).is_some()).collect();
            let alone = leaves[family.former] && leaves.iter().filter(|&&has| has).count() == 1;
            match alone || !leaves.contains(&true) {
                true => 0,
                // A unit gets an entry in the snapshot, in the former parent, and in the clone or
                // one of its snapshots that has a leaf already.
                false => [0, family.former, family.clone_at()]
                    .into_iter()
                    .map(|at| u32::from(!leaves[at]))
                    .sum(),
            }
        };
        (0..self.groups(&family)).map(added).fold(0, u32::saturating_add)
    }

    /// The groups of mapping units in which something of a family is mapped.
    fn groups(&self, family: &Family) -> u32 {
        let images = family.images.iter().filter_map(|&id| self.images.get(id));
        saturating_u32(images.map(|image| image.leaves.len()).max().unwrap_or(0))
    }

    fn leaf_at(&self, image: ImageId, position: u32) -> Option<u32> {
        self.images.get(image)?.leaves.get(index(position)).copied().flatten()
    }

    /// Gives a leaf of the former parent to the clone as it is, where no other image of the family
    /// has one: all of it is shared. Returns whether nothing is left to do in the group.
    fn pass_leaf(&mut self, family: &Family, position: u32) -> bool {
        let Family { images, former, .. } = family;
        let others = (0..).zip(images).filter(|(at, _)| at != former);
        if others.into_iter().any(|(_, &id)| self.leaf_at(id, position).is_some()) {
            return false;
        }
        let Some(leaf) = self.leaf_at(images[*former], position) else { return true };
        if let Some(image) = self.images.get_mut(images[*former]) {
            image.leaves[index(position)] = None;
        }
        let clone = images[family.clone_at()];
        if let Some(image) = self.images.get_mut(clone) {
            let end = image.leaves.len().max(index(position) + 1);
            image.leaves.resize(end, None);
            image.leaves[index(position)] = Some(leaf);
        }
        let new = LeafOwner { image: clone, position };
        let before = self.leaves.get_mut(leaf).owner.replace(new);
        let former = LeafOwner { image: images[*former], position };
        assert_eq!(before, Some(former), "leaf {leaf} changes hands");
        true
    }

    fn promote_unit(&mut self, family: &Family, group: &mut Group, unit: u32) {
        let (former, clone) = (family.former, family.clone_at());
        // What the snapshot shows, and where that is.
        let holder = (0..=former).find(|&at| group.entry(self, at, unit) != UNSET);
        let value = holder.map_or(UNSET, |at| group.entry(self, at, unit));
        let is_zero = value == HOLE || value == UNSET && !family.has_parent;
        let is_own = ![UNSET, HOLE, INHERITED].contains(&value);
        // Zeros of a volume without parent, which gets one. Also where the snapshot shows zeros,
        // too: a newer one may show data, and what is inherited is so in all older images.
        let shows_zeros = !family.has_parent && group.entry(self, former, unit) == UNSET;
        if holder.is_some() && shows_zeros && !planted::bug(Bug::FormerParentSeesMore) {
            group.put(self, former, unit, (HOLE, 0));
        }
        // The newest image of the clone that shows what the snapshot does.
        let heir = (former + 1..=clone).rev().find(|&at| {
            let entry = group.entry(self, at, unit);
            entry == INHERITED || entry == UNSET && at == clone
        });
        let mut checksum = 0;
        if let Some(at) = holder.filter(|_| is_own) {
            checksum = group.checksum(self, at, unit);
            // Of the former parent, or a newer snapshot of it: found in the snapshot from now on.
            let left = if at == 0 || at == former { UNSET } else { INHERITED };
            group.put(self, at, unit, (left, 0));
        }
        if let Some(heir) = heir {
            group.put(self, 0, unit, (UNSET, 0));
            for at in former + 1..heir {
                if group.entry(self, at, unit) == INHERITED {
                    group.put(self, at, unit, (UNSET, 0));
                }
            }
        }
        let at = heir.unwrap_or(0);
        let entry = match (is_own, is_zero) {
            (true, _) => value,
            (_, true) if at == clone && !family.has_parent => UNSET,
            (_, true) => HOLE,
            _ if at == clone => UNSET,
            _ => INHERITED,
        };
        group.put(self, at, unit, (entry, checksum));
        if !family.has_parent && group.entry(self, clone, unit) == HOLE {
            // A volume without parent needs no mark for zeros.
            group.put(self, clone, unit, (UNSET, 0));
        }
    }
}

/// The leaves of a family for a group of mapping units.
struct Group<'a> {
    images: &'a [ImageId],
    position: u32,
    leaves: Vec<Option<u32>>,
}

impl<'a> Group<'a> {
    fn of(map: &DomainMap, family: &'a Family, position: u32) -> Group<'a> {
        let images = &family.images[..];
        let leaves = images.iter().map(|&image| map.leaf_at(image, position)).collect();
        Group { images, position, leaves }
    }

    fn entry(&self, map: &DomainMap, at: usize, unit: u32) -> u32 {
        self.leaves[at].map_or(UNSET, |leaf| map.map.physical_of(leaf * LEAF_UNITS + unit))
    }

    fn checksum(&self, map: &DomainMap, at: usize, unit: u32) -> u32 {
        self.leaves[at].map_or(0, |leaf| map.checksums[index(leaf * LEAF_UNITS + unit)])
    }

    /// Replaces an entry, if it is another one, by one with the checksum of its data.
    fn put(&mut self, map: &mut DomainMap, at: usize, unit: u32, (entry, checksum): (u32, u32)) {
        if self.entry(map, at, unit) == entry {
            return;
        }
        map.put(self.images[at], self.position * LEAF_UNITS + unit, entry, checksum);
        self.leaves[at] = map.leaf_at(self.images[at], self.position);
    }
}
