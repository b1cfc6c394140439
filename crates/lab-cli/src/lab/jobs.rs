//! Runs cells on several threads, with one progress bar.

use crate::states;
use indicatif::ProgressBar;
use softflash_console::CliError;
use softflash_console::output;
use softflash_lab::results::{CellFile, Directory};
use softflash_lab::{Cell, Control, LabError, Outcome, StateCache, engine};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Steps of the progress bar per cell.
pub const STEPS: u64 = 1000;

/// A progress bar of [`STEPS`] a cell, that the cells of several calls may share.
#[derive(Clone, Copy)]
pub struct Shown<'a> {
    /// The bar.
    pub bar: &'a ProgressBar,
    /// Cells that were done before.
    pub before: usize,
    /// Cells in all.
    pub all: usize,
}

/// A cell to run, and the destination of its result.
pub struct Job<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The directory of its experiment.
    pub directory: &'a Directory,
    /// The name of its experiment, for messages.
    pub experiment: &'a str,
    /// Whether the caller judges a failure, which is not reported then.
    pub is_trial: bool,
}

/// Result of a job; none if it was stopped or not started.
pub type Ended = Option<Result<Outcome, LabError>>;

/// Runs all jobs on this many threads; results are in the order of the jobs. Each cell's result is
/// written when it ends, and failures are reported immediately, so that stopping the rest loses
/// nothing.
pub fn run(
    jobs: &[Job],
    threads: usize,
    program: u64,
    stop: &AtomicBool,
    shown: Shown,
) -> Result<Vec<Ended>, CliError> {
    let pool = Pool {
        jobs,
        program,
        states: states::cache(None, program),
        stop,
        next: AtomicUsize::new(0),
        ended: Mutex::new(jobs.iter().map(|_| None).collect()),
        count: AtomicUsize::new(0),
        steps: jobs.iter().map(|_| AtomicU64::new(0)).collect(),
        shown,
    };
    pool.show();
    std::thread::scope(|scope| -> Result<(), CliError> {
        let mut workers = Vec::new();
        for number in 0..threads.clamp(1, jobs.len().max(1)) {
            let worker = std::thread::Builder::new().name(format!("lab-{number}"));
            let worker = worker.spawn_scoped(scope, || pool.work());
            workers
                .push(worker.map_err(|source| CliError::Io { what: "starting a thread", source })?);
        }
        for worker in workers {
            worker.join().map_err(|_| {
                CliError::Failed("a simulation ended unexpectedly; please report this".to_owned())
            })?;
        }
        Ok(())
    })?;
    Ok(pool.ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

struct Pool<'a> {
    jobs: &'a [Job<'a>],
    program: u64,
    states: Option<StateCache>,
    stop: &'a AtomicBool,
    next: AtomicUsize,
    ended: Mutex<Vec<Ended>>,
    count: AtomicUsize,
    /// Progress of each job, out of [`STEPS`].
    steps: Vec<AtomicU64>,
    shown: Shown<'a>,
}

impl Pool<'_> {
    /// Runs one job after the other until none is left.
    fn work(&self) {
        while !self.stop.load(Ordering::Relaxed) {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = self.jobs.get(index) else { return };
            let result = self.one(index, job);
            if let Err(error) = &result {
                if matches!(error, LabError::Stopped) {
                    return;
                }
                if !job.is_trial {
                    let message =
                        format!("softflash: error: {}: {}: {error}", job.experiment, job.cell.key);
                    self.shown.bar.suspend(|| output::say(&message));
                }
            }
            self.count.fetch_add(1, Ordering::Relaxed);
            self.advance(index, 1.0);
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = ended.get_mut(index) {
                *place = Some(result);
            }
        }
    }

    fn one(&self, index: usize, job: &Job) -> Result<Outcome, LabError> {
        let control = Control {
            stop: self.stop,
            on_progress: &|share| self.advance(index, share),
            on_settling: &|_| true,
            on_measuring: &|| {},
            on_measured: &|| {},
            on_request: None,
            states: self.states.as_ref(),
        };
        let outcome = engine::run(job.cell, &control)?;
        CellFile::keep(job.directory, job.cell, &outcome, self.program)?;
        Ok(outcome)
    }

    fn advance(&self, index: usize, share: f64) {
        if let Some(steps) = self.steps.get(index) {
            steps.store((share.clamp(0.0, 1.0) * STEPS as f64) as u64, Ordering::Relaxed);
        }
        self.show();
    }

    fn show(&self) {
        let done: u64 = self.steps.iter().map(|steps| steps.load(Ordering::Relaxed)).sum();
        let Shown { bar, before, all } = self.shown;
        let count = before + self.count.load(Ordering::Relaxed);
        bar.set_message(format!("{count}/{all} cells"));
        bar.set_position(before as u64 * STEPS + done);
    }
}
