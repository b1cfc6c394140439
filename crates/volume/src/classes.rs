//! The classes of a domain's data, by the hints of its volumes.

use crate::image::Images;
use crate::placement::by_hint;
use crate::settings::Lifetime;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The classes in use.
pub(crate) struct Classes {
    most: u8,
    count: Cell<u8>,
    of: RefCell<BTreeMap<Lifetime, u8>>,
    /// The class whose turn it is.
    turn: Cell<u8>,
}

impl Classes {
    /// One class, for all data.
    pub fn new(most: u8) -> Classes {
        Classes { most, count: Cell::new(1), of: RefCell::default(), turn: Cell::new(0) }
    }

    /// Classes that there are at most.
    pub fn most(&self) -> u8 {
        self.most
    }

    /// Classes in use.
    pub fn count(&self) -> u8 {
        self.count.get()
    }

    /// The class of a lifetime.
    #[inline]
    pub fn of(&self, lifetime: Lifetime) -> u8 {
        if self.count.get() == 1 {
            return by_hint::NO_HINT;
        }
        self.of.borrow().get(&lifetime).copied().unwrap_or(by_hint::NO_HINT)
    }

    /// Assigns classes to the hints of these volumes.
    pub fn assign(&self, images: &Images) {
        let volumes = images.iter().filter(|(_, image)| image.is_volume());
        let lifetimes: BTreeSet<Lifetime> =
            volumes.map(|(_, image)| image.settings.lifetime).collect();
        let classes = by_hint::classes(&lifetimes, self.most);
        self.count.set(classes.values().copied().max().unwrap_or(0) + 1);
        self.of.replace(classes);
    }

    /// All that there can be, beginning with the one whose turn it is.
    pub fn in_turn(&self) -> impl Iterator<Item = u8> {
        let (turn, most) = (self.turn.get(), self.most);
        (turn..most).chain(0..turn)
    }

    /// A class has had its turn.
    pub fn served(&self, class: u8) {
        self.turn.set((class + 1) % self.most);
    }
}
