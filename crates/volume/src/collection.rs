//! Wakes the tasks that collect units, and knows which of them rest.

use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The collection of a unit.
#[derive(Default)]
pub(crate) struct OfUnit {
    wake: Notify,
    /// It has found nothing to do since it was woken.
    rests: Cell<bool>,
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

    /// It has nothing to do.
    pub fn rest(&self) {
        self.rests.set(true);
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
