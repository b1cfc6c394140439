//! Flushes: one flush of the device serves all tasks that wait when it begins.

use crate::core::Shared;
use crate::error::VolumeError;
use crate::frontier;
use softflash_base::planted::{self, Bug};

/// Returns when all writes that have completed are durable.
pub(crate) async fn flush(core: &Shared) -> Result<(), VolumeError> {
    core.check_running()?;
    core.flushes.run().await
}

/// Serves flushes until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    loop {
        let asked = core.flushes.next().await;
        if core.stopped.get() {
            return;
        }
        let Some(waiting) = asked else { continue };
        let result = make_durable(&core).await;
        for completion in waiting {
            completion.end(result.clone());
        }
    }
}

/// Makes all frames durable that have been appended. The frame that is being filled is not: its
/// writes have not completed, and it may wait for space that collection makes by a flush.
async fn make_durable(core: &Shared) -> Result<(), VolumeError> {
    let end = core.frames.next();
    core.frames.ended_below(end).await;
    let open = !planted::bug(Bug::WordLinesNotPadded);
    for padding in if open { frontier::pad(core) } else { Vec::new() } {
        padding.wait().await?;
    }
    core.flash.flush().await?;
    core.counters.update(|counters| counters.flushes += 1);
    core.frames.set_durable_below(end);
    if core.changes.durable(core.frames.durable_below(), frontier::is_alone(core)) {
        core.unproven.notify_one();
    }
    Ok(())
}
