//! SCAN cursors: a bounded table from numbers to positions in the key space.
//!
//! An unknown cursor, evicted or from before a restart, restarts from the beginning. So an
//! iteration may return keys twice, and never misses a key that exists throughout. This requires
//! that a number never means two positions: numbers increase from one that depends on the start
//! time.

use crate::shared::lock::lock;
use bytes::Bytes;
use softflash_base::SliceId;
use std::collections::VecDeque;
use std::sync::Mutex;

/// Maximum number of cursors.
const MAX_CURSORS: usize = 1 << 16;
/// Maximum bytes of their keys.
const MAX_KEY_BYTES: usize = 16 << 20;

/// Position at which an iteration continues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Place {
    pub slice: SliceId,
    pub after: Option<Bytes>,
}

#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Table>);

#[derive(Debug)]
struct Table {
    /// The number of the oldest cursor; the following cursors have consecutive numbers.
    oldest: u64,
    places: VecDeque<Place>,
    key_bytes: usize,
}

impl Cursors {
    /// A table whose numbers increase from one that no earlier run can have reached: a run would
    /// have to create a million cursors per millisecond.
    pub fn new(started_at_ms: u64) -> Cursors {
        let oldest = (started_at_ms << 20).max(1);
        Cursors(Mutex::new(Table { oldest, places: VecDeque::new(), key_bytes: 0 }))
    }

    /// Creates a cursor for a position.
    pub fn add(&self, place: Place) -> u64 {
        let mut table = lock(&self.0);
        table.key_bytes += place.after.as_ref().map_or(0, Bytes::len);
        table.places.push_back(place);
        let cursor = table.oldest + table.places.len() as u64 - 1;
        while table.places.len() > MAX_CURSORS
            || (table.key_bytes > MAX_KEY_BYTES && table.places.len() > 1)
        {
            let gone = table.places.pop_front().and_then(|place| place.after);
            table.key_bytes -= gone.map_or(0, |key| key.len());
            table.oldest += 1;
        }
        cursor
    }

    /// The position of a cursor: the beginning for 0 and for an unknown one.
    pub fn place(&self, cursor: u64) -> Place {
        let table = lock(&self.0);
        let index = cursor.checked_sub(table.oldest).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| table.places.get(index)).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> Place {
        Place { slice: SliceId(3), after: Some(format!("key{number}").into()) }
    }

    #[test]
    fn old_cursors_give_way_and_start_again() {
        let cursors = Cursors::new(1_700_000_000_000);
        let given: Vec<u64> =
            (0..MAX_CURSORS + 10).map(|number| cursors.add(place(number))).collect();
        assert_eq!(cursors.place(given[9]), Place::default(), "evicted");
        assert_eq!(cursors.place(given[10]), place(10));
        assert_eq!(cursors.place(given[MAX_CURSORS + 9]), place(MAX_CURSORS + 9));
        assert_eq!(cursors.place(0), Place::default());
        assert_eq!(cursors.place(u64::MAX), Place::default());
    }

    #[test]
    fn cursors_of_an_earlier_run_are_not_known() {
        let earlier = Cursors::new(1_700_000_000_000);
        let cursor = (0..1000).map(|number| earlier.add(place(number))).last().unwrap();
        let later = Cursors::new(1_700_000_000_001);
        (0..1000).for_each(|number| {
            later.add(place(number));
        });
        assert_eq!(later.place(cursor), Place::default());
    }

    #[test]
    fn long_keys_do_not_fill_the_memory() {
        let cursors = Cursors::new(1);
        let long = Place { slice: SliceId(0), after: Some(vec![b'k'; 64 << 10].into()) };
        let first = cursors.add(long.clone());
        (0..300).for_each(|_| {
            cursors.add(long.clone());
        });
        assert_eq!(cursors.place(first), Place::default());
        assert!(lock(&cursors.0).key_bytes <= MAX_KEY_BYTES);
    }
}
