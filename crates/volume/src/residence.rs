//! Volumes that are on the move from one domain to another: those that a domain holds and that are
//! not its own, and what clients write to those that are being copied.

use crate::image::ImageId;
use crate::unit_ranges::UnitRanges;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The most ranges that are kept; about 4 MB of memory.
const MOST_RANGES: usize = 65_536;

/// By how much noted ranges become coarser when they are too many.
const COARSER: u32 = 4;

/// What a domain knows of volumes on the move. Nothing of it is on flash.
#[derive(Default)]
pub(crate) struct Residence {
    /// Names of volumes that another domain serves.
    guests: RefCell<BTreeSet<String>>,
    watched: RefCell<Option<Watched>>,
}

/// Volumes that are being copied.
struct Watched {
    /// With their sizes.
    volumes: BTreeMap<ImageId, u32>,
    /// What clients have changed since, and the copy lacks, and perhaps more around it.
    changed: UnitRanges,
    /// Ranges begin and end at multiples of it, or at the end of their volume.
    grain: u32,
}

impl Watched {
    fn note(&mut self, volume: ImageId, range: Range<u32>) {
        let Some(&size) = self.volumes.get(&volume) else { return };
        self.changed.insert(volume, around(range, self.grain, size));
        while self.changed.len() > MOST_RANGES {
            self.grain = self.grain.saturating_mul(COARSER);
            let (grain, volumes) = (self.grain, &self.volumes);
            let before = std::mem::take(&mut self.changed);
            for (volume, range) in before.iter() {
                let size = volumes.get(&volume).copied().unwrap_or_default();
                self.changed.insert(volume, around(range, grain, size));
            }
        }
    }
}

/// The range with all of the mapping units of a grain that it touches, as far as the volume goes.
fn around(range: Range<u32>, grain: u32, size: u32) -> Range<u32> {
    let start = range.start / grain * grain;
    let end = range.end.checked_next_multiple_of(grain).unwrap_or(u32::MAX);
    start..end.min(size.max(range.end))
}

impl Residence {
    /// Whether a volume of this name is not the domain's own.
    pub fn is_guest(&self, name: &str) -> bool {
        self.guests.borrow().contains(name)
    }

    /// A range of a volume has changed, or may have. It comes behind the change: a copy that has
    /// read the range before is made again.
    pub fn note(&self, volume: ImageId, range: Range<u32>) {
        if let Some(watched) = self.watched.borrow_mut().as_mut() {
            watched.note(volume, range);
        }
    }

    /// Names the volumes that are not the domain's own.
    pub fn set_guests(&self, names: BTreeSet<String>) {
        self.guests.replace(names);
    }

    /// From now on the changes of these volumes, with their sizes, are kept in mind; of none, those
    /// of before are forgotten.
    pub fn watch(&self, volumes: Option<BTreeMap<ImageId, u32>>) {
        let watched = |volumes| Watched { volumes, changed: UnitRanges::default(), grain: 1 };
        self.watched.replace(volumes.map(watched));
    }

    /// Mapping units that have changed, and nobody has taken.
    pub fn changed_units(&self) -> u64 {
        self.watched.borrow().as_ref().map_or(0, |watched| watched.changed.units())
    }

    /// Takes the first range of a volume that has changed, of at most so many mapping units.
    pub fn take(&self, volume: ImageId, most: u32) -> Option<Range<u32>> {
        let mut watched = self.watched.borrow_mut();
        let Watched { changed, grain, .. } = watched.as_mut()?;
        let Range { start, end } = changed.first_in(volume, &(0..u32::MAX))?;
        let taken = start..end.min(start.saturating_add(most));
        changed.remove(volume, &taken);
        if changed.is_empty() {
            *grain = 1;
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_watched_volumes_are_taken_once_and_in_parts() {
        let residence = Residence::default();
        let (watched, other) = (ImageId(1), ImageId(2));
        residence.note(watched, 0..10);
        assert_eq!(residence.take(watched, 4), None, "nothing is watched yet");
        residence.watch(Some(BTreeMap::from([(watched, 200)])));
        residence.note(watched, 3..9);
        residence.note(watched, 100..101);
        residence.note(other, 5..6);
        assert_eq!(residence.changed_units(), 7);
        assert_eq!(residence.take(watched, 4), Some(3..7));
        residence.note(watched, 4..5);
        assert_eq!(residence.take(watched, 4), Some(4..5), "it has changed again");
        assert_eq!(residence.take(watched, 4), Some(7..9));
        assert_eq!(residence.take(watched, 4), Some(100..101));
        assert_eq!((residence.take(watched, 4), residence.take(other, 4)), (None, None));
        residence.note(watched, 0..2);
        residence.watch(None);
        assert_eq!((residence.changed_units(), residence.take(watched, 4)), (0, None));
    }

    #[test]
    fn many_changes_are_kept_in_few_ranges_that_have_them_all() {
        let residence = Residence::default();
        let (first, second) = (ImageId(1), ImageId(2));
        let count = 8 * MOST_RANGES as u32;
        let sizes = [u32::MAX, 9 * count + 3];
        residence.watch(Some(BTreeMap::from([(first, sizes[0]), (second, sizes[1])])));
        let noted = |n: u32| if n.is_multiple_of(2) { (first, 4000 * n) } else { (second, 9 * n) };
        for n in 0..count {
            let (volume, lba) = noted(n);
            residence.note(volume, lba..lba + 1);
            let watched = residence.watched.borrow();
            assert!(watched.as_ref().unwrap().changed.len() <= MOST_RANGES, "after {n}");
        }
        residence.note(second, sizes[1] - 1..sizes[1]);
        let mut taken = UnitRanges::default();
        for (volume, size) in [(first, sizes[0]), (second, sizes[1])] {
            while let Some(range) = residence.take(volume, 1 << 20) {
                assert!(range.end <= size, "{range:?} is beyond the end");
                taken.insert(volume, range);
            }
        }
        assert!((0..count).map(noted).all(|(volume, lba)| taken.contains(volume, lba)));
        assert!(taken.contains(second, sizes[1] - 1));
        residence.note(first, 5..6);
        assert_eq!(residence.take(first, 9), Some(5..6), "few changes are exact again");
    }
}
