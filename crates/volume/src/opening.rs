//! The mount of the flash of a domain: the core of an empty domain, and what is on its flash.

use crate::admission::Admission;
use crate::changes::Changes;
use crate::classes::Classes;
use crate::config::DomainConfig;
use crate::core::Core;
use crate::counters::Counters;
use crate::domain_map::DomainMap;
use crate::error::VolumeError;
use crate::frames::Frames;
use crate::frontier::Frontiers;
use crate::fullness::Fullness;
use crate::geometry::Geometry;
use crate::placement::by_hint::most_classes;
use crate::superblocks::Superblocks;
use crate::tenant::Tenants;
use softflash_device::QueuePair;
use softflash_flash::{Flash, UnitHealth};
use softflash_ftl::{FtlConfig, Inventory, Owner};
use softflash_runtime::{Event, Notify, RuntimeHandle};
use std::cell::{Cell, RefCell};

/// The layer of mapped domains in the headers of superblocks.
const LAYER: u8 = 1;

/// The owner of a domain's superblocks.
pub(crate) fn owner(domain: u16) -> Owner {
    Owner { layer: LAYER, domain }
}

/// Mounts the flash of a domain. Nothing is written before the core is used.
pub(crate) async fn open(
    queue: Box<dyn QueuePair>,
    ftl: FtlConfig,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<(Core, Inventory), VolumeError> {
    let device_uuid = queue.device_uuid();
    let ftl = FtlConfig { owner: owner(config.domain), ..ftl };
    let (flash, inventory) = Flash::mount(queue, ftl, runtime.clone()).await?;
    match core(flash.clone(), device_uuid, config, runtime) {
        Ok(core) => Ok((core, inventory)),
        Err(error) => {
            flash.stop();
            Err(error)
        }
    }
}

fn core(
    flash: Flash,
    device_uuid: u128,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Result<Core, VolumeError> {
    let geometry = Geometry::of(&flash)?;
    let gate = Event::new();
    gate.set();
    let classes = most_classes(geometry.unit_blocks);
    let core = Core {
        map: RefCell::new(DomainMap::new(geometry)),
        superblocks: Superblocks::new(geometry.blocks()),
        frames: Frames::from(1, 1),
        changes: Changes::recovered(1, 1),
        frontiers: Frontiers::new(geometry.units, classes),
        classes: Classes::new(classes),
        counters: Counters::default(),
        tenants: Tenants::default(),
        admission: Admission::new(config.competing_requests(geometry.units)),
        building: RefCell::new((0..classes).map(|_| None).collect()),
        host_frames: Cell::new(0),
        gate,
        space: Notify::new(),
        collect: (0..geometry.units).map(|_| Notify::new()).collect(),
        collection_rests: (0..geometry.units).map(|_| Cell::new(false)).collect(),
        flush: Notify::new(),
        flush_waiters: RefCell::default(),
        unproven: Notify::new(),
        checkpoint: Notify::new(),
        checkpoint_waiters: RefCell::default(),
        release: Notify::new(),
        release_failed: Cell::new(false),
        root_failed: Cell::new(false),
        root_sequence: Cell::new(0),
        root: Cell::new(0),
        durable_root: Cell::new(0),
        entries_since_root: Cell::new(0),
        collected: RefCell::default(),
        to_release: RefCell::default(),
        map_blocks: RefCell::default(),
        health: (0..geometry.units).map(|_| UnitHealth::default()).collect(),
        usable: Cell::new(0),
        fullness: Fullness::default(),
        turn: Cell::new(0),
        stopped: Cell::new(false),
        flash,
        runtime,
        device_uuid,
        config,
        geometry,
    };
    core.usable.set(core.compute_usable());
    if core.usable.get() == 0 {
        let reason = format!(
            "{} units of {} superblocks leave no space for data; use more or larger units",
            geometry.units, geometry.unit_blocks
        );
        return Err(VolumeError::Unsupported { reason });
    }
    Ok(core)
}
