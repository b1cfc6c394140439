//! The classes of a domain's data, by the hints of its volumes.

pub(crate) mod numbers;
pub(crate) mod predicted;

use crate::image::Images;
use crate::settings::Lifetime;
use numbers::NO_HINT;
use predicted::Predicted;
use softflash_ftl::LifetimeClass;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// The classes in use.
pub(crate) struct Classes {
    most: u8,
    count: Cell<u8>,
    of: RefCell<BTreeMap<Lifetime, u8>>,
    /// What is known about the lifetime of the data of each class.
    lifetimes: RefCell<Vec<LifetimeClass>>,
    /// Round-robin cursor: the next class.
    cursor: Cell<u8>,
    predicted: Option<Predicted>,
}

impl Classes {
    /// One class, for all data without hints; `predicted` divides those.
    pub fn new(most: u8, predicted: Option<Predicted>) -> Classes {
        Classes {
            most,
            count: Cell::new(1),
            of: RefCell::default(),
            lifetimes: RefCell::default(),
            cursor: Cell::new(0),
            predicted,
        }
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
            return NO_HINT;
        }
        self.of.borrow().get(&lifetime).copied().unwrap_or(NO_HINT)
    }

    /// The class of a write to a volume of this lifetime, whose request asks for another one unless
    /// it is unknown: of the classes in use the one whose data live about as long.
    #[inline]
    pub fn of_write(&self, volume: Lifetime, asked: LifetimeClass) -> u8 {
        if asked == LifetimeClass::UNKNOWN || self.count.get() == 1 {
            return self.of(volume);
        }
        let classes = 0..self.count.get();
        let nearest = classes.min_by_key(|class| self.lifetime(*class).steps_to(asked));
        nearest.unwrap_or(NO_HINT)
    }

    /// The lifetime of the data of a class.
    pub fn lifetime(&self, class: u8) -> LifetimeClass {
        self.lifetimes.borrow().get(usize::from(class)).copied().unwrap_or_default()
    }

    /// Assigns classes to the hints of these volumes.
    pub fn assign(&self, images: &Images) {
        let volumes = images.iter().filter(|(_, image)| image.is_volume());
        let lifetimes: BTreeSet<Lifetime> =
            volumes.map(|(_, image)| image.settings.lifetime).collect();
        let classes = numbers::classes(&lifetimes, self.most);
        self.count.set(classes.values().copied().max().unwrap_or(0) + 1);
        let mut of_classes = vec![LifetimeClass::UNKNOWN; usize::from(self.count.get())];
        for (lifetime, class) in &classes {
            // Data without hints decide where others share their class.
            if *class != NO_HINT {
                of_classes[usize::from(*class)] = lifetime.temperature.lifetime();
            }
        }
        self.lifetimes.replace(of_classes);
        self.of.replace(classes);
    }

    /// What is predicted of data without hints, if anything is.
    pub fn predicted(&self) -> Option<&Predicted> {
        self.predicted.as_ref()
    }

    /// The class of data without hints, by their predicted class. Further predicted classes follow
    /// the classes of hints; those for which there is no room share the last one.
    pub fn of_predicted(&self, predicted: u8) -> u8 {
        let room = self.most - self.count.get();
        match predicted.min(room) {
            0 => NO_HINT,
            further => self.count.get() - 1 + further,
        }
    }

    /// The predicted class whose data have this class; `None` of a class of hints.
    pub fn predicted_of(&self, class: u8) -> Option<u8> {
        match class {
            NO_HINT => Some(0),
            _ => (class + 1).checked_sub(self.count.get()).filter(|predicted| *predicted > 0),
        }
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
