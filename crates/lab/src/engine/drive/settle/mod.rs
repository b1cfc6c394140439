//! Settles a drive: the writes and trims of a workload, in no time, until write amplification is
//! level.
//!
//! Windows of rewrites double in length: data that is seldom written takes its share of the blocks
//! only after many rewrites, and the change from one rewrite to the next is then small long before
//! the end. A window that is as long as all before it shows such a change.
//!
//! For a large drive its [sibling](Sibling) settles, where the requests are drawn independently of
//! each other.

mod by_sibling;
mod rewriting;
#[cfg(test)]
mod tests;

use super::foresight::Foresight;
use super::seeds::PRECONDITION;
use super::state::Hardware;
use super::writing::{Writes, Writing, writes_of, writes_of_flows};
use crate::cell::Control;
use crate::engine::level::Level;
use crate::error::LabError;
use crate::outcome::Settled;
use crate::states::StateKey;
use by_sibling::BySibling;
use rewriting::{Rewriting, Rewritten};
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_drive::{Drive, Sibling};

/// The most rewrites of the drive: a state that is not level then never is, or takes too long.
pub(super) const MOST_REWRITES: u32 = 64;

/// Level windows in a row that are enough.
const LEVEL_WINDOWS: u32 = 2;

/// Pages of a drive from which on its sibling settles for it: a smaller one takes seconds itself.
const LARGE_PAGES: u64 = 1 << 22;

/// The way to a steady state.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Way {
    /// The seed of the state of uniform writes, from which it begins; otherwise from a filled
    /// drive.
    pub(super) uniform: Option<u64>,
    /// Exactly so many rewrites; otherwise as many as it takes.
    pub(super) rewrites: Option<u32>,
}

impl Way {
    fn level(self) -> Level {
        let enough = self.rewrites.is_none().then_some(LEVEL_WINDOWS);
        Level::new(self.rewrites.unwrap_or(MOST_REWRITES), enough)
    }

    fn begin(self, drive: &mut Drive) {
        match self.uniform {
            Some(seed) => drive.make_steady(seed),
            None => drive.fill(),
        }
    }
}

/// Runs the workload's writes and trims on a new drive until write amplification is level, of a run
/// with the random numbers `run`.
pub(super) fn settle(
    drive: &mut Drive,
    hardware: &Hardware<'_>,
    way: Way,
    writing: Writing<'_>,
    run: &Rng,
    control: &Control,
) -> Result<Settled, LabError> {
    let source = source_of(writing, hardware, drive.capacity_bytes(), run)?;
    let key = StateKey::of(&(hardware, way, writing, run.seed()))?;
    if let Some(by_sibling) = sibling_of(drive, hardware, &source, key)? {
        return by_sibling.settle(drive, way, run, control);
    }
    way.begin(drive);
    let foresight = Foresight::of(drive, hardware.layout);
    let (mut level, mut rewriting) =
        (way.level(), Rewriting::new(Rewritten::Drive(drive), source, control).with(foresight));
    while let Some(rewrites) = level.next_window() {
        if !rewriting.window(&mut level, rewrites)? {
            break;
        }
    }
    Ok(level.settled())
}

/// The writes that settle a drive. How much each of several flows writes is up to the drive: so
/// they are played on another one, in the state of uniform writes if that is known, in which
/// collection slows them as it will.
fn source_of(
    writing: Writing<'_>,
    hardware: &Hardware<'_>,
    capacity_bytes: u64,
    run: &Rng,
) -> Result<Writes, LabError> {
    let flows = match writing {
        Writing::Workload(workload) => {
            return writes_of(workload, capacity_bytes, run).map(Writes::Workload);
        }
        Writing::Repeated(requests) => return Ok(Writes::Repeated(requests.clone())),
        Writing::Flows(flows) => flows,
    };
    let Hardware { device, layout, op_percent } = *hardware;
    let mut played = Drive::new(device, layout, op_percent)?;
    match played.steady_state_is_known() {
        true => played.make_steady(run.fork(PRECONDITION).seed()),
        false => played.fill(),
    }
    writes_of_flows(flows, &mut played, run)
}

/// The sibling of a large drive, and what is written to it; `None` where the drive settles itself.
fn sibling_of(
    drive: &Drive,
    hardware: &Hardware<'_>,
    source: &Writes,
    key: StateKey,
) -> Result<Option<BySibling>, LabError> {
    let page_bytes = u64::from(drive.page_bytes());
    if drive.capacity_bytes() / page_bytes < LARGE_PAGES {
        return Ok(None);
    }
    let Hardware { device, layout, op_percent } = *hardware;
    let Some((by_rank, scatter)) = source.clone().by_rank() else { return Ok(None) };
    // Of several places in a page, each has a popularity of its own.
    if !scatter.keeps_pages(page_bytes) {
        return Ok(None);
    }
    let sibling = Sibling::of(device, layout, op_percent, by_rank.longest_write_bytes())?;
    Ok(sibling.map(|sibling| BySibling { sibling, by_rank, scatter, key }))
}
