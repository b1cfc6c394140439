//! Volumes that are on the move from one domain to another: those that a domain holds and that are
//! not its own, and what clients write to those that are being copied.

use crate::image::ImageId;
use crate::unit_ranges::UnitRanges;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// What a domain knows of volumes on the move. Nothing of it is on flash.
#[derive(Default)]
pub(crate) struct Residence {
    /// Names of volumes that another domain serves.
    guests: RefCell<BTreeSet<String>>,
    watched: RefCell<Option<Watched>>,
}

/// Volumes that are being copied.
struct Watched {
    volumes: BTreeSet<ImageId>,
    /// What clients have changed since, and the copy lacks.
    changed: UnitRanges,
}

impl Residence {
    /// Whether a volume of this name is not the domain's own.
    pub fn is_guest(&self, name: &str) -> bool {
        self.guests.borrow().contains(name)
    }

    /// A range of a volume has changed, or may have. It comes behind the change: a copy that has
    /// read the range before is made again.
    pub fn note(&self, volume: ImageId, range: Range<u32>) {
        if let Some(watched) = self.watched.borrow_mut().as_mut()
            && watched.volumes.contains(&volume)
        {
            watched.changed.insert(volume, range);
        }
    }

    /// Names the volumes that are not the domain's own.
    pub fn set_guests(&self, names: BTreeSet<String>) {
        self.guests.replace(names);
    }

    /// From now on the changes of these volumes are kept in mind; of none, those of before are
    /// forgotten.
    pub fn watch(&self, volumes: Option<BTreeSet<ImageId>>) {
        let watched = |volumes| Watched { volumes, changed: UnitRanges::default() };
        self.watched.replace(volumes.map(watched));
    }

    /// Mapping units that have changed, and nobody has taken.
    pub fn changed_units(&self) -> u64 {
        self.watched.borrow().as_ref().map_or(0, |watched| watched.changed.units())
    }

    /// Takes the first range of a volume that has changed, of at most so many mapping units.
    pub fn take(&self, volume: ImageId, most: u32) -> Option<Range<u32>> {
        let mut watched = self.watched.borrow_mut();
        let changed = &mut watched.as_mut()?.changed;
        let Range { start, end } = changed.first_in(volume, &(0..u32::MAX))?;
        let taken = start..end.min(start.saturating_add(most));
        changed.remove(volume, &taken);
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
        residence.watch(Some(BTreeSet::from([watched])));
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
}
