//! Settles a drive: the writes and trims of a workload, in no time, until write amplification is
//! level.
//!
//! Windows of rewrites double in length: data that is seldom written takes its share of the blocks
//! only after many rewrites, and the change from one rewrite to the next is then small long before
//! the end. A window that is as long as all before it shows such a change.

use super::seeds::{ACCESSES, PRECONDITION, WRITERS};
use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_workload::{AccessKind, BlockSource, BlockWorkload};
use std::borrow::Cow;

/// The largest relative change of write amplification from a window to the next, twice in a row;
/// once if the last window is the longest.
const BOUND: f64 = 0.01;

/// The most rewrites of the drive: a state that is not level then never is, or takes too long.
const MOST_REWRITES: u32 = 64;

/// The most trims among the requests, so that writes go on.
const MOST_TRIMS: f64 = 0.99;

/// Bytes written between two reports of progress, and checks for a stop.
const REPORT_EVERY: u64 = 1 << 30;

/// Runs the workload's writes and trims until write amplification is level, of a run with the
/// random numbers `run`. Nothing may be under way.
pub(super) fn settle(
    drive: &mut Drive,
    workload: &BlockWorkload,
    run: &Rng,
    control: &Control,
) -> Result<Settled, LabError> {
    let source = writes_of(workload, drive.capacity_bytes(), run)?;
    let mut rewriting = Rewriting { source, rewrites: 0, control };
    let (mut before, mut was_level) = (rewriting.window(drive, 1)?, false);
    loop {
        let now = rewriting.window(drive, rewriting.rewrites)?;
        let change = now / before - 1.0;
        let (rewrites, level) = (rewriting.rewrites, change.abs() <= BOUND);
        if (level && was_level) || rewrites >= MOST_REWRITES {
            return Ok(Settled { rewrites, change, is_level: level });
        }
        (before, was_level) = (now, level);
    }
}

/// The writes and trims of a workload, to the places that the run writes.
fn writes_of(
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

struct Rewriting<'a> {
    source: BlockSource,
    /// Rewrites so far.
    rewrites: u32,
    control: &'a Control<'a>,
}

impl Rewriting<'_> {
    /// Writes so many times the capacity; returns the write amplification of these writes.
    fn window(&mut self, drive: &mut Drive, rewrites: u32) -> Result<f64, LabError> {
        drive.clear_counters();
        for _ in 0..rewrites {
            self.rewrite(drive)?;
            self.rewrites += 1;
        }
        Ok(drive.counters().waf())
    }

    fn rewrite(&mut self, drive: &mut Drive) -> Result<(), LabError> {
        let page_bytes = u64::from(drive.page_bytes());
        let capacity_bytes = drive.capacity_bytes();
        let (mut written, mut report_at) = (0, 0);
        while written < capacity_bytes {
            let access = self.source.next();
            if access.kind == AccessKind::Trim {
                drive.trim_now(access.offset_bytes, access.bytes.into());
                continue;
            }
            let first = access.offset_bytes / page_bytes;
            for page in first..access.end_bytes().div_ceil(page_bytes) {
                drive.overwrite_hinted_now(page * page_bytes, access.hint);
            }
            written += u64::from(access.bytes);
            if written >= report_at {
                report_at = written + REPORT_EVERY;
                self.report(written as f64 / capacity_bytes as f64)?;
            }
        }
        Ok(())
    }

    fn report(&self, of_rewrite: f64) -> Result<(), LabError> {
        prepared(self.control, (f64::from(self.rewrites) + of_rewrite) / f64::from(MOST_REWRITES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_workload::{Pattern, RequestSize};
    use std::collections::BTreeMap;

    const CAPACITY_BYTES: u64 = 1 << 30;

    /// The offset with the most of the next requests, none of which may be a read.
    fn most_popular(mut source: BlockSource, reads: bool) -> u64 {
        let mut requests: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..1000 {
            let access = source.next();
            assert!(reads || access.kind != AccessKind::Read);
            *requests.entry(access.offset_bytes).or_default() += 1;
        }
        requests.into_iter().max_by_key(|&(_, count)| count).unwrap().0
    }

    #[test]
    fn a_state_is_settled_with_the_popular_places_of_its_run() {
        let pattern = Pattern::Zipf { exponent: 2.0, scattered: true };
        let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), pattern);
        workload.read_fraction = 0.5;
        let run = Rng::seeded(7);
        let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
        let played = workload.source(CAPACITY_BYTES, run.fork(ACCESSES)).unwrap();
        assert_eq!(most_popular(settled, false), most_popular(played, true));
        // The threads that only write have popular places of their own.
        (workload.read_fraction, workload.writers) = (1.0, 1);
        let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
        let writers = workload.of_writers().unwrap();
        let played = writers.source(CAPACITY_BYTES, run.fork(WRITERS)).unwrap();
        assert_eq!(most_popular(settled, false), most_popular(played, false));
    }
}
