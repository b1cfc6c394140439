//! The space for data: how much there can be, whether it is full, and the notification of changes.

use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::fullness::Fullness;
use crate::tenant::Growing;
use softflash_base::cast;
use softflash_flash::UnitHealth;
use softflash_ftl::FtlError;
use softflash_runtime::Notify;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The state of a unit.
#[derive(Default)]
struct OfUnit {
    health: UnitHealth,
    /// Whether it leaves the domain.
    is_draining: Cell<bool>,
}

/// The space of a domain.
pub(crate) struct Space {
    domain: u16,
    /// Slots that data may take.
    usable: Cell<u32>,
    /// Leaves of the map for which they were computed.
    leaves: Cell<u32>,
    growing: Rc<Growing>,
    fullness: Fullness,
    /// Notified when a superblock is free, or a frontier has room again.
    change: Notify,
    /// The state of each unit, by its number.
    units: RefCell<Vec<Rc<OfUnit>>>,
    /// Why data of a unit that leaves the domain could not be moved.
    drain_failure: Cell<Option<VolumeError>>,
}

impl Space {
    pub fn new(domain: u16, units: u32) -> Space {
        Space {
            domain,
            usable: Cell::new(0),
            leaves: Cell::new(0),
            growing: Rc::default(),
            fullness: Fullness::default(),
            change: Notify::new(),
            units: RefCell::new((0..units).map(|_| Rc::default()).collect()),
            drain_failure: Cell::new(None),
        }
    }

    /// Slots that data may take.
    pub fn usable(&self) -> u32 {
        self.usable.get()
    }

    pub fn set_usable(&self, usable: u32, leaves: u32) {
        self.usable.set(usable);
        self.leaves.set(leaves);
    }

    /// What will take space, and is not in the map yet.
    pub fn growing(&self) -> &Rc<Growing> {
        &self.growing
    }

    /// Leaves of the map for which the usable slots were computed.
    pub fn leaves(&self) -> u32 {
        self.leaves.get()
    }

    /// Lets tasks that wait for space look again: there is some, or there will be none.
    pub fn notify(&self) {
        self.change.notify_all();
    }

    /// Waits for the next notification.
    pub async fn changed(&self) {
        self.change.notified().await;
    }

    /// A unit leaves the domain, or does not any more.
    pub fn set_draining(&self, unit: u32, is_draining: bool) {
        self.of_unit(unit).is_draining.set(is_draining);
    }

    /// Whether a unit leaves the domain: it takes nothing, and its data move to others.
    pub fn is_draining(&self, unit: u32) -> bool {
        self.units.borrow()[cast::index(unit)].is_draining.get()
    }

    /// Data of a unit that leaves the domain could not be moved.
    pub fn note_drain_failure(&self, error: VolumeError) {
        self.drain_failure.set(Some(error));
    }

    /// The last of these failures, once.
    pub fn take_drain_failure(&self) -> Option<VolumeError> {
        self.drain_failure.take()
    }

    fn of_unit(&self, unit: u32) -> Rc<OfUnit> {
        Rc::clone(&self.units.borrow()[cast::index(unit)])
    }

    /// A unit has joined the domain with this number.
    pub fn add_unit(&self, unit: u32) {
        let (mut units, unit) = (self.units.borrow_mut(), cast::index(unit));
        let count = units.len().max(unit + 1);
        units.resize_with(count, Rc::default);
        units[unit] = Rc::default();
    }

    /// Records the outcome of a command on a unit. Returns whether a die of it is dead since.
    pub fn note_outcome(&self, unit: u32, error: Option<&FtlError>) -> bool {
        let OfUnit { health, .. } = &*self.of_unit(unit);
        let was_dead = health.is_dead();
        health.note(error);
        health.is_dead() && !was_dead
    }

    /// Whether a die of a unit is dead.
    pub fn is_dead(&self, unit: u32) -> bool {
        self.units.borrow()[cast::index(unit)].health.is_dead()
    }

    /// Whether a unit seems to be lost.
    pub fn is_lost(&self, unit: u32) -> bool {
        self.units.borrow()[cast::index(unit)].health.is_lost()
    }

    /// Whether writes that take more space are refused, where so many mapping units are used.
    pub fn is_full(&self, used: u32) -> bool {
        self.fullness.is_full(self.domain, used, self.usable())
    }

    /// A write was refused, where so many bytes are used and can be.
    pub fn note_refusal(&self, used: u64, usable: u64) {
        self.fullness.note_refusal(self.domain, used, usable);
    }

    /// The error of a domain in which no space can be made.
    pub fn out_of_space(&self, used: u32) -> VolumeError {
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        VolumeError::OutOfSpace { used: bytes(used), usable: bytes(self.usable()) }
    }
}
