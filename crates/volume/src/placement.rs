//! The unit of the next frame: the policy's choice of those that can take it.

use crate::core::Core;
use crate::frontier;
use crate::stream::Stream;
use softflash_base::cast;
use softflash_policy::placement::{self, Candidates};

/// The unit that takes the next frame of a stream; `None` where none can.
pub(crate) fn unit_for(core: &Core, stream: Stream) -> Option<u32> {
    let units = u32::from(core.geometry.unit_count());
    // Rooms are compared by units that are full or not: frames are small beside them.
    let is_full = |unit| u32::from(!frontier::can_append(core, unit, stream));
    let column = |of: &dyn Fn(u32) -> u32| (0..units).map(of).collect::<Vec<u32>>();
    let (erases, waiting) = (
        column(&|unit| core.flash.most_erases(core.unit_id(unit))),
        column(&|unit| core.flash.load(core.unit_id(unit))),
    );
    let candidates = Candidates {
        occupied: &column(&is_full),
        most: 1,
        erases: &erases,
        die: &column(&|unit| unit),
        waiting: &waiting,
        cursor: core.frontiers.cursor(),
    };
    let chosen = placement::choose(core.config.placement, &candidates)?;
    assert!(cast::index(chosen) < erases.len(), "a policy chose unit {chosen} of {units}");
    core.frontiers.served(chosen);
    Some(chosen)
}
