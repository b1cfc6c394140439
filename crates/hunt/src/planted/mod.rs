//! Hunts for one planted bug after the other: what the hunter does not find, it cannot be trusted to find elsewhere.

use crate::campaign::{attempt, kind};
use crate::scenario::{Profile, Scenario, Size};
use serde::Serialize;
use softflash_base::planted::{Bug, plant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// How a bug is hunted for.
pub struct Hunt<'a> {
    /// The first seed.
    pub first: u64,
    /// In scenarios like this one, but for the seed; otherwise in those that a hunt draws.
    pub like: Option<&'a Scenario>,
    /// Threads.
    pub jobs: usize,
    /// Asked before each seed whether to give up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// What came of the hunt for a bug.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// The bug.
    pub name: String,
    /// What is wrong.
    pub what: &'static str,
    /// Where, in `crates`.
    pub place: &'static str,
    /// A scenario showed it, and shows nothing without it.
    pub found: bool,
    /// Until then, or until the hunt was given up.
    pub seconds: f64,
    /// Seeds that were begun.
    pub seeds: u64,
    /// The seed of the scenario that showed it.
    pub seed: Option<u64>,
    /// In what way the scenario failed.
    pub kind: Option<String>,
    /// Seeds of scenarios that fail without the bug, too: something else is wrong.
    pub others: Vec<u64>,
}

impl Hunt<'_> {
    /// Plants a bug and draws scenarios until one fails that does not fail without it.
    pub fn hunt(&self, bug: Bug, seconds: &dyn Fn() -> f64) -> Outcome {
        let next = AtomicU64::new(0);
        let mut others = Vec::new();
        let found = loop {
            plant(Some(bug));
            let failed = self.first_failure(&next);
            plant(None);
            match failed {
                Some((seed, _)) if attempt(&self.scenario(seed)).is_err() => others.push(seed),
                found => break found,
            }
        };
        Outcome {
            name: bug.name(),
            what: bug.what(),
            place: bug.place(),
            found: found.is_some(),
            seconds: seconds(),
            seeds: next.load(Ordering::Relaxed),
            seed: found.as_ref().map(|(seed, _)| *seed),
            kind: found.map(|(_, what)| kind(&what)),
            others,
        }
    }

    /// The first scenario that fails among those that were not begun yet.
    fn first_failure(&self, next: &AtomicU64) -> Option<(u64, String)> {
        let (done, found) = (AtomicBool::new(false), Mutex::new(None));
        let work = || {
            while !(self.stop)() && !done.load(Ordering::Relaxed) {
                let seed = self.first.wrapping_add(next.fetch_add(1, Ordering::Relaxed));
                if let Err(what) = attempt(&self.scenario(seed)) {
                    done.store(true, Ordering::Relaxed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.get_or_insert((seed, what));
                }
            }
        };
        thread::scope(|scope| (0..self.jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// If nothing else is said, a scenario of the default draw: what is found is found without knowing what to look for.
    fn scenario(&self, seed: u64) -> Scenario {
        match self.like {
            Some(scenario) => Scenario { seed, ..scenario.clone() },
            None => Size::default().of(Scenario::drawn(seed, Profile::default())),
        }
    }
}
