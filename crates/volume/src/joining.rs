//! Units join a domain under load. The table of sets has them by then, with their slots: from the
//! next frame on, the domain may write there.

use crate::collector;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::opening;
use crate::unit_slots::UnitSlots;
use softflash_base::UnitSet;
use softflash_device::QueuePair;
use softflash_flash::{Flash, MountedFlash};
use softflash_ftl::{FtlConfig, Owners};
use std::rc::Rc;

/// Adds the units of a queue pair, which are erased, as the table says.
pub(crate) async fn join(
    core: &Shared,
    queue: Box<dyn QueuePair>,
    table: &UnitSlots,
) -> Result<(), VolumeError> {
    let units = queue.units().clone();
    check(core, &units, table)?;
    let ownership = opening::ownership(core.config.domain);
    let owners = Owners::one(units, ownership).at_epoch(table.epoch());
    let (wear, order) = (core.config.wear, core.config.order);
    let config = FtlConfig { wear, order, ..FtlConfig::default() };
    let (flash, inventory) = Flash::mount_one(queue, config, owners, core.tasks.runtime()).await?;
    // What the erase could not reach is nobody's.
    inventory.all().for_each(|superblock| flash.release(superblock));
    add(core, MountedFlash { flash, inventory }, table)
}

/// Fails unless the table gives the domain its units and the new ones, each old one where it was.
fn check(core: &Core, joining: &UnitSet, table: &UnitSlots) -> Result<(), VolumeError> {
    let unsupported = |reason| Err(VolumeError::Unsupported { reason });
    let (units, named) = (core.geometry.units(), table.units());
    let with_joining: UnitSet = units.iter().chain(joining.iter()).collect();
    if with_joining != named {
        return unsupported(format!(
            "the units {joining} join {units}, and the table of sets says {named}"
        ));
    }
    let is_same = |slot| core.geometry.unit_slots.unit(slot) == table.unit(slot);
    if let Some(slot) = core.geometry.numbers().find(|&slot| !is_same(slot)) {
        return unsupported(format!("the table of sets has another unit in slot {slot}"));
    }
    core.geometry.check_slots(table.count())
}

fn add(core: &Shared, joining: MountedFlash, table: &UnitSlots) -> Result<(), VolumeError> {
    // Others may have joined or left meanwhile.
    let units = joining.flash.units();
    if let Err(error) = check(core, &units, table) {
        joining.flash.stop();
        return Err(error);
    }
    core.flash.join(joining.flash)?;
    core.geometry.unit_slots.change(&core.flash.units(), table)?;
    core.map.borrow_mut().add_blocks();
    core.superblocks.grow(core.geometry.blocks());
    if let Some(predicted) = core.clients.classes().predicted() {
        predicted.grow(core.geometry.slots(), core.geometry.blocks());
    }
    let slots = units.iter().filter_map(|unit| core.geometry.unit_slots.slot(unit));
    slots.for_each(|unit| begin(core, unit));
    core.units_changed();
    Ok(())
}

/// A unit takes data from here on.
///
/// # Panics
/// If the domain has superblocks in its slot.
fn begin(core: &Shared, unit: u32) {
    let mut blocks = core.geometry.blocks_of(unit);
    assert!(
        blocks.all(|block| core.superblocks.handle(block).is_none()),
        "a unit joins slot {unit}, in which the domain has superblocks"
    );
    core.flash.hold_erases(core.unit_id(unit), core.order.rests());
    core.frontiers.add_unit(unit);
    core.space.add_unit(unit);
    core.tasks.collection().add_unit(unit);
    core.tasks.spawn(collector::run(Rc::clone(core), unit));
}
