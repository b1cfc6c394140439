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
    let end = all_padded(core).await;
    core.flash.flush(Hint::FOREGROUND).await?;
    core.count(|counters| counters.flushes += 1);
    if core.order.flushed(end, frontier::is_alone(core)) {
        core.tasks.ask_for_proof();
    }
    Ok(())
}

/// Waits until all frames have ended, with padding behind them, and returns the number of the next
/// one. The padding is among the frames that must end: frames behind it may be under way when the
/// flush ends, and a power cut must not destroy durable pages by their programs.
async fn all_padded(core: &Shared) -> u64 {
    loop {
        let rewrites = core.order.rewrites();
        if !core.order.is_padded() && !planted::bug(Bug::WordLinesNotPadded) {
            frontier::pad(core);
        }
        let end = core.order.all_ended().await;
        // Data of a frame that failed meanwhile are behind the padding.
        if core.order.rewrites() == rewrites {
            return end;
        }
    }
}
