//! Wakes the tasks that collect units, and knows which of them rest.

use softflash_base::cast;
use softflash_runtime::Notify;
use std::cell::Cell;

/// The collection of a unit.
#[derive(Default)]
struct OfUnit {
    wake: Notify,
    /// It has found nothing to do since it was woken.
    rests: Cell<bool>,
}

impl OfUnit {
    fn wake(&self) {
        self.rests.set(false);
        self.wake.notify_one();
    }
}

/// The collection of all units.
pub(crate) struct Collection(Vec<OfUnit>);

impl Collection {
    pub fn new(units: u16) -> Collection {
        Collection((0..units).map(|_| OfUnit::default()).collect())
    }

    pub fn wake(&self, unit: u32) {
        self.0[cast::index(unit)].wake();
    }

    pub fn wake_all(&self) {
        self.0.iter().for_each(OfUnit::wake);
    }

    /// The collection of a unit has nothing to do.
    pub fn rest(&self, unit: u32) {
        self.0[cast::index(unit)].rests.set(true);
    }

    /// Whether the collection of a unit has nothing to do.
    pub fn rests(&self, unit: u32) -> bool {
        self.0[cast::index(unit)].rests.get()
    }

    /// Waits until the collection of a unit is woken.
    pub async fn woken(&self, unit: u32) {
        self.0[cast::index(unit)].wake.notified().await;
    }
}
