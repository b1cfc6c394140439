//! The progress of a run.

use crate::cell::{Control, Limits};
use crate::error::LabError;
use softflash_base::Time;
use softflash_workload::Precondition;
use std::cell::Cell;

/// The share of a run's progress that is assigned to filling the device or to its initial state.
const FILL_SHARE: f64 = 0.5;
/// Requests between two progress reports.
const SILENT: u64 = 256;

/// The share of a run's progress that is over when its initial state is reached: states that are
/// written in order take nearly no time.
pub fn share_of_preparation(state: Precondition) -> f64 {
    match state {
        Precondition::None | Precondition::Fill => 0.0,
        _ => FILL_SHARE,
    }
}

/// Reports the completed share of the initial state; an error if the run is to stop.
pub fn prepared(control: &Control, share: f64) -> Result<(), LabError> {
    if control.stopped() {
        return Err(LabError::Stopped);
    }
    (control.on_progress)(FILL_SHARE * share.min(1.0));
    Ok(())
}

/// Reports the progress of a run.
pub struct Progress<'a> {
    control: &'a Control<'a>,
    filled: Cell<u64>,
    measured: Cell<u64>,
}

impl<'a> Progress<'a> {
    /// The progress at the beginning of a run.
    pub fn new(control: &'a Control<'a>) -> Progress<'a> {
        Progress { control, filled: Cell::new(0), measured: Cell::new(0) }
    }

    /// Counts one of `all` steps of the preparation.
    pub fn filled(&self, all: usize) {
        let filled = count(&self.filled);
        if filled.is_multiple_of(SILENT) {
            (self.control.on_progress)(FILL_SHARE * filled as f64 / all as f64);
        }
    }

    /// Counts a completed request of the measured part, which began at `begin`.
    pub fn measured(&self, limits: &Limits, begin: Time, now: Time) {
        let measured = count(&self.measured);
        if !measured.is_multiple_of(SILENT) {
            return;
        }
        let of_requests = limits.requests.map(|all| measured as f64 / all.max(1) as f64);
        let of_time = limits.duration_ns.map(|all| now.since_ns(begin) as f64 / all.max(1) as f64);
        let share = of_requests.into_iter().chain(of_time).fold(0.0, f64::max).min(1.0);
        (self.control.on_progress)(FILL_SHARE + (1.0 - FILL_SHARE) * share);
    }
}

fn count(counter: &Cell<u64>) -> u64 {
    counter.set(counter.get() + 1);
    counter.get()
}
