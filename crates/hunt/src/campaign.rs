//! Many seeds on all cores.

use crate::scenario::{Profile, Scenario, Size};
use crate::shrink::shrink;
use crate::trial::{self, Record};
use serde::Serialize;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// What a campaign is to do.
pub struct Campaign<'a> {
    /// The first seed.
    pub first: u64,
    /// Seeds at most.
    pub seeds: u64,
    /// Which scenarios.
    pub profile: Profile,
    /// How large.
    pub size: Size,
    /// Threads.
    pub jobs: usize,
    /// Asked before each seed whether to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Told after each seed what came out so far.
    pub told: &'a (dyn Fn(&Tally) + Sync),
}

/// A scenario that failed.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What was found.
    pub what: String,
    /// A command that shows it again.
    pub replay: String,
    /// The smallest scenario that was found to fail as well, as a file has it.
    pub shrunk: String,
}

/// What came out.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Tally {
    /// Seeds that were run.
    pub seeds: u64,
    /// Cuts whose recovery was compared with what was promised.
    pub crash_points: u64,
    /// Full comparisons of everything with what was promised, after one cut or several in a row.
    pub comparisons: u64,
    /// The most cuts between two comparisons.
    pub deepest: u64,
    /// Virtual time of all scenarios together.
    pub simulated_seconds: f64,
    /// Scenarios that may lose data, and ended with an error that said so.
    pub losses_told: u64,
    /// Scenarios whose flash wore out, and that ended with an error that said so.
    pub worn_out: u64,
    /// Sessions in which the store refused writes, and showed that there was no room.
    pub full_sessions: u64,
    /// Scenarios that failed.
    pub failures: Vec<Failure>,
}

/// Failures after which a campaign ends: more tell nothing new.
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
            (campaign.told)(&tally);
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

/// What is left of a description without its particulars: a smaller scenario must fail in the same way.
pub fn kind(what: &str) -> String {
    let what = what.rsplit_once("since all was well: ").map_or(what, |(_, what)| what);
    what.chars().filter(|char| !char.is_ascii_digit()).take(40).collect()
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs a scenario; a panic is a failure like any other.
pub fn attempt(scenario: &Scenario) -> Result<Record, String> {
    panic::catch_unwind(AssertUnwindSafe(|| trial::run(scenario)))
        .unwrap_or_else(|_| Err(last_panic()))
}

/// What the last panic of this thread said.
pub(crate) fn last_panic() -> String {
    let told = PANIC.with(|panic| panic.borrow_mut().take());
    format!("panic: {}", told.unwrap_or_default())
}

/// From now on panics are kept for [`attempt`] instead of printed.
pub fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        PANIC.with(|panic| *panic.borrow_mut() = Some(info.to_string()));
    }));
}
