//! A domain at rest only reads: it programs and erases nothing, so that no read waits for that.

use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::flusher::flush;
use softflash_base::planted::{self, Bug};
use std::time::Duration;

/// Time between two looks at the programs and erases under way.
const LOOK: Duration = Duration::from_micros(200);

/// Lets a domain come to rest: what was written before is durable on return, and nothing is
/// programmed or erased until it [resumes](resume). No client may write.
///
/// # Errors
/// Those of the flush; the domain works then.
pub(crate) async fn rest(core: &Shared) -> Result<(), VolumeError> {
    core.order.operation_ended().await;
    if !planted::bug(Bug::WorkDuringRest) {
        core.order.rest();
    }
    if !planted::bug(Bug::ErasesDuringRest) {
        hold_erases(core, true);
    }
    core.order.all_ended().await;
    if let Err(error) = flush(core).await {
        resume(core);
        return Err(error);
    }
    // The flush has padded the open superblocks.
    core.order.all_ended().await;
    while core.geometry.units().iter().any(|unit| core.flash.is_changing(unit)) {
        core.tasks.check_running()?;
        core.tasks.sleep_until(core.tasks.now() + LOOK).await;
    }
    if !planted::bug(Bug::WorkDuringRest) {
        core.order.padded_at_rest();
    }
    Ok(())
}

/// Lets a domain at rest work again.
pub(crate) fn resume(core: &Core) {
    hold_erases(core, false);
    core.order.resume();
}

fn hold_erases(core: &Core, is_held: bool) {
    core.geometry.units().iter().for_each(|unit| core.flash.hold_erases(unit, is_held));
}
