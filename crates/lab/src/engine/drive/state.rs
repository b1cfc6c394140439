//! Preconditioning: brings a drive into its initial state before the run.

use super::random_writes;
use super::seeds::PRECONDITION;
use super::settle::settle;
use super::writing::Writing;
use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_workload::{BlockWorkload, Pattern, Precondition, RequestSize, Span};

/// Pages written between two reports of the progress, each with a check for a stop.
const REPORT_EVERY: u64 = 1 << 16;

/// Brings a drive into an initial state; returns how it was settled, if it was.
pub(in crate::engine) fn prepare(
    drive: &mut Drive,
    state: Precondition,
    writing: Option<Writing<'_>>,
    rng: &Rng,
    control: &Control,
) -> Result<Option<Settled>, LabError> {
    let mut settled = None;
    match state {
        Precondition::None => {}
        Precondition::Fill => drive.fill(),
        Precondition::Overwrite { times } => {
            drive.fill();
            overwrite(drive, times, rng.fork(PRECONDITION), control)?;
        }
        Precondition::Steady => settled = make_steady(drive, writing, rng, control)?,
        Precondition::Random4k { seconds } => {
            drive.fill();
            let rng = rng.fork(PRECONDITION);
            random_writes::write_for(drive, u64::from(seconds) * 1_000_000_000, rng, control)?;
        }
    }
    drive.clear_counters();
    Ok(settled)
}

/// Brings a drive into the steady state of a workload's writes; of uniform writes of pages if there
/// is no workload, or if it writes nothing. Theory gives the state of uniform writes for some
/// policies; the others settle from there, and other writes from a filled drive.
fn make_steady(
    drive: &mut Drive,
    writing: Option<Writing<'_>>,
    rng: &Rng,
    control: &Control,
) -> Result<Option<Settled>, LabError> {
    let writing = writing.filter(Writing::writes);
    let uniform = match writing {
        None => true,
        Some(Writing::Workload(workload)) => writes_uniformly(workload, drive.page_bytes()),
        Some(Writing::Flows(_)) => false,
    };
    if uniform {
        drive.make_steady(rng.fork(PRECONDITION).seed());
    } else {
        drive.fill();
    }
    match writing {
        Some(writing) if !(uniform && drive.steady_state_is_known()) => {
            let writes = writing.source(drive, rng)?;
            settle(drive, writes, control).map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether a workload writes only single pages, or an integer fraction of one, uniformly over the
/// whole drive: its steady state is known in closed form.
fn writes_uniformly(workload: &BlockWorkload, page_bytes: u32) -> bool {
    let size = workload.write_size.as_ref().or(workload.size.as_ref());
    let single = match size {
        Some(RequestSize::Fixed(bytes)) => {
            let align_bytes = workload.align_bytes.unwrap_or(*bytes).max(1);
            page_bytes.is_multiple_of(*bytes) && align_bytes == *bytes
        }
        _ => false,
    };
    let whole = workload.span == Span::default();
    let untrimmed = workload.trim_fraction == 0.0;
    single && whole && untrimmed && matches!(workload.pattern, Pattern::Random)
}

/// Writes single pages uniformly at random, `times` times the number of the drive's pages.
fn overwrite(
    drive: &mut Drive,
    times: u32,
    mut rng: Rng,
    control: &Control,
) -> Result<(), LabError> {
    let page_bytes = u64::from(drive.page_bytes());
    let pages = drive.capacity_bytes() / page_bytes;
    let all = pages * u64::from(times);
    for page in 0..all {
        drive.overwrite_now(rng.below(pages) * page_bytes);
        if page.is_multiple_of(REPORT_EVERY) {
            prepared(control, page as f64 / all as f64)?;
        }
    }
    Ok(())
}
