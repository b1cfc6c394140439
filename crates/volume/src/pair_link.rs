//! The link from a domain to the pair that it is one of, which the layer of pairs sets: the domain
//! itself knows none.

use crate::unpaired::Unpaired;
use std::any::Any;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// The link of a domain.
pub(crate) struct PairLink {
    /// It is kept by its tasks, and has the domain itself.
    pair: RefCell<Weak<dyn Any>>,
    /// Changes that go past a pair.
    pub unpaired: Unpaired,
}

impl Default for PairLink {
    fn default() -> PairLink {
        PairLink { pair: RefCell::new(Weak::<()>::new()), unpaired: Unpaired::default() }
    }
}

impl PairLink {
    /// The pair, if it is this kind of thing.
    pub fn get<T: 'static>(&self) -> Option<Rc<T>> {
        self.pair.borrow().upgrade()?.downcast().ok()
    }

    /// The domain is one of this pair from now on.
    pub fn set<T: 'static>(&self, pair: &Rc<T>) {
        let pair: Rc<dyn Any> = Rc::<T>::clone(pair);
        self.pair.replace(Rc::downgrade(&pair));
    }

    /// The domain is one of no pair any more.
    pub fn clear(&self) {
        self.pair.replace(Weak::<()>::new());
    }
}
