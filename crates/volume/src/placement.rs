//! The unit of the next frame: the policy's choice of those that can take it.

use crate::core::Core;
use crate::frontier;
use crate::stream::Stream;
use softflash_base::cast;
use softflash_policy::placement::{self, Candidates};

/// The unit that takes the next frame of a stream; `None` where none can.
pub(crate) fn unit_for(core: &Core, stream: Stream) -> Option<u32> {
    let units: Vec<u32> = core.geometry.numbers().collect();
    // Rooms are compared by units that are full or not: frames are small beside them.
    let is_full =
        |unit| u32::from(!frontier::can_append(core, unit, stream) || holds(core, unit, stream));
    let column = |of: &dyn Fn(u32) -> u32| units.iter().copied().map(of).collect::<Vec<u32>>();
    let (erases, waiting) = (
        column(&|unit| core.flash.most_erases(core.unit_id(unit))),
        column(&|unit| core.flash.load(core.unit_id(unit))),
    );
    let candidates = Candidates {
        occupied: &column(&is_full),
        most: 1,
        erases: &erases,
        die: &(0..cast::saturating_u32(units.len())).collect::<Vec<u32>>(),
        waiting: &waiting,
        cursor: core.frontiers.cursor(units.len()),
    };
    let chosen = placement::choose(core.config.placement, &candidates)?;
    let Some(&unit) = units.get(cast::index(chosen)) else {
        unreachable!("a policy chose candidate {chosen} of units {units:?}")
    };
    core.frontiers.served(chosen);
    Some(unit)
}

/// Whether a unit will take frames of a stream once its collection has come further.
pub(crate) fn is_held(core: &Core, stream: Stream) -> bool {
    core.geometry.numbers().any(|unit| holds(core, unit, stream))
}

/// Whether a unit takes no frames of a stream until its collection has come further.
fn holds(core: &Core, unit: u32, stream: Stream) -> bool {
    matches!(stream, Stream::Host(_)) && core.tasks.collection().holds(unit)
}
