//! Preconditioning: brings a drive into its initial state before the run.

use super::random_writes;
use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_workload::{
    AccessKind, BlockWorkload, Pattern, Precondition, RequestSize, Span, SteadyCriterion,
    SteadyState,
};

/// The share of the capacity that is overwritten between two checks for a steady state.
const ROUND_SHARE: f64 = 0.25;

/// The maximum number of rounds; after them the state is accepted as steady.
const MOST_ROUNDS: u32 = 40;

/// Pages written between two reports of the progress, each with a check for a stop.
const REPORT_EVERY: u64 = 1 << 16;

/// Brings a drive into an initial state.
pub(in crate::engine) fn prepare(
    drive: &mut Drive,
    state: Precondition,
    workload: Option<&BlockWorkload>,
    rng: &Rng,
    control: &Control,
) -> Result<(), LabError> {
    let rng = rng.fork("precondition");
    match state {
        Precondition::None => {}
        Precondition::Fill => drive.fill(),
        Precondition::Overwrite { times } => {
            drive.fill();
            overwrite(drive, times, rng, control)?;
        }
        Precondition::Steady => match workload {
            Some(workload) if !writes_uniformly(workload, drive.page_bytes()) => {
                drive.fill();
                settle(drive, workload, rng, control)?;
            }
            _ => drive.make_steady(rng.seed()),
        },
        Precondition::Random4k { seconds } => {
            drive.fill();
            random_writes::write_for(drive, u64::from(seconds) * 1_000_000_000, rng, control)?;
        }
    }
    drive.clear_counters();
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

/// Runs the workload's writes until write amplification is steady.
fn settle(
    drive: &mut Drive,
    workload: &BlockWorkload,
    rng: Rng,
    control: &Control,
) -> Result<(), LabError> {
    let page_bytes = u64::from(drive.page_bytes());
    let mut writes = workload.clone();
    (writes.read_fraction, writes.trim_fraction) = (0.0, 0.0);
    let mut source = writes.source(drive.capacity_bytes(), rng)?;
    let mut steady = SteadyState::new(SteadyCriterion::default());
    let round = (drive.capacity_bytes() as f64 * ROUND_SHARE) as u64;
    for number in 0..MOST_ROUNDS {
        drive.clear_counters();
        let (mut written, mut reported) = (0, 0);
        while written < round {
            let access = source.next();
            if access.kind != AccessKind::Write {
                continue;
            }
            let first = access.offset_bytes / page_bytes;
            for page in first..access.end_bytes().div_ceil(page_bytes) {
                drive.overwrite_hinted_now(page * page_bytes, access.hint);
            }
            written += u64::from(access.bytes);
            if written >= reported {
                reported = written + REPORT_EVERY * page_bytes;
                let rounds = f64::from(number) + written as f64 / round.max(1) as f64;
                prepared(control, rounds / f64::from(MOST_ROUNDS))?;
            }
        }
        if steady.add(drive.counters().waf()) {
            break;
        }
    }
    Ok(())
}
