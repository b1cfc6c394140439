//! Units leave a domain: their data move to its other units, and a durable root names nothing in
//! them and is above all of their frames. Recovery needs nothing of them any more.

use crate::checkpoint::checkpoint;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::format::MAPPING_UNIT_BYTES;
use crate::frontier;
use crate::releases::release_collected;
use crate::unit_slots::UnitSlots;
use softflash_base::planted::{self, Bug};
use softflash_base::{UnitSet, cast};

/// Checkpoints after which a unit that still has superblocks cannot be emptied: one that is being
/// made when the drain begins may write to it, and so may one of which a frame fails.
const MOST_CHECKPOINTS: u32 = 4;

/// Empties units. They take no data from here on, also after the end; where it fails, or is
/// dropped before, they do.
pub(crate) async fn drain(core: &Shared, units: &UnitSet) -> Result<(), VolumeError> {
    let units = numbers(core, units)?;
    let mut drain = Drain::begin(core, units);
    check_room(core)?;
    empty(core, &drain.units).await?;
    drain.is_complete = true;
    Ok(())
}

/// A drain: without a complete end, its units take data again.
struct Drain<'a> {
    core: &'a Core,
    units: Vec<u32>,
    is_complete: bool,
}

impl Drain<'_> {
    fn begin(core: &Core, units: Vec<u32>) -> Drain<'_> {
        set_draining(core, &units, true);
        Drain { core, units, is_complete: false }
    }
}

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        if !self.is_complete {
            set_draining(self.core, &self.units, false);
        }
    }
}

/// Takes units out of the domain that were drained, and that the table of sets does not give it
/// any more.
pub(crate) async fn leave(
    core: &Core,
    units: &UnitSet,
    table: &UnitSlots,
) -> Result<(), VolumeError> {
    let numbers = numbers(core, units)?;
    let holds = |&unit: &u32| !core.space.is_draining(unit) || !is_empty(core, unit);
    if let Some(unit) = numbers.iter().copied().find(holds) {
        let reason = "it was not drained".to_owned();
        return Err(VolumeError::NotDrained { unit: core.unit_id(unit), reason });
    }
    let left = core.flash.units().iter().filter(|unit| !units.contains(*unit)).collect();
    core.geometry.unit_slots.change(&left, table)?;
    numbers.iter().for_each(|&unit| core.tasks.collection().end(unit));
    core.units_changed();
    for unit in units {
        core.flash.leave(unit).await?;
    }
    Ok(())
}

/// Drained units stay in the domain: they take data again.
pub(crate) fn keep(core: &Core, units: &UnitSet) -> Result<(), VolumeError> {
    set_draining(core, &numbers(core, units)?, false);
    Ok(())
}

/// Bytes of data that are still in units that leave the domain.
pub(crate) fn bytes_left(core: &Core) -> u64 {
    let units = core.geometry.numbers();
    bytes_in(core, units.filter(|&unit| core.space.is_draining(unit)))
}

fn bytes_in(core: &Core, units: impl Iterator<Item = u32>) -> u64 {
    let map = core.map.borrow();
    let blocks = units.flat_map(|unit| core.geometry.blocks_of(unit));
    let valid: u64 = blocks.map(|block| u64::from(map.blocks.valid_in(block))).sum();
    valid * cast::wide(MAPPING_UNIT_BYTES)
}

/// The numbers of units in the domain.
fn numbers(core: &Core, units: &UnitSet) -> Result<Vec<u32>, VolumeError> {
    let number = |unit| {
        let number = core.geometry.unit_slots.slot(unit);
        number.ok_or_else(|| VolumeError::Unsupported {
            reason: format!("unit {unit} is none of its units, {}", core.geometry.units()),
        })
    };
    units.iter().map(number).collect()
}

pub(crate) fn set_draining(core: &Core, units: &[u32], is_draining: bool) {
    for &unit in units {
        core.space.set_draining(unit, is_draining);
        if is_draining {
            frontier::close_all(core, unit);
        }
    }
    core.renew_usable();
    core.space.notify();
}

/// Fails if the data do not fit the units that take some, with a superblock to spare in each.
fn check_room(core: &Core) -> Result<(), VolumeError> {
    let units = core.geometry.numbers();
    let left = cast::saturating_u32(units.filter(|&unit| core.takes_data(unit)).count());
    let used = core.map.borrow().used() + core.space.growing().units();
    let needed = used.saturating_add(left.saturating_mul(core.geometry.data_units()));
    let usable = core.space.usable();
    if usable >= needed && usable > 0 {
        return Ok(());
    }
    let bytes = |units: u32| u64::from(units) * cast::wide(MAPPING_UNIT_BYTES);
    let (needed, usable) = (bytes(needed), bytes(usable));
    Err(VolumeError::UnitsNeeded { needed, usable })
}

async fn empty(core: &Shared, units: &[u32]) -> Result<(), VolumeError> {
    move_data(core, units).await?;
    let left = bytes_in(core, units.iter().copied());
    assert!(left == 0, "{left} bytes are left in units {units:?}, whose data have moved");
    for _ in 0..MOST_CHECKPOINTS {
        // Frames in their superblocks may still be under way.
        core.order.all_ended().await;
        touch_leaves(core, units);
        release_collected(core).await?;
        if !planted::bug(Bug::DrainedWithoutRoot) {
            checkpoint(core).await?;
        }
        if units.iter().all(|&unit| is_empty(core, unit)) || planted::bug(Bug::DrainedWithoutRoot) {
            return Ok(());
        }
    }
    let left = units.iter().copied().find(|&unit| !is_empty(core, unit)).unwrap_or_default();
    let reason = format!("it still holds superblocks after {MOST_CHECKPOINTS} checkpoints");
    Err(VolumeError::NotDrained { unit: core.unit_id(left), reason })
}

/// Waits until the collection of the units has moved all of their data, as long as it gets on.
async fn move_data(core: &Core, units: &[u32]) -> Result<(), VolumeError> {
    let mut left = u64::MAX;
    loop {
        let collection = core.tasks.collection();
        units.iter().for_each(|&unit| collection.wake(unit));
        core.tasks.check_running()?;
        while !units.iter().all(|&unit| collection.rests(unit)) {
            core.space.changed().await;
            core.tasks.check_running()?;
        }
        if !units.iter().any(|&unit| has_closed(core, unit)) {
            return Ok(());
        }
        let before = std::mem::replace(&mut left, bytes_left(core));
        let failure = core.space.take_drain_failure();
        let failure = failure.unwrap_or_else(|| core.out_of_space(core.map.borrow().used()));
        // What ran out of space while there was progress is tried again.
        if left >= before || !matches!(failure, VolumeError::OutOfSpace { .. }) {
            return Err(failure);
        }
    }
}

/// A superblock of a unit that may be collected, if there is one.
pub(crate) fn next_closed(core: &Core, unit: u32) -> Option<u32> {
    let map = core.map.borrow();
    core.geometry.blocks_of(unit).find(|&block| map.blocks.is_closed(block))
}

fn has_closed(core: &Core, unit: u32) -> bool {
    next_closed(core, unit).is_some()
}

/// Lets the next checkpoint write the leaves elsewhere that are in these units.
fn touch_leaves(core: &Core, units: &[u32]) {
    let is_in = |slot| units.contains(&core.geometry.unit_of(core.geometry.block_of(slot)));
    let mut map = core.map.borrow_mut();
    let held = map.leaves.numbered().filter(|(_, leaf)| leaf.owner.is_some());
    let stored = held.filter_map(|(number, leaf)| Some((number, leaf.stored?)));
    let inside = stored.filter(|(_, halves)| halves.iter().any(|half| half.slots().any(is_in)));
    let inside: Vec<u32> = inside.map(|(number, _)| number).collect();
    inside.into_iter().for_each(|leaf| map.touch(leaf));
}

/// Whether the domain has no superblock in a unit.
fn is_empty(core: &Core, unit: u32) -> bool {
    core.geometry.blocks_of(unit).all(|block| core.superblocks.handle(block).is_none())
}
