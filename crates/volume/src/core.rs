//! The state that all mechanisms of a domain share.

use crate::admission::Admission;
use crate::building::Building;
use crate::changes::Changes;
use crate::classes::Classes;
use crate::config::DomainConfig;
use crate::counters::Counters;
use crate::domain_map::DomainMap;
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::format::frame::Position;
use crate::frames::{Completion, Frames};
use crate::frontier::Frontiers;
use crate::fullness::Fullness;
use crate::geometry::Geometry;
use crate::placement::by_hint::NO_HINT;
use crate::room::{most_data, usable_units};
use crate::stream::Stream;
use crate::superblocks::Superblocks;
use crate::tenant::Tenants;
use softflash_base::cast;
use softflash_flash::{Flash, UnitHealth};
use softflash_ftl::Superblock;
use softflash_runtime::{Event, Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A superblock whose data have moved, in frames below `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collected {
    pub block: u32,
    pub end: u64,
}

/// A mapped domain.
pub(crate) struct Core {
    pub flash: Flash,
    pub runtime: RuntimeHandle,
    pub device_uuid: u128,
    pub config: DomainConfig,
    pub geometry: Geometry,
    pub map: RefCell<DomainMap>,
    pub superblocks: Superblocks,
    pub frames: Frames,
    pub changes: Changes,
    pub frontiers: Frontiers,
    pub counters: Counters,
    pub tenants: Tenants,
    pub admission: Admission,
    pub classes: Classes,
    /// The frames that clients are filling, by class.
    pub building: RefCell<Vec<Option<Building>>>,
    /// Frames of clients under way.
    pub host_frames: Cell<u32>,
    /// Reset while an operation is written: frames behind it wait until it has its place.
    pub gate: Event,
    /// Notified when a superblock is free, or a frontier has room again.
    pub space: Notify,
    /// Wakes the collection of each unit.
    pub collect: Vec<Notify>,
    /// Units whose collection has found nothing to do since it was woken.
    pub collection_rests: Vec<Cell<bool>>,
    /// Wakes the task that flushes, with the waiters for the flush.
    pub flush: Notify,
    pub flush_waiters: RefCell<Vec<Completion>>,
    /// Wakes the task that proves the changes of a flush.
    pub unproven: Notify,
    /// Wakes the task that makes checkpoints, with the waiters for one.
    pub checkpoint: Notify,
    pub checkpoint_waiters: RefCell<Vec<Completion>>,
    /// Wakes the task that releases collected superblocks.
    pub release: Notify,
    /// Whether the flush before their release has failed.
    pub release_failed: Cell<bool>,
    /// Whether the last checkpoint has failed.
    pub root_failed: Cell<bool>,
    /// The frame of the durable root: recovery needs no older ones.
    pub root_sequence: Cell<u64>,
    /// The number of the last root, which may not be whole.
    pub root: Cell<u64>,
    /// The number of the durable root.
    pub durable_root: Cell<u64>,
    /// Entries of frames since that root.
    pub entries_since_root: Cell<u64>,
    /// Superblocks whose data have moved, to places that may not be durable yet.
    pub collected: RefCell<Vec<Collected>>,
    /// Superblocks whose data have moved to durable places: those that recovery still needs are
    /// kept until the next root.
    pub to_release: RefCell<Vec<u32>>,
    /// Blocks that hold leaves and roots.
    pub map_blocks: RefCell<Vec<u32>>,
    /// The health of each unit.
    pub health: Vec<UnitHealth>,
    /// Places that data may take.
    pub usable: Cell<u32>,
    pub fullness: Fullness,
    /// The unit whose turn it is among equally loaded ones.
    pub turn: Cell<u32>,
    pub stopped: Cell<bool>,
}

impl Core {
    /// The unit of the device, from its number in the domain.
    pub fn unit_id(&self, unit: u32) -> u16 {
        self.geometry.first_unit + cast::saturating_u16(cast::index(unit))
    }

    /// Free superblocks of a unit; none of a dead one.
    pub fn free_superblocks(&self, unit: u32) -> u32 {
        match self.health_of(unit).is_dead() {
            true => 0,
            false => self.flash.space(self.unit_id(unit)).allocatable(),
        }
    }

    /// Whether a unit, or each of them, takes no more data because it is dead, or too many of its
    /// blocks are bad.
    pub fn is_worn_out(&self, unit: Option<u32>) -> bool {
        let has_too_few = |unit| self.flash.space(self.unit_id(unit)).is_worn_out();
        let worn_out = |unit| self.health_of(unit).is_dead() || has_too_few(unit);
        unit.map_or_else(|| (0..self.geometry.units.into()).all(worn_out), worn_out)
    }

    /// Whether a unit takes data as far as is known.
    pub fn takes_data(&self, unit: u32) -> bool {
        !self.is_worn_out(Some(unit)) && !self.health_of(unit).is_lost()
    }

    pub fn health_of(&self, unit: u32) -> &UnitHealth {
        &self.health[cast::index(unit)]
    }

    /// Begins a flush that nobody waits for.
    pub fn ask_for_flush(&self) {
        let mut waiters = self.flush_waiters.borrow_mut();
        if waiters.is_empty() {
            waiters.push(Completion::default());
            self.flush.notify_one();
        }
    }

    pub fn position(&self, superblock: &Superblock, page: u32) -> Position {
        Position {
            device_uuid: self.device_uuid,
            unit: superblock.unit.0,
            index: superblock.index,
            generation: superblock.generation,
            page,
        }
    }

    /// The places that data may take.
    pub fn compute_usable(&self) -> u32 {
        let good = |unit| {
            let space = self.flash.space(self.unit_id(unit));
            space.total() - space.bad
        };
        let units = (0..u32::from(self.geometry.units)).map(good);
        usable_units(units, self.geometry.data_units(), self.classes.count(), &self.config)
    }

    /// Mapping units of data that fit in a superblock, in full frames with their heads.
    pub fn most_data_of_block(&self) -> u32 {
        most_data(self.geometry.data_units(), &self.config)
    }

    /// The settings of volumes may have changed.
    pub fn adopt_settings(&self) {
        let map = self.map.borrow();
        self.tenants.update(&map.images);
        self.classes.assign(&map.images);
        self.usable.set(self.compute_usable());
    }

    /// Wakes the collection of a unit whose last superblock for clients has been opened: it works
    /// while that is filled. Units in which others collect would have to take its writes otherwise,
    /// and collect more.
    pub fn collect_if_short(&self, unit: u32) {
        if self.free_superblocks(unit) <= Stream::Host(NO_HINT).reserve() {
            self.collection_rests[cast::index(unit)].set(false);
            self.collect[cast::index(unit)].notify_one();
        }
    }

    /// Wakes the collection of all units.
    pub fn wake_collection(&self) {
        self.collection_rests.iter().for_each(|rests| rests.set(false));
        self.collect.iter().for_each(Notify::notify_one);
    }

    /// Superblocks of a unit that the next flush releases.
    pub fn collected_in(&self, unit: u32) -> u32 {
        let collected = self.collected.borrow();
        let inside = collected.iter().filter(|one| self.geometry.unit_of(one.block) == unit);
        cast::saturating_u32(inside.count())
    }

    /// Superblocks of a unit that the next root releases.
    pub fn waiting_in(&self, unit: u32) -> u32 {
        let waiting = self.to_release.borrow();
        let inside = waiting.iter().filter(|&&block| self.geometry.unit_of(block) == unit);
        cast::saturating_u32(inside.count())
    }

    /// Whether superblocks will be free without further work, for a stream that waits for some. A
    /// checkpoint, which writes the map, cannot wait for its own releases.
    pub fn releases_wait(&self, stream: Stream) -> bool {
        let for_root = !self.to_release.borrow().is_empty() && !self.root_failed.get();
        let for_flush = !self.collected.borrow().is_empty() && !self.release_failed.get();
        for_root && stream != Stream::Map || for_flush
    }

    /// The error of a domain in which no space can be made.
    pub fn out_of_space(&self, used: u32) -> VolumeError {
        let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
        VolumeError::OutOfSpace { used: bytes(used), usable: bytes(self.usable.get()) }
    }

    /// Asks for a checkpoint if superblocks wait for the next root.
    pub fn ask_for_releases(&self) {
        if !self.to_release.borrow().is_empty() {
            self.checkpoint.notify_one();
        }
    }

    /// Asks for a checkpoint if superblocks of a unit wait for the next root in which clients may
    /// open none, or only one more.
    pub fn ask_for_releases_if_short(&self) {
        let mut units = 0..u32::from(self.geometry.units);
        let is_short = |unit| {
            let free = self.free_superblocks(unit);
            free <= Stream::Host(NO_HINT).reserve() + 1 && self.waiting_in(unit) > 0
        };
        if units.any(is_short) {
            self.checkpoint.notify_one();
        }
    }

    /// Counts entries that recovery would have to replay; asks for a checkpoint when they are many.
    pub fn count_entries(&self, entries: usize) {
        let entries = self.entries_since_root.get() + cast::wide(entries);
        self.entries_since_root.set(entries);
        if entries >= self.checkpoint_entries() {
            self.checkpoint.notify_one();
        }
    }

    /// Entries after which a checkpoint is made.
    pub fn checkpoint_entries(&self) -> u64 {
        match self.config.checkpoint_entries {
            0 => u64::from(self.geometry.places() / 8).max(1 << 16),
            entries => entries,
        }
    }

    /// Whether writes that take more space are refused.
    pub fn is_full(&self) -> bool {
        let used = self.map.borrow().used();
        self.fullness.is_full(self.config.domain, used, self.usable.get())
    }

    /// Fails if the volume layer was stopped.
    pub fn check_running(&self) -> Result<(), VolumeError> {
        if self.stopped.get() { Err(VolumeError::Stopped) } else { Ok(()) }
    }
}

/// Tasks share the domain.
pub(crate) type Shared = Rc<Core>;
