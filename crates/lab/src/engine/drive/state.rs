//! Preconditioning: brings a drive into its initial state before the run.

use super::foresight::{Foresight, foretold};
use super::random_writes;
use super::seeds::PRECONDITION;
use super::settle::{Way, settle};
use super::writing::{Writing, writes_of};
use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_workload::{AccessKind, BlockWorkload, Pattern, Precondition, RequestSize, Span};

/// Pages written between two reports of the progress, each with a check for a stop.
const REPORT_EVERY: u64 = 1 << 16;

/// The drive that is prepared.
#[derive(Clone, Copy, Serialize)]
pub(in crate::engine) struct Hardware<'a> {
    pub(in crate::engine) device: &'a DeviceSpec,
    pub(in crate::engine) layout: &'a PageMapped,
    /// Spare / logical, in percent.
    pub(in crate::engine) op_percent: f64,
}

/// Brings a new drive into an initial state; returns how it was settled, if it was.
pub(in crate::engine) fn prepare(
    drive: &mut Drive,
    hardware: &Hardware<'_>,
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
        Precondition::Steady { rewrites } => {
            settled = make_steady(drive, hardware, rewrites, writing, rng, control)?;
        }
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
    hardware: &Hardware<'_>,
    rewrites: Option<u32>,
    writing: Option<Writing<'_>>,
    rng: &Rng,
    control: &Control,
) -> Result<Option<Settled>, LabError> {
    let seed = rng.fork(PRECONDITION).seed();
    let Some(writing) = writing.filter(Writing::writes) else {
        drive.make_steady(seed);
        return Ok(None);
    };
    let is_uniform = match writing {
        Writing::Workload(workload) => writes_uniformly(workload, drive.page_bytes()),
        Writing::Flows(_) | Writing::Repeated(_) => false,
    };
    let from_theory = is_uniform && rewrites.is_none();
    let mut settled = None;
    if from_theory && drive.steady_state_is_known() {
        drive.make_steady(seed);
    } else {
        let way = Way { uniform: from_theory.then_some(seed), rewrites };
        settled = Some(settle(drive, hardware, way, writing, rng, control)?);
    }
    if let Writing::Workload(workload) = writing {
        synchronise(drive, hardware.layout, workload, rng)?;
        drive.begin_steady_run();
    }
    Ok(settled)
}

/// Synchronises collection with writing: the workload writes two blocks for each write frontier.
fn synchronise(
    drive: &mut Drive,
    layout: &PageMapped,
    workload: &BlockWorkload,
    rng: &Rng,
) -> Result<(), LabError> {
    let mut foresight = Foresight::of(drive, layout);
    let mut source = writes_of(workload, drive.capacity_bytes(), rng)?;
    let page_bytes = u64::from(drive.page_bytes());
    let mut left = 2 * drive.frontier_pages();
    while left > 0 {
        let access = foretold(&mut foresight, || source.next());
        if access.kind == AccessKind::Trim {
            drive.trim_now(access.offset_bytes, access.bytes.into());
            continue;
        }
        let first = access.offset_bytes / page_bytes;
        for page in first..access.end_bytes().div_ceil(page_bytes) {
            drive.overwrite_hinted_now(page * page_bytes, access.hint);
            left = left.saturating_sub(1);
        }
    }
    Ok(())
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
