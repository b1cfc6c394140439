//! Hunts for planted bugs one by one, which measures the hunter itself.

use crate::campaign::{attempt, kind};
use crate::profile::Profile;
use crate::scenario::Scenario;
use crate::size::Size;
use serde::Serialize;
use softflash_base::planted::{Bug, plant};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Parameters of a hunt.
pub struct Hunt<'a> {
    /// The first seed.
    pub first: u64,
    /// Use this scenario with different seeds; otherwise draw scenarios.
    pub like: Option<&'a Scenario>,
    /// Draw scenarios of this profile; otherwise of that of the bug.
    pub profile: Option<Profile>,
    /// Threads.
    pub jobs: usize,
    /// Called before each seed; returns whether to give up.
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

/// The result of the hunt for a bug.
#[derive(Debug, Clone, Serialize)]
pub struct Outcome {
    /// Name of the bug.
    pub name: String,
    /// The effect of the bug.
    pub what: &'static str,
    /// Source file, relative to `crates`.
    pub place: &'static str,
    /// A scenario fails with the bug and passes without it.
    pub found: bool,
    /// Seconds until it was found or given up.
    pub seconds: f64,
    /// Number of seeds started.
    pub seeds: u64,
    /// Seed of the failing scenario.
    pub seed: Option<u64>,
    /// How the scenario failed.
    pub kind: Option<String>,
    /// Seeds of scenarios that also fail without the bug, which shows another bug.
    pub others: Vec<u64>,
}

impl Hunt<'_> {
    /// Plants a bug and draws scenarios until one fails that passes without the bug.
    pub fn hunt(&self, bug: Bug, seconds: &dyn Fn() -> f64) -> Outcome {
        let next = AtomicU64::new(0);
        let mut others = Vec::new();
        let found = loop {
            plant(Some(bug));
            let failed = self.first_failure(bug, &next);
            plant(None);
            match failed {
                Some((seed, _)) if attempt(&self.scenario(bug, seed)).is_err() => others.push(seed),
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

    /// The first failing scenario among those not started yet.
    fn first_failure(&self, bug: Bug, next: &AtomicU64) -> Option<(u64, String)> {
        let (done, found) = (AtomicBool::new(false), Mutex::new(None));
        let work = || {
            while !(self.stop)() && !done.load(Ordering::Relaxed) {
                let seed = self.first.wrapping_add(next.fetch_add(1, Ordering::Relaxed));
                if let Err(what) = attempt(&self.scenario(bug, seed)) {
                    done.store(true, Ordering::Relaxed);
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.get_or_insert((seed, what));
                }
            }
        };
        thread::scope(|scope| (0..self.jobs.max(1)).for_each(|_| drop(scope.spawn(work))));
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// By default, scenarios of the profile of the bug.
    fn scenario(&self, bug: Bug, seed: u64) -> Scenario {
        match self.like {
            Some(scenario) => Scenario { seed, ..scenario.clone() },
            None => {
                let profile = self.profile.unwrap_or_else(|| profile_of(bug));
                Size::default().of(Scenario::drawn(seed, profile))
            }
        }
    }
}

/// Whether a bug took more than 250 scenarios to find, or two minutes on two cores, or was not
/// found, where it was measured (`docs/results/planted.md`): within the ten minutes that an
/// unoptimised hunt has on two cores, it may be missed by chance.
pub fn is_rare(bug: Bug) -> bool {
    use Bug::*;
    matches!(
        bug,
        BatchFrozenInMiddle
            | CheckpointAheadOfLog
            | ClearForgottenByFlush
            | CommitsOutOfOrder
            | CopyAgainNotFlushed
            | ExpiredNotBuried
            | FailedCheckpointCounts
            | FailedCopyHidden
            | FinishedPatchesLeak
            | FlushOfOtherSet
            | LogRoomTaken
            | MovesTakenForTheImages
            | OpenWordLineClockLogged
            | OperationOfOneSet
            | ParityForgetsPatch
            | PendingClearsForgotten
            | StagingLostOnRoleChange
            | TurnNotDurable
            | UndecidedDoomed
            | UnseenAboveRoot
            | WidenedPartForgotten
            | WokenTakenForResting
    )
}

/// The profile that hunts for a bug: the default one, since the hunter must find a bug without
/// knowing what to look for; that of volumes, with the order of their competing requests; that of
/// repairs; that with the damage that a check is for.
fn profile_of(bug: Bug) -> Profile {
    match bug {
        Bug::FreeBlocksOfOneUnit => return Profile::Mirrored,
        Bug::GroupFreedEarly => return Profile::Regrouped,
        Bug::OldestHeaderWins => return Profile::Superblocks,
        Bug::LeafOfOtherLife => return Profile::Misread,
        Bug::EndNotProven => return Profile::Worn,
        Bug::RecordsTogether | Bug::SpanUndeclared => return Profile::Unit,
        Bug::AbsenceSaved | Bug::JoinedUnitNotErased | Bug::JoinedUnitNotFlushed => {
            return Profile::Volumes;
        }
        Bug::UnseenAboveRoot => return Profile::Parity,
        _ => {}
    }
    let is_of = |place: &&str| bug.place().starts_with(place);
    if ["volume/src/pair/", "volume/src/resting.rs", "volume/src/format/pair.rs"].iter().any(is_of)
    {
        return Profile::Pairs;
    }
    if ["volume/", "mapping/"].iter().any(is_of) {
        Profile::Volumes
    } else if is_of(&"store/src/repair/") {
        Profile::Repaired
    } else {
        Profile::default()
    }
}
