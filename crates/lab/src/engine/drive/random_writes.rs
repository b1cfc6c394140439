//! Random writes of 4 KiB for a virtual time, as fast as a drive takes them.
//!
//! An hour of them is some hundred million requests. So a few are played in time, which measures
//! how fast the drive takes them in its present state, and then as many as it takes in a step are
//! written in no time. Steps are short against the change of the state.

use crate::cell::Control;
use crate::engine::progress::prepared;
use crate::error::LabError;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Time};
use softflash_drive::{Done, Drive, HostRequest};

/// The length of a write.
const WRITE_BYTES: u64 = 4096;

/// Writes outstanding.
const OUTSTANDING: u64 = 256;

/// Writes that are played in time in each step, at least and at most.
const TIMED: [u64; 2] = [4 * OUTSTANDING, 64 * OUTSTANDING];

/// The share of the capacity that a step writes at most, in time and in no time each.
const STEP_SHARE: f64 = 1.0 / 64.0;

/// Writes between two checks for a stop.
const CHECK_EVERY: u64 = 1 << 20;

/// Writes at random over the whole drive for so long. Nothing may be under way, before and after.
pub(super) fn write_for(
    drive: &mut Drive,
    time_ns: u64,
    rng: Rng,
    control: &Control,
) -> Result<(), LabError> {
    let places = (drive.capacity_bytes() / WRITE_BYTES).max(1);
    let most = (places as f64 * STEP_SHARE) as u64;
    let mut writes = Writes { places, timed: most.clamp(TIMED[0], TIMED[1]), rng };
    let mut left_ns = time_ns;
    while left_ns > 0 {
        let each_ns = writes.in_time(drive, &mut left_ns)?;
        let count = ((left_ns as f64 / each_ns) as u64).min(most);
        writes.in_no_time(drive, count, control)?;
        left_ns = left_ns.saturating_sub((count as f64 * each_ns) as u64);
        prepared(control, 1.0 - left_ns as f64 / time_ns as f64)?;
        // Less than one write is left.
        if count == 0 {
            break;
        }
    }
    Ok(())
}

/// Random writes.
struct Writes {
    /// Places of writes.
    places: u64,
    /// Writes of a step that are played in time.
    timed: u64,
    rng: Rng,
}

impl Writes {
    #[inline]
    fn next_offset(&mut self) -> u64 {
        self.rng.below(self.places) * WRITE_BYTES
    }

    /// Plays writes until all are on flash, and takes their time off what is left; returns the time
    /// of each.
    fn in_time(&mut self, drive: &mut Drive, left_ns: &mut u64) -> Result<f64, LabError> {
        let begin = drive.now();
        let until = begin + *left_ns;
        let mut done: Vec<Done> = Vec::new();
        for _ in 0..OUTSTANDING {
            self.submit(drive, begin)?;
        }
        let mut made = OUTSTANDING;
        while drive.play_to_next_completion(Time::MAX, &mut done) {
            for done in done.drain(..) {
                if made < self.timed && done.at < until {
                    self.submit(drive, done.at)?;
                    made += 1;
                }
            }
        }
        let took_ns = drive.now().since_ns(begin).max(1);
        *left_ns = left_ns.saturating_sub(took_ns);
        Ok(took_ns as f64 / made as f64)
    }

    fn submit(&mut self, drive: &mut Drive, now: Time) -> Result<(), LabError> {
        let (kind, offset_bytes) = (AccessKind::Write, self.next_offset());
        Ok(drive.submit(now, HostRequest::new(0, kind, offset_bytes, WRITE_BYTES))?)
    }

    /// Makes so many writes in no time.
    fn in_no_time(
        &mut self,
        drive: &mut Drive,
        count: u64,
        control: &Control,
    ) -> Result<(), LabError> {
        let page_bytes = u64::from(drive.page_bytes());
        for write in 0..count {
            let offset_bytes = self.next_offset();
            for page in 0..WRITE_BYTES.div_ceil(page_bytes) {
                drive.overwrite_now(offset_bytes + page * page_bytes);
            }
            if write.is_multiple_of(CHECK_EVERY) && control.stopped() {
                return Err(LabError::Stopped);
            }
        }
        Ok(())
    }
}
