//! The unit of the next frame: the least loaded of those that can take it; of equals, the next in
//! turn. The class of its data is chosen [by hint](by_hint).

pub(crate) mod by_hint;

use crate::core::Core;
use crate::frontier;
use crate::stream::Stream;

pub(crate) fn least_loaded(core: &Core, stream: Stream) -> Option<u32> {
    let units = u32::from(core.geometry.unit_count());
    let turn = core.turn.get();
    let inturn = (0..units).map(|step| (turn + step) % units);
    let able = inturn.filter(|&unit| frontier::can_append(core, unit, stream));
    let chosen = able.min_by_key(|&unit| core.flash.load(core.unit_id(unit)))?;
    core.turn.set((chosen + 1) % units);
    Some(chosen)
}
