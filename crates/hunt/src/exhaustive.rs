//! All small scenarios: every workload of up to three operations, with a power cut at every program
//! and erase, with every outcome that the cut can have, and then a second cut at every program and
//! erase of the recovery.
//!
//! Times in a scenario are deterministic, so a run without a cut gives the completion time of each
//! flash operation; a cut one nanosecond earlier hits the operation in flight.

use crate::campaign;
use crate::small_scenario::{self, Found, SmallScenario, Step};
use serde::Serialize;
use softflash_base::Time;
use softflash_nand::faults::{CutErases, CutPages};
use softflash_nand::{Activity, Recorded};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Parameters of a sweep.
pub struct Sweep<'a> {
    /// Maximum number of operations in a workload.
    pub longest: usize,
    /// Test one in this many second cuts of a recovery; 1: all.
    pub every: usize,
    /// Run only this workload.
    pub only: Option<Vec<Step>>,
    /// Threads.
    pub jobs: usize,
    /// Called before each workload; returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// Results of a sweep.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Swept {
    /// Workloads that ran to completion.
    pub workloads: u64,
    /// First cuts: flash operations times outcomes of a cut.
    pub first_cuts: u64,
    /// Second cuts: during the recovery from a first cut.
    pub second_cuts: u64,
    /// Cuts after which the recovered data were compared with the reference.
    pub crash_points: u64,
    /// Virtual time.
    pub simulated_seconds: f64,
    /// Failures.
    pub failures: Vec<Failure>,
}

/// A cut after which the contents were wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// Its workload.
    pub workload: String,
    /// The places of the cuts, and the error.
    pub what: String,
    /// A command that reproduces it.
    pub replay: String,
}

/// Number of failures after which the sweep ends.
const ENOUGH: usize = 10;

/// The outcomes of a cut during a program and an erase.
const ENDINGS: [(&str, CutPages, CutErases); 4] = [
    ("untouched, looks erased", pages(1.0, 0.0, 0.0, 0.0), erases(1.0, 0.0, 0.0)),
    (
        "complete but not acknowledged, erased in part",
        pages(0.0, 1.0, 0.0, 0.0),
        erases(0.0, 1.0, 0.0),
    ),
    ("shorn, random", pages(0.0, 0.0, 1.0, 0.0), erases(0.0, 0.0, 1.0)),
    ("random, random", pages(0.0, 0.0, 0.0, 1.0), erases(0.0, 0.0, 1.0)),
];

const fn pages(untouched: f64, whole: f64, shorn: f64, random: f64) -> CutPages {
    CutPages { untouched, whole, shorn, random, unstable: 0.0, unstable_reads: 3, unstable_ms: 0 }
}

const fn erases(looks_erased: f64, part_old: f64, random: f64) -> CutErases {
    CutErases { looks_erased, part_old, random, program_failure_factor: 1.0 }
}

/// Runs a sweep.
pub fn run(sweep: &Sweep<'_>) -> Swept {
    let workloads = match &sweep.only {
        Some(only) => vec![only.clone()],
        None => Step::workloads(sweep.longest),
    };
    let (next, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let swept = Mutex::new(Swept::default());
    let work = || {
        while !(sweep.stop)() && !enough.load(Ordering::Relaxed) {
            let Some(workload) = workloads.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return;
            };
            let mut part = Swept::default();
            let whole = panic::catch_unwind(AssertUnwindSafe(|| {
                ENDINGS.iter().try_for_each(|ending| sweep_one(sweep, workload, ending, &mut part))
            }));
            let outcome = whole.unwrap_or_else(|_| Err(campaign::last_panic()));
            let mut swept = swept.lock().unwrap_or_else(PoisonError::into_inner);
            swept.add(part);
            if let Err(what) = outcome {
                let workload = Step::names(workload);
                let replay = format!("cargo xtask hunt --exhaustive --workload {workload}");
                swept.failures.push(Failure { workload, what, replay });
                enough.store(swept.failures.len() >= ENOUGH, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..sweep.jobs.max(1) {
            scope.spawn(work);
        }
    });
    swept.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Swept {
    fn add(&mut self, part: Swept) {
        self.workloads += 1;
        self.first_cuts += part.first_cuts;
        self.second_cuts += part.second_cuts;
        self.crash_points += part.crash_points;
        self.simulated_seconds += part.simulated_seconds;
    }
}

/// Runs one workload with one outcome of cuts.
fn sweep_one(
    sweep: &Sweep<'_>,
    workload: &[Step],
    (ending, cut_pages, cut_erases): &(&str, CutPages, CutErases),
    swept: &mut Swept,
) -> Result<(), String> {
    let scenario = SmallScenario::new(*cut_pages, *cut_erases)?;
    let beginning = scenario.image()?;
    let whole = scenario.session(workload, None)?;
    let promised = small_scenario::histories(workload);
    expect(&whole.found, &promised[..1]).map_err(|what| format!("before any cut: {what}"))?;
    let points = changes(&whole.recorded);
    for (number, point) in points.iter().enumerate() {
        let first = |what: String| {
            let (activity, of) = (point.activity, points.len());
            format!("{ending}; cut in {activity:?} {} of {of}: {what}", number + 1)
        };
        scenario.restore(&beginning)?;
        let session =
            scenario.session(workload, Some((middle(point), number as u64))).map_err(first)?;
        let may_be = &promised[session.done..=session.begun];
        let torn = scenario.image()?;
        let recovery = scenario.session(&[], None).map_err(first)?;
        expect(&recovery.found, may_be).map_err(first)?;
        scenario.check().map_err(first)?;
        swept.first_cuts += 1;
        swept.crash_points += 1;
        swept.simulated_seconds += seconds(session.ended_at) + seconds(recovery.ended_at);
        let again = changes(&recovery.recorded);
        // Different cuts for different recoveries.
        for (place, point) in
            again.iter().enumerate().skip(number % sweep.every).step_by(sweep.every)
        {
            let second = |what: String| {
                first(format!("then in {:?} {} of the recovery: {what}", point.activity, place + 1))
            };
            scenario.restore(&torn)?;
            let session =
                scenario.session(&[], Some((middle(point), place as u64))).map_err(second)?;
            let recovery = scenario.session(&[], None).map_err(second)?;
            expect(&recovery.found, may_be).map_err(second)?;
            swept.second_cuts += 1;
            swept.crash_points += 1;
            swept.simulated_seconds += seconds(session.ended_at) + seconds(recovery.ended_at);
        }
    }
    Ok(())
}

fn seconds(time: Time) -> f64 {
    time.0 as f64 / 1e9
}

/// The flash operations that change its contents.
fn changes(recorded: &[Recorded]) -> Vec<Recorded> {
    let changes =
        |recorded: &&Recorded| matches!(recorded.activity, Activity::Program | Activity::Erase);
    recorded.iter().filter(changes).copied().collect()
}

fn middle(point: &Recorded) -> Time {
    Time(point.end.0 - 1)
}

fn expect(found: &Option<Found>, may_be: &[Found]) -> Result<(), String> {
    match found {
        None => Err("the contents could not be read".to_owned()),
        Some(found) if may_be.contains(found) => Ok(()),
        Some(found) => Err(format!(
            "found {}, promised {}",
            small_scenario::shown(found),
            may_be.iter().map(small_scenario::shown).collect::<Vec<_>>().join(" or ")
        )),
    }
}
