//! The unit of the next frame: the least loaded of those that can take it; of equals, the next in
//! turn. The class of its data is chosen [by hint](by_hint).

pub(crate) mod by_hint;

use crate::core::Core;
use crate::frontier;
use crate::stream::Stream;

pub(crate) fn least_loaded(core: &Core, stream: Stream) -> Option<u32> {
    let able = core.frontiers.in_turn().filter(|&unit| frontier::can_append(core, unit, stream));
    let chosen = able.min_by_key(|&unit| core.flash.load(core.unit_id(unit)))?;
    core.frontiers.served(chosen);
    Some(chosen)
}
