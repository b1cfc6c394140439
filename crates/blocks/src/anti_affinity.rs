//! Sets of blocks that belong on different units.

use crate::tag::BlockId;
use softflash_ftl::Superblock;
use std::cell::RefCell;
use std::rc::Rc;

/// Blocks that belong on different units, and the units that they have taken so far. A clone is the
/// same set.
#[derive(Clone, Default)]
pub struct AntiAffinity(Rc<RefCell<Vec<(BlockId, u16)>>>);

impl AntiAffinity {
    /// A set with blocks that exist, and their units.
    pub fn of(taken: impl IntoIterator<Item = (BlockId, u16)>) -> AntiAffinity {
        AntiAffinity(Rc::new(RefCell::new(taken.into_iter().collect())))
    }

    /// The units taken.
    pub fn units(&self) -> Vec<u16> {
        self.0.borrow().iter().map(|(_, unit)| *unit).collect()
    }

    pub(crate) fn take(&self, id: BlockId, copies: &[Superblock]) {
        self.0.borrow_mut().extend(copies.iter().map(|copy| (id, copy.unit.0)));
    }

    pub(crate) fn release(&self, id: BlockId) {
        self.0.borrow_mut().retain(|(taker, _)| *taker != id);
    }
}
