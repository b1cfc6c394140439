//! The state that all mechanisms of a domain share.

use crate::changes::Changes;
use crate::classes::Classes;
use crate::classes::numbers::most_classes;
use crate::classes::predicted::Predicted;
use crate::clients::Clients;
use crate::config::DomainConfig;
use crate::counters::{Counters, DomainCounters};
use crate::domain_map::DomainMap;
use crate::error::VolumeError;
use crate::format::frame::Position;
use crate::frames::Frames;
use crate::frontier::Frontiers;
use crate::geometry::Geometry;
use crate::map_space::map_units;
use crate::order::Order;
use crate::pair_link::PairLink;
use crate::residence::Residence;
use crate::retiring::Retiring;
use crate::room::{most_data, usable_units};
use crate::roots::Roots;
use crate::space::Space;
use crate::stream::Stream;
use crate::superblocks::Superblocks;
use crate::tasks::Tasks;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use softflash_flash::Flash;
use softflash_ftl::{FtlError, Superblock};
use softflash_runtime::RuntimeHandle;
use std::cell::RefCell;
use std::rc::Rc;

/// A mapped domain.
pub(crate) struct Core {
    pub flash: Flash,
    pub config: DomainConfig,
    pub geometry: Geometry,
    pub map: RefCell<DomainMap>,
    pub superblocks: Superblocks,
    pub order: Order,
    pub frontiers: Frontiers,
    pub clients: Clients,
    pub space: Space,
    pub tasks: Tasks,
    pub roots: Roots,
    pub retiring: Retiring,
    link: PairLink,
    residence: Residence,
    device_uuid: u128,
    counters: Counters,
}

impl Core {
    /// The state of an empty domain.
    pub fn new(
        flash: Flash,
        device_uuid: u128,
        config: DomainConfig,
        runtime: RuntimeHandle,
    ) -> Result<Core, VolumeError> {
        let geometry = Geometry::of(&flash, config.slots.as_ref())?;
        let config = config.on_pages_of(geometry.page_units);
        let classes = most_classes(geometry.unit_blocks);
        let core = Core {
            map: RefCell::new(DomainMap::new(geometry.clone())),
            superblocks: Superblocks::new(geometry.blocks()),
            order: Order::from(Frames::from(1, 1), Changes::recovered(1, 1)),
            frontiers: Frontiers::new(geometry.unit_slots.count(), classes),
            clients: Clients::new(
                config.competing_requests(geometry.unit_count()),
                Classes::new(classes, predicted(&config, &geometry)),
            ),
            space: Space::new(config.domain, geometry.unit_slots.count()),
            tasks: Tasks::new(runtime, geometry.unit_slots.count()),
            roots: Roots::default(),
            retiring: Retiring::default(),
            link: PairLink::default(),
            residence: Residence::default(),
            counters: Counters::default(),
            flash,
            device_uuid,
            config,
            geometry,
        };
        core.renew_usable();
        if core.space.usable() == 0 {
            let reason = format!(
                "{} units of {} superblocks leave no space for data; use more or larger units",
                core.geometry.unit_count(),
                core.geometry.unit_blocks
            );
            return Err(VolumeError::Unsupported { reason });
        }
        Ok(core)
    }

    /// The link to the pair that the domain is one of.
    pub fn link(&self) -> &PairLink {
        &self.link
    }

    /// Volumes on the move.
    pub fn residence(&self) -> &Residence {
        &self.residence
    }

    /// Counters since the mount.
    pub fn counters(&self) -> DomainCounters {
        self.counters.get()
    }

    /// Counts something.
    pub fn count(&self, change: impl FnOnce(&mut DomainCounters)) {
        self.counters.update(change);
    }

    /// Counts a frame that takes so many mapping units.
    pub fn count_frame(&self, unit: u32, stream: Stream, entries: usize, units: u32) {
        self.counters.count_frame(stream, entries, units);
        if self.tasks.collection().note_frame(unit, stream, units) {
            self.space.notify();
        }
    }

    /// The unit of the device, from its number in the domain.
    pub fn unit_id(&self, unit: u32) -> u16 {
        self.geometry.unit_id(unit)
    }

    /// Free superblocks of a unit; none of a dead one, or of one that leaves the domain.
    pub fn free_superblocks(&self, unit: u32) -> u32 {
        match self.adds_space(unit) || planted::bug(Bug::DrainedUnitAllocated) {
            true => self.flash.space(self.unit_id(unit)).allocatable(),
            false => 0,
        }
    }

    /// Whether the superblocks of a unit count as space of the domain.
    fn adds_space(&self, unit: u32) -> bool {
        !self.space.is_dead(unit) && !self.space.is_draining(unit)
    }

    /// Whether a unit, or each of them, takes no more data because it is dead, or too many of its
    /// blocks are bad.
    pub fn is_worn_out(&self, unit: Option<u32>) -> bool {
        let has_too_few = |unit| self.flash.space(self.unit_id(unit)).is_worn_out();
        let worn_out = |unit| self.space.is_dead(unit) || has_too_few(unit);
        unit.map_or_else(|| self.staying_units().all(worn_out), worn_out)
    }

    /// The units that do not leave the domain.
    pub fn staying_units(&self) -> impl Iterator<Item = u32> {
        let units = self.geometry.numbers();
        units.filter(|&unit| !self.space.is_draining(unit))
    }

    /// Wakes the collection of all units but those that leave the domain: it makes no space, and
    /// would begin again and again where it finds none.
    pub fn wake_collection(&self) {
        self.staying_units().for_each(|unit| self.tasks.collection().wake(unit));
    }

    /// Whether nothing will be collected: the collection of all units rests. That of a unit which
    /// leaves the domain makes no space, and waits for some itself.
    pub fn nothing_is_collected(&self) -> bool {
        self.staying_units().all(|unit| self.tasks.collection().rests(unit))
    }

    /// Whether a unit takes data as far as is known.
    pub fn takes_data(&self, unit: u32) -> bool {
        !self.is_worn_out(Some(unit)) && !self.space.is_lost(unit) && !self.space.is_draining(unit)
    }

    /// Records the outcome of a command on a unit. The space of a dead one is gone.
    pub fn note_outcome(&self, unit: u32, error: Option<&FtlError>) {
        if self.space.note_outcome(unit, error) {
            tracing::error!(
                unit = self.unit_id(unit),
                "a die is dead: its unit takes no more data"
            );
            self.renew_usable();
        }
    }

    /// The error where no space can be made.
    pub fn out_of_space(&self, used: u32) -> VolumeError {
        match self.is_worn_out(None) {
            true => VolumeError::WornOut,
            false => self.space.out_of_space(used),
        }
    }

    /// Whether a table of sets names the unit slots.
    pub fn has_table(&self) -> bool {
        self.geometry.unit_slots.are_named()
    }

    pub fn position(&self, superblock: &Superblock, page: u32) -> Position {
        let block = self.geometry.block(superblock.unit.0, superblock.index);
        Position {
            device_uuid: self.device_uuid,
            unit: superblock.unit.0,
            index: superblock.index,
            generation: self.superblocks.generation(block, superblock),
            domain: self.superblocks.is_bound(block).then_some(self.config.domain),
            page,
        }
    }

    /// Computes the space for data again: the good superblocks or the classes have changed, or the
    /// map has grown.
    pub fn renew_usable(&self) {
        let leaves = self.map.borrow().leaves.held();
        self.space.set_usable(self.usable_with(0), leaves);
    }

    /// Units have joined the domain, or left it.
    pub fn units_changed(&self) {
        self.clients.set_competing(self.config.competing_requests(self.geometry.unit_count()));
        self.renew_usable();
        self.space.notify();
    }

    /// The slots that data may take if the map has so many more leaves.
    pub fn usable_with(&self, more_leaves: u32) -> u32 {
        let good = |unit| match self.adds_space(unit) {
            false => 0,
            true => {
                let space = self.flash.space(self.unit_id(unit));
                space.total() - space.bad
            }
        };
        let units = self.geometry.numbers().map(good);
        usable_units(
            units,
            self.geometry.data_units(),
            self.clients.classes().count(),
            map_units(self, more_leaves),
            &self.config,
        )
    }

    /// Mapping units of data that fit in a superblock, in full frames with their heads.
    pub fn most_data_of_block(&self) -> u32 {
        most_data(self.geometry.data_units(), &self.config)
    }

    /// The settings of volumes may have changed.
    pub fn adopt_settings(&self) {
        let map = self.map.borrow();
        self.clients.adopt(&map.images);
        self.renew_usable();
    }

    /// Whether superblocks will be free without further work, for a stream that waits for some. A
    /// checkpoint, which writes the map, cannot wait for its own releases.
    pub fn releases_wait(&self, stream: Stream) -> bool {
        let for_root = self.retiring.any_waits_for_root() && !self.roots.has_failed();
        let for_flush = self.retiring.any_waits_for_flush() && !self.retiring.flush_has_failed();
        for_root && stream != Stream::Map || for_flush
    }

    /// Asks for a checkpoint if superblocks wait for the next root.
    pub fn ask_for_releases(&self) {
        if self.retiring.any_waits_for_root() {
            self.tasks.ask_for_checkpoint();
        }
    }

    /// Counts entries that recovery would have to replay; asks for a checkpoint when they are many.
    pub fn count_entries(&self, entries: usize) {
        if self.roots.count_entries(cast::wide(entries)) >= self.checkpoint_entries() {
            self.tasks.ask_for_checkpoint();
        }
    }

    /// Entries after which a checkpoint is made.
    pub fn checkpoint_entries(&self) -> u64 {
        match self.config.checkpoint_entries {
            0 => u64::from(self.geometry.slots() / 8).max(1 << 16),
            entries => entries,
        }
    }

    /// Whether writes that take more space are refused.
    pub fn is_full(&self) -> bool {
        let used = self.map.borrow().used();
        self.space.is_full(used)
    }
}

/// Tasks share the domain.
pub(crate) type Shared = Rc<Core>;

/// What is predicted of the data of a domain.
fn predicted(config: &DomainConfig, geometry: &Geometry) -> Option<Predicted> {
    let spare = f64::from(geometry.unit_blocks) * config.op_percent / (100.0 + config.op_percent);
    Predicted::new(config.lifetime, geometry.slots(), geometry.blocks(), spare as u32)
}
