//! Settles a drive: the writes and trims of a workload, in no time, until write amplification is
//! level.
//!
//! Windows of rewrites double in length: data that is seldom written takes its share of the blocks
//! only after many rewrites, and the change from one rewrite to the next is then small long before
//! the end. A window that is as long as all before it shows such a change.
//!
//! For a large drive its [sibling](Sibling) settles, where the requests are drawn independently of
//! each other.

mod rewriting;
#[cfg(test)]
mod tests;

use super::seeds::{ACCESSES, PRECONDITION, WRITERS};
use super::state::Hardware;
use crate::cell::Control;
use crate::error::LabError;
use crate::outcome::Settled;
use rewriting::{Rewriting, Rewritten};
use softflash_base::random::Rng;
use softflash_drive::{Drive, Sibling};
use softflash_workload::{BlockSource, BlockWorkload, Scatter};
use std::borrow::Cow;

/// The largest relative change of write amplification from a window to the next, twice in a row;
/// once if the last window is the longest.
const BOUND: f64 = 0.01;

/// The most rewrites of the drive: a state that is not level then never is, or takes too long.
pub(super) const MOST_REWRITES: u32 = 64;

/// The most trims among the requests, so that writes go on.
const MOST_TRIMS: f64 = 0.99;

/// Pages of a drive from which on its sibling settles for it: a smaller one takes seconds itself.
const LARGE_PAGES: u64 = 1 << 22;

/// The way to a steady state.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The seed of the state of uniform writes, from which it begins; otherwise from a filled
    /// drive.
    pub(super) uniform: Option<u64>,
    /// Exactly so many rewrites; otherwise as many as it takes.
    pub(super) rewrites: Option<u32>,
}

impl Way {
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
    workload: &BlockWorkload,
    run: &Rng,
    control: &Control,
) -> Result<Settled, LabError> {
    let source = writes_of(workload, drive.capacity_bytes(), run)?;
    let most = way.rewrites.unwrap_or(MOST_REWRITES);
    let Some((mut sibling, by_rank, scatter)) = sibling_of(drive, hardware, &source)? else {
        way.begin(drive);
        return level(&mut Rewriting::new(Rewritten::Drive(drive), source, most, control), way);
    };
    way.begin(sibling.drive());
    let on_sibling = Rewritten::Sibling(&mut sibling);
    let mut rewriting = Rewriting::new(on_sibling, by_rank, most, control);
    let settled = level(&mut rewriting, way)?;
    let mut by_rank = rewriting.into_source();
    let place = |offset_bytes| match &scatter {
        Some(scatter) => scatter.place(offset_bytes),
        None => offset_bytes,
    };
    let mut rng = run.fork(PRECONDITION);
    sibling.expand_into(drive, &place, &mut |sibling| advance(sibling, &mut by_rank, &mut rng));
    Ok(settled)
}

/// Advances a sibling by up to a block of every write frontier.
fn advance(sibling: &mut Sibling, source: &mut BlockSource, rng: &mut Rng) {
    let page_bytes = u64::from(sibling.drive().page_bytes());
    let accesses = rng.below(sibling.drive().frontier_pages());
    for _ in 0..accesses {
        Rewritten::Sibling(sibling).play(source.next(), page_bytes);
    }
}

/// Rewrites until write amplification is level, or so often as the way says.
fn level(rewriting: &mut Rewriting<'_>, way: Way) -> Result<Settled, LabError> {
    let most = rewriting.most();
    let (mut before, mut was_level) = (rewriting.window(1)?, false);
    loop {
        let rewrites = rewriting.rewrites();
        let left = most.saturating_sub(rewrites);
        if left == 0 || rewriting.is_over() {
            return Ok(Settled { rewrites, change: None, waf: before, is_level: false });
        }
        let now = rewriting.window(rewrites.min(left))?;
        let change = now / before - 1.0;
        let (rewrites, level) = (rewriting.rewrites(), change.abs() <= BOUND);
        let is_done = way.rewrites.is_none() && level && was_level;
        if is_done || rewrites >= most || rewriting.is_over() {
            return Ok(Settled { rewrites, change: Some(change), waf: now, is_level: level });
        }
        (before, was_level) = (now, level);
    }
}

/// The writes and trims of a workload, to the places that the run writes.
pub(super) fn writes_of(
    workload: &BlockWorkload,
    capacity_bytes: u64,
    run: &Rng,
) -> Result<BlockSource, LabError> {
    let (writing, name) = match workload.of_writers() {
        Some(writers) if workload.read_fraction == 1.0 => (Cow::Owned(writers), WRITERS),
        _ => (Cow::Borrowed(workload), ACCESSES),
    };
    let trims = writing.trim_fraction / (1.0 - writing.read_fraction).max(f64::MIN_POSITIVE);
    let source = writing.source(capacity_bytes, run.fork(name))?;
    Ok(source.without_reads(trims.min(MOST_TRIMS), run.fork(PRECONDITION)))
}

/// The sibling of a large drive, with the requests in the order of their popularity, and how that
/// order is scattered over the drive. `None` where the drive settles itself.
fn sibling_of(
    drive: &Drive,
    hardware: &Hardware<'_>,
    source: &BlockSource,
) -> Result<Option<(Sibling, BlockSource, Option<Scatter>)>, LabError> {
    let page_bytes = u64::from(drive.page_bytes());
    if drive.capacity_bytes() / page_bytes < LARGE_PAGES {
        return Ok(None);
    }
    let Some((by_rank, scatter)) = source.clone().by_rank() else { return Ok(None) };
    // Of several places in a page, each has a popularity of its own.
    let whole = |scatter: &Scatter| u64::from(scatter.granule_bytes()).is_multiple_of(page_bytes);
    if !scatter.as_ref().is_none_or(whole) {
        return Ok(None);
    }
    let Hardware { device, layout, op_percent } = *hardware;
    let sibling = Sibling::of(device, layout, op_percent, by_rank.longest_write_bytes().into())?;
    Ok(sibling.map(|sibling| (sibling, by_rank, scatter)))
}
