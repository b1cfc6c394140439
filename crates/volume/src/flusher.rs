//! Flushes: one flush of the device serves all tasks that wait when it begins.

use crate::core::Shared;
use crate::error::VolumeError;
use crate::frontier;
use softflash_base::planted::{self, Bug};
use softflash_ftl::Hint;

/// Returns when all writes that have completed are durable.
pub(crate) async fn flush(core: &Shared) -> Result<(), VolumeError> {
    core.tasks.flush().await
}

/// Serves flushes until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    core.tasks.serve_flushes(async || make_durable(&core).await).await;
}

/// Makes all frames durable that have been appended. The frame that is being filled is not: its
/// writes have not completed, and it may wait for space that collection makes by a flush.
async fn make_durable(core: &Shared) -> Result<(), VolumeError> {
    // The padding is among the frames that the flush waits for. Frames behind it may still be under
    // way when the flush ends; a power cut must not destroy durable pages by their programs.
    if !planted::bug(Bug::WordLinesNotPadded) {
        frontier::pad(core);
    }
    let end = core.order.all_ended().await;
    core.flash.flush(Hint::FOREGROUND).await?;
    core.count(|counters| counters.flushes += 1);
    if core.order.flushed(end, frontier::is_alone(core)) {
        core.tasks.ask_for_proof();
    }
    Ok(())
}
