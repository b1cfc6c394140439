//! The units with an erase ahead of need that is due, by time: a poll looks at those that have
//! changed, not at all units.

use softflash_base::Time;
use std::collections::BTreeSet;

/// The times at which units are due. Changes are applied at the next [`refresh`](Due::refresh).
pub(crate) struct Due {
    by_time: BTreeSet<(Time, usize)>,
    /// The entry of each unit in `by_time`.
    entries: Vec<Option<Time>>,
    /// Units that may have changed since the last refresh, each once.
    changed: Vec<usize>,
    is_changed: Vec<bool>,
}

impl Due {
    /// All units may have changed.
    pub fn new(units: usize) -> Due {
        Due {
            by_time: BTreeSet::new(),
            entries: vec![None; units],
            changed: (0..units).collect(),
            is_changed: vec![true; units],
        }
    }

    /// A unit may have changed.
    pub fn note_change(&mut self, unit: usize) {
        if !std::mem::replace(&mut self.is_changed[unit], true) {
            self.changed.push(unit);
        }
    }

    /// Applies the changes.
    pub fn refresh(&mut self, due: impl Fn(usize) -> Option<Time>) {
        for unit in self.changed.drain(..) {
            self.is_changed[unit] = false;
            let (entry, now) = (&mut self.entries[unit], due(unit));
            if *entry != now {
                if let Some(before) = entry.take() {
                    self.by_time.remove(&(before, unit));
                }
                self.by_time.extend(now.map(|due| (due, unit)));
                *entry = now;
            }
        }
    }

    /// Checks that no change was missed.
    ///
    /// # Panics
    /// If one was.
    pub fn check(&self, due: impl Fn(usize) -> Option<Time>) {
        for (unit, entry) in self.entries.iter().enumerate() {
            assert!(self.is_changed[unit] || *entry == due(unit), "unit {unit} has changed");
        }
    }

    /// The units that are due, in the order of their places.
    pub fn up_to(&self, now: Time) -> Vec<usize> {
        let mut units: Vec<usize> =
            self.by_time.range(..=(now, usize::MAX)).map(|(_, unit)| *unit).collect();
        units.sort_unstable();
        units
    }

    /// The first time at which a unit is due, with the changes that are not applied yet.
    pub fn first(&self, due: impl Fn(usize) -> Option<Time>) -> Option<Time> {
        let mut unchanged = self.by_time.iter().filter(|(_, unit)| !self.is_changed[*unit]);
        let unchanged = unchanged.next().map(|(due, _)| *due);
        self.changed.iter().filter_map(|unit| due(*unit)).chain(unchanged).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_follow_all_changes() {
        let mut times = [Some(Time(30)), None, Some(Time(20))];
        let mut due = Due::new(3);
        assert_eq!(due.first(|unit| times[unit]), Some(Time(20)));
        due.refresh(|unit| times[unit]);
        assert!(due.up_to(Time(19)).is_empty());
        assert_eq!(due.up_to(Time(20)), [2]);
        assert_eq!(due.up_to(Time(30)), [0, 2]);

        times = [Some(Time(40)), Some(Time(25)), None];
        (0..3).for_each(|unit| due.note_change(unit));
        assert_eq!(due.first(|unit| times[unit]), Some(Time(25)), "before the refresh");
        due.refresh(|unit| times[unit]);
        assert_eq!(due.first(|unit| times[unit]), Some(Time(25)));
        assert_eq!(due.up_to(Time(100)), [0, 1]);
    }
}
