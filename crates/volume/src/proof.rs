//! Proof of the last changes: a second after a flush at the latest, heads on other units say that
//! they are durable. The loss of the last frames before a power cut is known from then on, where it
//! would look like a torn write otherwise.

use crate::classes::numbers::NO_HINT;
use crate::core::{Core, Shared};
use crate::error::VolumeError;
use crate::flusher::flush;
use crate::frontier;
use crate::stream::Stream;
use softflash_base::cast;
use softflash_base::planted::{self, Bug};
use std::time::Duration;

/// The longest time between a flush and the proof of its changes.
const PROOF_TIME: Duration = Duration::from_secs(1);

/// The longest time between a proof that failed and the next try: each one writes a frame.
const LONGEST_PAUSE: Duration = Duration::from_secs(64);

/// Proves the changes of flushes until the domain is stopped.
pub(crate) async fn run(core: Shared) {
    while !core.tasks.is_stopped() {
        core.tasks.proof_due(PROOF_TIME).await;
        core.order.works().await;
        if planted::bug(Bug::EndNotProven) {
            continue;
        }
        let mut pause = PROOF_TIME;
        while prove(&core).await.is_err() && !core.tasks.is_stopped() {
            core.tasks.pause(pause).await;
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }
}

/// Frames that are written for one proof: more mean that units fail.
const MOST_FRAMES: u32 = 16;

/// Writes empty frames until all changes before are proven, or no unit takes one. An error if a
/// frame or its flush failed: another try may succeed.
pub(crate) async fn prove(core: &Shared) -> Result<(), VolumeError> {
    let end = core.order.next_change();
    let mut last = None;
    for attempt in 0..MOST_FRAMES {
        let Some(unit) = core.order.first_unproven(end) else { break };
        core.order.works().await;
        last = other_frontier(core, unit, attempt);
        if !write(core, last).await? {
            return Ok(());
        }
    }
    // Another one, in case that the flash loses the last frame without an error.
    if let Some((unit, _)) = last {
        core.order.works().await;
        write(core, other_frontier(core, core.unit_id(unit), 0).or(last)).await?;
    }
    Ok(())
}

/// Writes an empty frame and makes it durable. False if no frontier takes it.
async fn write(core: &Shared, frontier: Option<(u32, Stream)>) -> Result<bool, VolumeError> {
    let Some((unit, stream)) = frontier else { return Ok(false) };
    if let Some(written) = frontier::append_empty(core, unit, stream, 1) {
        written.wait().await?;
        flush(core).await?;
    }
    Ok(true)
}

/// A frontier for data on another unit than one, or on that if it is alone; another one with each
/// attempt.
fn other_frontier(core: &Core, unit: u16, attempt: u32) -> Option<(u32, Stream)> {
    let units = core.geometry.numbers();
    let is_other = |other: &u32| core.unit_id(*other) != unit || frontier::is_alone(core);
    let others: Vec<u32> = units.filter(is_other).collect();
    let of_data = || core.frontiers.streams().filter(|stream| stream.holds_changes());
    let all = others.iter().flat_map(|&unit| of_data().map(move |stream| (unit, stream)));
    let open: Vec<(u32, Stream)> =
        all.filter(|&(unit, stream)| frontier::room(core, unit, stream) > 0).collect();
    if let Some(chosen) = cast::index(attempt).checked_rem(open.len()) {
        return open.get(chosen).copied();
    }
    let streams = [Stream::Host(NO_HINT), Stream::Collector(NO_HINT)];
    let mut all = streams.iter().flat_map(|&stream| others.iter().map(move |&unit| (unit, stream)));
    all.find(|&(unit, stream)| frontier::open(core, unit, stream).is_ok_and(|is_open| is_open))
}
