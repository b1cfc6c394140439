//! The mount of the flash of a domain: the core of an empty domain, and what is on its flash.

use crate::admission::Admission;
use crate::changes::Changes;
use crate::classes::Classes;
use crate::collection::Collection;
use crate::config::DomainConfig;
use crate::core::Core;
use crate::counters::Counters;
use crate::domain_map::DomainMap;
use crate::error::VolumeError;
use crate::frames::Frames;
use crate::frontier::Frontiers;
use crate::geometry::Geometry;
use crate::host_frames::HostFrames;
use crate::on_request::OnRequest;
use crate::placement::by_hint::most_classes;
use crate::retiring::Retiring;
use crate::roots::Roots;
use crate::space::Space;
use crate::superblocks::Superblocks;
use crate::tenant::Tenants;
use softflash_device::QueuePair;
use softflash_flash::Flash;
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
        map: RefCell::new(DomainMap::new(geometry.clone())),
        superblocks: Superblocks::new(geometry.blocks()),
        frames: Frames::from(1, 1),
        changes: Changes::recovered(1, 1),
        frontiers: Frontiers::new(geometry.unit_count(), classes),
        classes: Classes::new(classes),
        counters: Counters::default(),
        tenants: Tenants::default(),
        admission: Admission::new(config.competing_requests(geometry.unit_count())),
        host_frames: HostFrames::new(classes),
        gate,
        space: Space::new(config.domain, geometry.unit_count()),
        collection: Collection::new(geometry.unit_count()),
        flushes: OnRequest::default(),
        unproven: Notify::new(),
        checkpoints: OnRequest::default(),
        roots: Roots::default(),
        retiring: Retiring::default(),
        turn: Cell::new(0),
        stopped: Cell::new(false),
        flash,
        runtime,
        device_uuid,
        config,
        geometry,
    };
    core.space.set_usable(core.compute_usable());
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
