//! The part of a shard's flash that one owner works with.

use softflash_base::UnitSet;
use std::cell::Cell;

/// The units of an owner, until it stops.
pub(crate) struct View {
    units: UnitSet,
    stopped: Cell<bool>,
}

impl View {
    pub(crate) fn new(units: UnitSet) -> View {
        View { units, stopped: Cell::new(false) }
    }

    pub(crate) fn units(&self) -> &UnitSet {
        &self.units
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Stops it; true the first time.
    pub(crate) fn stop(&self) -> bool {
        !self.stopped.replace(true)
    }
}
