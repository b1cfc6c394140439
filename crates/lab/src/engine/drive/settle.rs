//! Settles a drive: the writes and trims of a workload, in no time, until write amplification is
//! level.
//!
//! Windows of rewrites double in length: data that is seldom written takes its share of the blocks
//! only after many rewrites, and the change from one rewrite to the next is then small long before
//! the end. A window that is as long as all before it shows such a change.

use super::writing::Writes;
use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use crate::outcome::Settled;
use softflash_drive::Drive;
use softflash_workload::AccessKind;

/// The largest relative change of write amplification from a window to the next, twice in a row;
/// once if the last window is the longest.
const BOUND: f64 = 0.01;

/// The most rewrites of the drive: a state that is not level then never is, or takes too long.
const MOST_REWRITES: u32 = 64;

/// Bytes written between two reports of progress, and checks for a stop.
const REPORT_EVERY: u64 = 1 << 30;

/// Makes writes and trims until write amplification is level. Nothing may be under way.
pub(super) fn settle(
    drive: &mut Drive,
    source: Writes,
    control: &Control,
) -> Result<Settled, LabError> {
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

struct Rewriting<'a> {
    source: Writes,
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
