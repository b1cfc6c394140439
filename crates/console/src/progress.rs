//! The progress of a simulation on standard error: a bar on a terminal, otherwise a line every few
//! seconds while the drive is preconditioned, which can take minutes.

use crate::host;
use crate::output;
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Steps of the bar.
const STEPS: f64 = 1000.0;

/// The time between two lines.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// The name of the part of a run before the measured one.
const PREPARATION: &str = "preconditioning";

/// Progress of a simulation.
pub struct Progress {
    bar: ProgressBar,
    /// Whether the bar shows the measured part as well.
    whole: bool,
    measuring: AtomicBool,
    begin: Instant,
    last_line: Mutex<Instant>,
}

impl Progress {
    /// Progress of a whole run.
    pub fn of_run() -> Progress {
        Progress::new(true)
    }

    /// Progress of the preparation only: something else shows that of the measured part.
    pub fn of_preparation() -> Progress {
        Progress::new(false)
    }

    fn new(whole: bool) -> Progress {
        let bar = output::steps(STEPS as u64);
        bar.set_message(PREPARATION);
        let begin = host::now();
        let (measuring, last_line) = (AtomicBool::new(false), Mutex::new(begin));
        Progress { bar, whole, measuring, begin, last_line }
    }

    /// Shows the completed share of the run.
    pub fn show(&self, share: f64) {
        let measuring = self.measuring.load(Ordering::Relaxed);
        if self.whole || !measuring {
            self.bar.set_position((share.clamp(0.0, 1.0) * STEPS) as u64);
        }
        if self.bar.is_hidden() && !measuring {
            self.line(&line_of(share, self.begin.elapsed()));
        }
    }

    /// Tells more of the preparation: beside the bar, or as a line.
    pub fn tell(&self, text: &str) {
        match self.bar.is_hidden() {
            true => self.line(text),
            false => self.bar.set_message(text.to_owned()),
        }
    }

    /// The preparation is over.
    pub fn measuring(&self) {
        self.measuring.store(true, Ordering::Relaxed);
        match self.whole {
            true => self.bar.set_message("simulating"),
            false => self.bar.finish_and_clear(),
        }
    }

    /// The run is over.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self, text: &str) {
        let mut last = self.last_line.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() >= LINE_EVERY {
            *last = host::now();
            output::say(text);
        }
    }
}

/// A share of a run that took so long.
fn line_of(share: f64, took: Duration) -> String {
    // Before that, an estimate would be a guess.
    let left = (share >= 0.005).then(|| {
        let seconds = took.as_secs_f64() * (1.0 / share - 1.0);
        format!(", about {seconds:.0} s left")
    });
    let left = left.unwrap_or_default();
    format!("{PREPARATION}: {:.0} % of the run done{left}", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_long_the_run_still_takes() {
        let after = |share| line_of(share, Duration::from_secs(30));
        assert_eq!(after(0.1), "preconditioning: 10 % of the run done, about 270 s left");
        assert_eq!(after(0.001), "preconditioning: 0 % of the run done");
    }
}
