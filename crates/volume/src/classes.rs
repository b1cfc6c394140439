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
    /// Round-robin cursor: the next class.
    cursor: Cell<u8>,
}

impl Classes {
    /// One class, for all data.
    pub fn new(most: u8) -> Classes {
        Classes { most, count: Cell::new(1), of: RefCell::default(), cursor: Cell::new(0) }
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

    /// All that there can be, from the cursor on.
    pub fn round_robin(&self) -> impl Iterator<Item = u8> {
        let (cursor, most) = (self.cursor.get(), self.most);
        (cursor..most).chain(0..cursor)
    }

    /// A class has had its turn: the cursor goes behind it.
    pub fn served(&self, class: u8) {
        self.cursor.set((class + 1) % self.most);
    }
}
