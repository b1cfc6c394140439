//! The map against a reference that copies everything: each image is a table of its own.

use super::*;
use crate::settings::VolumeSettings;
use crate::unit_slots::SlotMap;
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use std::collections::BTreeMap;

const LBAS: u32 = 3000;

fn geometry() -> Geometry {
    let (block_units, page_units, data_pages) = (512, 1, 511);
    let units = UnitSet::from(0..2);
    let unit_slots = SlotMap::of(&units, None).unwrap();
    Geometry { unit_slots, unit_blocks: 40, block_units, page_units, data_pages }
}

fn created(image: ImageId, name: String, size: u32) -> Operation {
    Operation::Create { image, name, size, settings: VolumeSettings::default() }
}

/// Stands for a slot, of a mapping unit that is lost.
const GONE: u32 = u32::MAX;

/// The contents of all images, by the slots that hold them.
#[derive(Default)]
struct Reference {
    images: BTreeMap<ImageId, BTreeMap<u32, u32>>,
}

struct Pair {
    map: DomainMap,
    reference: Reference,
    free: Vec<u32>,
    names: u32,
}

impl Pair {
    fn new() -> Pair {
        let mut map = DomainMap::new(geometry());
        map.recovered().unwrap();
        let free = (0..geometry().slots()).collect();
        Pair { map, reference: Reference::default(), free, names: 0 }
    }

    fn volumes(&self) -> Vec<ImageId> {
        self.ids(|image| image.is_volume())
    }

    fn ids(&self, which: impl Fn(&Image) -> bool) -> Vec<ImageId> {
        self.map.images.iter().filter(|(_, image)| which(image)).map(|(id, _)| id).collect()
    }

    fn apply(&mut self, operation: Operation) {
        self.map.apply(&operation);
        let images = &mut self.reference.images;
        match operation {
            Operation::Create { image, .. } => {
                images.insert(image, BTreeMap::new());
            }
            Operation::Resize { image, size } => {
                images.get_mut(&image).unwrap().retain(|&lba, _| lba < size);
            }
            Operation::Snapshot { of, image, .. } | Operation::Clone { of, image, .. } => {
                let copy = images[&of].clone();
                images.insert(image, copy);
            }
            Operation::Delete { image } => {
                images.remove(&image);
            }
            Operation::RollBack { image, snapshot } => {
                let copy = images[&snapshot].clone();
                images.insert(image, copy);
            }
            Operation::Set { .. }
            | Operation::Rename { .. }
            | Operation::Promote { .. }
            | Operation::Pair(_)
            | Operation::OfPair { .. } => {}
        }
    }

    fn promote(&mut self, clone: ImageId, snapshot: ImageId) {
        let most = self.map.leaves.held() + self.map.promotion_adds(clone, snapshot);
        self.apply(Operation::Promote { clone, snapshot });
        let held = self.map.leaves.held();
        assert!(held <= most, "{held} leaves, {most} were the most");
    }

    fn write(&mut self, image: ImageId, lba: u32) {
        let slot = self.free.pop().unwrap();
        self.map.write(image, lba, slot, u64::from(slot));
        self.reference.images.get_mut(&image).unwrap().insert(lba, slot);
    }

    fn lose(&mut self, image: ImageId, lba: u32) {
        self.map.lose(image, lba);
        self.reference.images.get_mut(&image).unwrap().insert(lba, GONE);
    }

    fn discard(&mut self, image: ImageId, lba: u32, count: u32) {
        self.map.discard(image, lba, count);
        let contents = self.reference.images.get_mut(&image).unwrap();
        contents.retain(|&at, _| at < lba || at >= lba + count);
    }

    /// One random change.
    fn change(&mut self, rng: &mut Rng) {
        let volumes = self.volumes();
        let next = ImageId(self.map.images.last() + 1);
        self.names += 1;
        let name = format!("{}", self.names);
        let Some(&volume) = volumes.get(index(rng.below(volumes.len().max(1) as u64) as u32))
        else {
            return self.apply(created(next, name, LBAS));
        };
        match rng.below(100) {
            0 if volumes.len() < 4 => {
                self.apply(created(next, name, LBAS));
            }
            1..4 => self.apply(Operation::Snapshot { of: volume, image: next, name }),
            4..6 if volumes.len() < 4 => {
                let snapshots: Vec<_> =
                    self.map.images.snapshots_of(volume).map(|(id, _)| id).collect();
                if let Some(&snapshot) = snapshots.get(rng.below(3) as usize) {
                    self.apply(Operation::Clone { of: snapshot, image: next, name });
                }
            }
            6..9 => {
                let deletable = |(id, image): (ImageId, &Image)| {
                    let free = self.map.images.clones_of(id).next().is_none();
                    (free && (!image.is_volume() || image.older.is_none())).then_some(id)
                };
                let deletable: Vec<ImageId> =
                    self.map.images.iter().filter_map(deletable).collect();
                if !deletable.is_empty() {
                    let image = deletable[rng.below(deletable.len() as u64) as usize];
                    self.apply(Operation::Delete { image });
                }
            }
            20..22 => {
                let newest = self.map.images.get(volume).unwrap().older;
                if let Some(snapshot) = newest {
                    self.apply(Operation::RollBack { image: volume, snapshot });
                }
            }
            22..24 => {
                let parent = self.map.images.get(volume).unwrap().parent();
                if let Some(snapshot) = parent {
                    self.promote(volume, snapshot);
                }
            }
            9 => {
                let size = 1 + rng.below(u64::from(LBAS)) as u32;
                self.apply(Operation::Resize { image: volume, size });
            }
            10..20 => {
                let lba = rng.below(u64::from(LBAS)) as u32;
                self.discard(volume, lba, 1 + rng.below(1500) as u32);
            }
            _ => {
                let size = self.map.images.get(volume).unwrap().size;
                let lba = rng.below(u64::from(size.min(200))) as u32 * (size / size.min(200));
                match rng.chance(0.1) {
                    true => self.lose(volume, lba),
                    false => self.write(volume, lba),
                }
            }
        }
    }

    fn compare(&self) {
        for (&id, contents) in &self.reference.images {
            let size = self.map.images.get(id).unwrap().size;
            for lba in 0..size {
                let found = match self.map.find(id, lba) {
                    Found::Zeros => None,
                    Found::Lost { .. } => Some(GONE),
                    Found::At { slot, checksum, .. } => {
                        assert_eq!(slot, checksum);
                        Some(slot)
                    }
                };
                assert_eq!(found, contents.get(&lba).copied(), "{id} at {lba}");
            }
            for from in [0, 1, size / 3, size - 1, size, LBAS] {
                let beyond: Vec<u32> = contents.range(from..).map(|(&lba, _)| lba).collect();
                let units = beyond.len() as u32;
                let expected = beyond.last().map(|&last| Beyond { units, end: last + 1 });
                assert_eq!(self.map.data_beyond(id, from), expected, "{id} from {from}");
            }
        }
        self.compare_differences();
        self.map.check().unwrap();
    }

    /// The differences of each two images, and of each from zeros, are those of the copies.
    fn compare_differences(&self) {
        let none = BTreeMap::new();
        let bases = self.reference.images.iter().map(|(&id, contents)| (Some(id), contents));
        let bases: Vec<_> = bases.chain([(None, &none)]).collect();
        for (&id, contents) in &self.reference.images {
            let size = self.map.images.get(id).unwrap().size;
            for &(base, before) in &bases {
                let changed = |lba: &u32| contents.get(lba) != before.get(lba);
                let expected: Vec<(u32, bool)> = (0..size)
                    .filter(changed)
                    .map(|lba| (lba, contents.contains_key(&lba)))
                    .collect();
                let (mut found, mut at) = (Vec::new(), 0);
                while let Some(next) = self.map.next_difference(id, base, at, 700) {
                    let Difference { start, count, has_data } = next;
                    assert!(start >= at && (1..=700).contains(&count), "{next:?}");
                    at = start + count;
                    found.extend((start..at).map(|lba| (lba, has_data)));
                }
                assert_eq!(found, expected, "{id} from {base:?}");
            }
        }
    }

    /// Slots that no image holds are free again.
    fn collect(&mut self) {
        let map = &self.map.map;
        self.free = (0..geometry().slots()).filter(|&slot| !map.is_valid(slot)).collect();
    }

    fn relocate_some(&mut self, rng: &mut Rng) {
        self.collect();
        for _ in 0..20 {
            let from = rng.below(u64::from(geometry().slots())) as u32;
            if !self.map.map.is_valid(from) {
                continue;
            }
            let to = self.free.pop().unwrap();
            self.map.relocate(from, to);
            let logical = self.map.map.logical_of(to);
            self.map.checksums[index(logical)] = to;
            for contents in self.reference.images.values_mut() {
                for slot in contents.values_mut().filter(|slot| **slot == from) {
                    *slot = to;
                }
            }
        }
    }
}

/// Writes the map as a checkpoint would, and recovers another from it.
fn recovered_from(frozen: &[(u32, [Vec<u8>; 2])], images: &Images) -> DomainMap {
    let mut map = DomainMap::new(geometry());
    map.images = images.clone();
    for (id, image) in images.iter() {
        for (position, leaf) in (0..).zip(&image.leaves) {
            let Some(leaf) = *leaf else { continue };
            map.restore_leaf(leaf, LeafOwner { image: id, position }, None);
        }
    }
    for (leaf, halves) in frozen {
        if map.leaves.len() <= *leaf || map.leaves.get(*leaf).owner.is_none() {
            continue;
        }
        for (half, bytes) in (0..).zip(halves) {
            crate::format::leaf::decode(half, bytes, |at, slot, checksum| {
                assert!(map.is_possible(slot));
                map.restore(*leaf, at, slot, checksum);
            });
        }
    }
    map.recovered().unwrap();
    map
}

#[test]
fn the_map_agrees_with_copies_of_every_image() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Rng::seeded(seed);
        let mut pair = Pair::new();
        for step in 0..600 {
            pair.change(&mut rng);
            if step % 100 == 99 {
                pair.compare();
                pair.relocate_some(&mut rng);
                pair.compare();
                pair.collect();
            }
        }
    }
}

#[test]
fn a_checkpoint_is_the_map_at_its_freeze_whatever_changes_while_it_is_written() {
    for seed in 0..10 {
        println!("seed {seed}");
        let mut rng = Rng::seeded(1000 + seed);
        let mut pair = Pair::new();
        let mut written: BTreeMap<u32, [Vec<u8>; 2]> = BTreeMap::new();
        for _ in 0..5 {
            (0..100).for_each(|_| pair.change(&mut rng));
            let frozen = pair.map.freeze();
            let images = pair.map.images.clone();
            let contents = pair.reference.images.clone();
            for leaf in frozen {
                written.insert(leaf, pair.map.take_frozen(leaf));
                (0..10).for_each(|_| pair.change(&mut rng));
            }
            let leaves: Vec<_> =
                written.iter().map(|(&leaf, halves)| (leaf, halves.clone())).collect();
            let map = recovered_from(&leaves, &images);
            let reference = Reference { images: contents };
            Pair { map, reference, free: Vec::new(), names: 0 }.compare();
        }
    }
}

#[test]
fn the_slots_that_an_image_holds_are_found_by_ranges() {
    let seed = 7;
    println!("seed {seed}");
    let mut rng = Rng::seeded(seed);
    let mut pair = Pair::new();
    let image = ImageId(1);
    let settings = VolumeSettings::default();
    pair.apply(Operation::Create { image, name: "v".into(), size: 1 << 20, settings });
    for lba in [0, 5, 1023, 1024, 4000, 4096, 9000] {
        pair.write(image, lba);
    }
    let contents = pair.reference.images[&image].clone();
    for _ in 0..500 {
        let start = rng.below(9500) as u32;
        let end = start + rng.below(3000) as u32;
        let found: Vec<u32> = pair.map.slots_held(image, start..end).collect();
        let held: Vec<u32> = contents.range(start..end).map(|(_, &slot)| slot).collect();
        assert_eq!(found, held, "{start}..{end}");
    }
    assert_eq!(pair.map.slots_held(image, 0..u32::MAX).count(), contents.len());
    assert_eq!(pair.map.slots_held(ImageId(9), 0..u32::MAX).count(), 0);
}

#[test]
fn a_write_beyond_a_smaller_size_is_not_mapped() {
    let mut pair = Pair::new();
    let image = ImageId(1);
    pair.apply(created(image, "v".into(), 10));
    pair.apply(Operation::Resize { image, size: 5 });
    pair.map.write(image, 7, 3, 3);
    pair.apply(Operation::Resize { image, size: 10 });
    assert_eq!((pair.map.find(image, 7), pair.map.used()), (Found::Zeros, 0));
}

#[test]
fn a_discard_marks_only_what_the_parent_of_a_clone_holds() {
    let mut pair = Pair::new();
    let (volume, snapshot, clone) = (ImageId(1), ImageId(2), ImageId(3));
    pair.apply(created(volume, "v".into(), 1 << 30));
    pair.write(volume, 5000);
    pair.apply(Operation::Snapshot { of: volume, image: snapshot, name: "s".into() });
    pair.apply(Operation::Clone { of: snapshot, image: clone, name: "c".into() });
    pair.map.discard(clone, 4000, 50_000);
    assert_eq!(pair.map.find(clone, 5000), Found::Zeros);
    assert!(matches!(pair.map.find(volume, 5000), Found::At { .. }));
    let leaves = pair.map.images.get(clone).unwrap().leaves.iter().flatten().count();
    assert_eq!(leaves, 1, "only the leaf of the unit that the parent holds");
    pair.map.check().unwrap();
}

/// Recovery compares moved data with the data that their image shows.
#[test]
fn an_image_shows_its_data_and_a_rollback_brings_those_of_the_snapshot() {
    let mut pair = Pair::new();
    let (volume, snapshot) = (ImageId(1), ImageId(2));
    let (old, new) = (0xa_0000_0001, 0xb_0000_0002);
    pair.apply(created(volume, "v".into(), 10));
    pair.map.write(volume, 7, 3, old);
    assert!(pair.map.shows(volume, 7, old) && !pair.map.shows(volume, 6, old));
    pair.apply(Operation::Snapshot { of: volume, image: snapshot, name: "s".into() });
    pair.map.write(volume, 7, 4, new);
    let shown = |map: &DomainMap| [volume, snapshot].map(|image| map.shows(image, 7, old));
    assert_eq!(shown(&pair.map), [false, true]);
    // Data that had moved are lost, and may be found in a newer frame.
    pair.map.lose_moved(snapshot, 7);
    assert_eq!(shown(&pair.map), [false, true]);
    pair.map.apply(&Operation::RollBack { image: volume, snapshot });
    assert_eq!((shown(&pair.map), pair.map.shows(volume, 7, new)), ([true, true], false));
    // Of newer data that are lost, nothing is known.
    pair.map.lose(volume, 7);
    assert_eq!(shown(&pair.map), [false, true]);
}
