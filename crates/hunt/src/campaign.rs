//! Many seeds on all cores.

use crate::profile::Profile;
use crate::scenario::Scenario;
use crate::shrink::shrink;
use crate::size::Size;
use crate::trial::{self, Record};
use serde::Serialize;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Parameters of a campaign.
pub struct Campaign<'a> {
    /// The first seed.
    pub first: u64,
    /// Maximum number of seeds.
    pub seeds: u64,
    /// Fault profile.
    pub profile: Profile,
    /// Size of the scenarios.
    pub size: Size,
    /// Threads.
    pub jobs: usize,
    /// Called before each seed; returns whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Called with the seed and the error of a scenario that has failed, before a smaller one is
    /// looked for.
    pub on_failure: &'a (dyn Fn(u64, &str) + Sync),
    /// Called after each seed with the results so far.
    pub on_progress: &'a (dyn Fn(&Tally) + Sync),
}

/// A scenario that failed.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// The error.
    pub what: String,
    /// A command that reproduces it.
    pub replay: String,
    /// The smallest failing scenario found, as the text of a file.
    pub shrunk: String,
}

/// Results of a campaign.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Seeds that were run.
    pub seeds: u64,
    /// Cuts after which the recovered data were compared with the reference.
    pub crash_points: u64,
    /// Full comparisons with the reference, after one cut or several in a row.
    pub comparisons: u64,
    /// The most cuts between two comparisons.
    pub deepest: u64,
    /// Virtual time of all scenarios together.
    pub simulated_seconds: f64,
    /// Scenarios in which data may be lost, and that ended with an error that reported a loss.
    pub losses_told: u64,
    /// Scenarios that ended with an error that reported worn-out flash.
    pub worn_out: u64,
    /// Sessions in which the store rightly refused writes for lack of space.
    pub full_sessions: u64,
    /// Scenarios that failed.
    pub failures: Vec<Failure>,
}

/// Number of failures after which a campaign ends.
const ENOUGH: usize = 10;

/// Runs a campaign.
pub fn run(campaign: &Campaign<'_>) -> Tally {
    let next = AtomicU64::new(0);
    let enough = AtomicBool::new(false);
    let tally = Mutex::new(Tally::default());
    let work = || {
        while !(campaign.stop)() && !enough.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= campaign.seeds {
                return;
            }
            let seed = campaign.first.wrapping_add(number);
            let scenario = campaign.size.of(Scenario::drawn(seed, campaign.profile));
            let outcome = attempt(&scenario);
            let failure = outcome.as_ref().err().map(|what| failure(campaign, &scenario, what));
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.seeds += 1;
            if let Ok(record) = outcome {
                tally.crash_points += record.crash_points;
                tally.full_sessions += record.full;
                tally.comparisons += record.comparisons;
                tally.losses_told += u64::from(record.loss);
                tally.worn_out += u64::from(record.worn_out);
                tally.deepest = tally.deepest.max(record.deepest);
                tally.simulated_seconds += record.simulated_ns as f64 / 1e9;
            }
            tally.failures.extend(failure);
            enough.store(tally.failures.len() >= ENOUGH, Ordering::Relaxed);
            (campaign.on_progress)(&tally);
        }
    };
    thread::scope(|scope| {
        for _ in 0..campaign.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    tally.failures.sort_by_key(|failure| failure.seed);
    tally
}

fn failure(campaign: &Campaign<'_>, scenario: &Scenario, what: &str) -> Failure {
    let (seed, kind) = (scenario.seed, kind(what));
    (campaign.on_failure)(seed, what);
    let fails = |scenario: &Scenario| {
        !(campaign.stop)() && attempt(scenario).is_err_and(|other| self::kind(&other) == kind)
    };
    let shrunk = shrink(scenario.clone(), fails);
    Failure {
        seed,
        what: what.to_owned(),
        replay: format!(
            "cargo xtask hunt --seed {seed} --seeds 1{}{}",
            campaign.profile.arguments(),
            campaign.size.arguments(),
        ),
        shrunk: toml::to_string(&shrunk).unwrap_or_default(),
    }
}

/// A failure's description without its particulars. A shrunk scenario must fail in the same way.
pub fn kind(what: &str) -> String {
    let what = what.rsplit_once("since the last comparison: ").map_or(what, |(_, what)| what);
    what.chars().filter(|char| !char.is_ascii_digit()).take(40).collect()
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a scenario; a panic counts as a failure.
pub fn attempt(scenario: &Scenario) -> Result<Record, String> {
    panic::catch_unwind(AssertUnwindSafe(|| trial::run(scenario)))
        .unwrap_or_else(|_| Err(last_panic()))
}

/// Message of the last panic of this thread.
pub(crate) fn last_panic() -> String {
    let message = PANIC.with(|panic| panic.borrow_mut().take());
    format!("panic: {}", message.unwrap_or_default())
}

/// Installs a panic hook that keeps messages for [`attempt`] instead of printing them.
pub fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string()));
    }));
}
