//! Wakes the tasks that collect units, knows which of them rest, and holds the writes of clients
//! to a unit while they are ahead of its collection.

use crate::stream::Stream;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_mapping::Credits;
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The collection of a unit.
#[derive(Default)]
pub(crate) struct OfUnit {
    wake: Notify,
    /// It has found nothing to do since it was woken.
    rests: Cell<bool>,
    /// What clients may write to the unit while its collection works.
    credits: Cell<Credits>,
    /// The unit has left the domain.
    has_ended: Cell<bool>,
}

impl OfUnit {
    fn wake(&self) {
        self.rests.set(false);
        self.wake.notify_one();
    }

    /// Whether the unit has left the domain.
    pub fn has_ended(&self) -> bool {
        self.has_ended.get()
    }

    /// It has nothing to do: clients write as they like.
    pub fn rest(&self) {
        self.rests.set(true);
        if !planted::bug(Bug::HeldWhileCollectionRests) {
            self.credits.take();
        }
    }

    fn change_credits(&self, change: impl FnOnce(&mut Credits)) {
        let mut credits = self.credits.get();
        change(&mut credits);
        self.credits.set(credits);
    }

    /// Waits until it is woken. Where it was woken while it worked, it does not rest.
    pub async fn woken(&self) {
        self.wake.notified().await;
        if !planted::bug(Bug::WokenTakenForResting) {
            self.rests.set(false);
        }
    }
}

/// The collection of all units, by their numbers.
pub(crate) struct Collection(RefCell<Vec<Rc<OfUnit>>>);

impl Collection {
    pub fn new(units: u32) -> Collection {
        Collection(RefCell::new((0..units).map(|_| Rc::default()).collect()))
    }

    /// The collection of a unit, which the task of it keeps.
    pub fn of(&self, unit: u32) -> Rc<OfUnit> {
        Rc::clone(&self.0.borrow()[cast::index(unit)])
    }

    /// A unit has joined the domain with this number.
    pub fn add_unit(&self, unit: u32) {
        let (mut units, unit) = (self.0.borrow_mut(), cast::index(unit));
        let count = units.len().max(unit + 1);
        units.resize_with(count, Rc::default);
        units[unit] = Rc::default();
    }

    /// A unit has left the domain: its collection ends.
    ///
    /// # Panics
    /// If it has left before.
    pub fn end(&self, unit: u32) {
        let of_unit = self.of(unit);
        assert!(!of_unit.has_ended.replace(true), "unit {unit} leaves the domain twice");
        of_unit.wake();
    }

    pub fn wake(&self, unit: u32) {
        self.of(unit).wake();
    }

    pub fn wake_all(&self) {
        self.0.borrow().iter().for_each(|unit| unit.wake());
    }

    /// A superblock of a unit is collected: `valid` mapping units move, and leave room for `room`.
    /// Of the `aim` free superblocks beyond the reserve that collection works for, `free` are left.
    pub fn begin(&self, unit: u32, (valid, room): (u32, u32), (free, aim): (u32, u32)) {
        self.of(unit).change_credits(|credits| credits.victim(valid, room, (free, aim)));
    }

    /// A superblock of a unit moves that leaves no room: clients do not pay for it.
    pub fn begin_levelling(&self, unit: u32) {
        self.of(unit).credits.take();
    }

    /// A frame of so many mapping units is appended in a unit. Returns whether writes that wait may
    /// have become possible.
    pub fn note_frame(&self, unit: u32, stream: Stream, units: u32) -> bool {
        let of_unit = self.of(unit);
        match stream {
            Stream::Host(_) => of_unit.change_credits(|credits| credits.wrote(units)),
            Stream::Collector(_) => of_unit.change_credits(|credits| credits.moved(units)),
            Stream::Map | Stream::Recovery => {}
        }
        matches!(stream, Stream::Collector(_))
    }

    /// Whether clients write nothing more to a unit until its collection has come further.
    pub fn holds(&self, unit: u32) -> bool {
        let of_unit = &self.0.borrow()[cast::index(unit)];
        let works = !of_unit.rests.get() || planted::bug(Bug::HeldWhileCollectionRests);
        works && of_unit.credits.get().owe_more_than(0)
    }

    /// Whether the collection of a unit has nothing to do.
    pub fn rests(&self, unit: u32) -> bool {
        self.0.borrow()[cast::index(unit)].rests.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_collection_that_was_woken_while_it_worked_does_not_rest_before_it_works_again() {
        let collection = Collection::new(1);
        let of_unit = collection.of(0);
        assert!(!collection.rests(0), "it works");
        collection.wake(0);
        of_unit.rest();
        assert_eq!(of_unit.woken().now_or_never(), Some(()));
        assert!(!collection.rests(0), "it works again");
        of_unit.rest();
        assert_eq!(of_unit.woken().now_or_never(), None);
        assert!(collection.rests(0));
    }
}
