//! The part of a shard's flash that one owner works with.

use crate::pump::Driver;
use softflash_base::{UnitId, UnitSet};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The units of an owner, until it stops. A view has the driver that it was mounted with, its
/// *first* one, and those of the units that have joined.
pub(crate) struct View {
    units: RefCell<UnitSet>,
    stopped: Cell<bool>,
    /// Whether the view uses its first driver: some of its units are there.
    uses_first: Cell<bool>,
    /// Whether the drivers have ever changed: only then do `uses_first` and `joined` matter.
    changed: Cell<bool>,
    joined: RefCell<Vec<Joined>>,
}

/// Units that have joined a view, with their driver.
struct Joined {
    units: UnitSet,
    driver: Rc<Driver>,
}

impl View {
    pub(crate) fn new(units: UnitSet) -> View {
        View {
            units: RefCell::new(units),
            stopped: Cell::new(false),
            uses_first: Cell::new(true),
            changed: Cell::new(false),
            joined: RefCell::default(),
        }
    }

    pub(crate) fn units(&self) -> UnitSet {
        self.units.borrow().clone()
    }

    pub(crate) fn contains(&self, unit: u16) -> bool {
        self.units.borrow().contains(unit)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Stops it; true the first time.
    pub(crate) fn stop(&self) -> bool {
        !self.stopped.replace(true)
    }

    /// Whether the drivers have ever changed.
    #[inline]
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.get()
    }

    /// The driver of a unit that has joined.
    #[inline]
    pub(crate) fn joined_driver(&self, unit: UnitId) -> Option<Rc<Driver>> {
        if !self.changed.get() {
            return None;
        }
        let joined = self.joined.borrow();
        joined.iter().find(|of| of.units.contains(unit.0)).map(|of| Rc::clone(&of.driver))
    }

    /// The drivers that the view uses; `first` is its first one.
    pub(crate) fn drivers(&self, first: &Rc<Driver>) -> Vec<Rc<Driver>> {
        let joined = self.joined.borrow();
        let first = self.uses_first.get().then_some(first);
        first.into_iter().chain(joined.iter().map(|of| &of.driver)).cloned().collect()
    }

    /// Takes a unit out. Returns its driver if the view has no other unit there.
    pub(crate) fn take_out(&self, first: &Rc<Driver>, unit: u16) -> Option<Rc<Driver>> {
        let remaining = without(&self.units.borrow(), unit);
        self.units.replace(remaining);
        let mut joined = self.joined.borrow_mut();
        if let Some(place) = joined.iter().position(|of| of.units.contains(unit)) {
            let of = &mut joined[place];
            of.units = without(&of.units, unit);
            return of.units.is_empty().then(|| joined.remove(place).driver);
        }
        let in_joined = |unit| joined.iter().any(|of| of.units.contains(unit));
        let is_last = self.units.borrow().iter().all(in_joined);
        self.changed.set(self.changed.get() || is_last);
        (is_last && self.uses_first.replace(false)).then(|| Rc::clone(first))
    }

    /// Takes over all units of another view, with their drivers; `first` is the first one of that
    /// view.
    pub(crate) fn take_over(&self, other: &View, first: Rc<Driver>) {
        let units = other.units.take();
        let mut joined = other.joined.take();
        let has_joined = |unit: &u16| joined.iter().any(|of| of.units.contains(*unit));
        let in_first: UnitSet = units.iter().filter(|unit| !has_joined(unit)).collect();
        if other.uses_first.replace(false) {
            joined.push(Joined { units: in_first, driver: first });
        }
        let all = self.units.borrow().iter().chain(&units).collect();
        self.units.replace(all);
        self.joined.borrow_mut().append(&mut joined);
        self.changed.set(true);
        other.changed.set(true);
    }
}

fn without(units: &UnitSet, unit: u16) -> UnitSet {
    units.iter().filter(|other| *other != unit).collect()
}
