//! Tests of the hunter: regressions stay fixed, equal seeds have equal traces, and fresh seeds find
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "fresh seeds follow from the time, and are printed")]

use softflash_hunt::campaign::{self, Campaign};
use softflash_hunt::exhaustive::{self, Sweep};
use softflash_hunt::profile::Profile;
use softflash_hunt::scenario::Scenario;
use softflash_hunt::size::Size;
use softflash_hunt::small_scenario::Step;
use softflash_hunt::trial;
use std::path::Path;
use std::time::SystemTime;

/// Scenarios of bugs that were fixed.
fn regressions() -> Vec<(String, Scenario)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let scenario = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path.display().to_string(), scenario)
    };
    files.map(read).collect()
}

#[test]
fn regressions_stay_fixed() {
    let scenarios = regressions();
    assert!(!scenarios.is_empty());
    for (file, scenario) in scenarios {
        assert_eq!(campaign::attempt(&scenario).err(), None, "{file}");
    }
}

#[test]
fn equal_seeds_give_equal_traces() {
    for seed in 0..6 {
        let scenario = Scenario::drawn(seed, Profile::Survived);
        let record = trial::run(&scenario).unwrap();
        assert_eq!(trial::run(&scenario).unwrap(), record, "seed {seed}");
        let all = record.crash_points >= u64::from(scenario.cuts);
        assert!(record.loss || all, "every cut is followed by a comparison");
    }
    let trace = |seed| trial::run(&Scenario::drawn(seed, Profile::Survived)).unwrap().trace;
    assert_ne!(trace(1), trace(2));
}

#[test]
fn volumes_survive_power_cuts() {
    let mut cuts = 0;
    for seed in 0..12 {
        let scenario = Scenario::drawn(seed, Profile::Volumes);
        let record = campaign::attempt(&scenario).unwrap();
        assert_eq!(campaign::attempt(&scenario).unwrap(), record, "seed {seed}");
        cuts += record.crash_points;
    }
    assert!(cuts > 100, "{cuts} cuts");
}

/// Profiles in which data may be lost and every loss must be reported.
const LOSING: [Profile; 2] = [Profile::Worn, Profile::Misread];

#[test]
fn losses_are_reported() {
    let mut losses = 0;
    for profile in LOSING {
        for seed in 0..12 {
            let scenario = Scenario::drawn(seed, profile);
            let record = campaign::attempt(&scenario);
            losses +=
                u64::from(record.unwrap_or_else(|what| panic!("{profile:?} {seed}: {what}")).loss);
        }
    }
    assert!(losses > 5, "{losses} losses: the faults are too rare to show anything");
}

#[test]
fn scenarios_differ_in_all_that_matters() {
    let scenarios: Vec<Scenario> =
        (0..200).map(|seed| Scenario::drawn(seed, Profile::Survived)).collect();
    let count =
        |fits: fn(&Scenario) -> bool| scenarios.iter().filter(|scenario| fits(scenario)).count();
    let resp = |fits: fn(&softflash_hunt::client_model::Resp) -> bool| {
        scenarios.iter().filter(|scenario| scenario.resp.as_ref().is_some_and(fits)).count()
    };
    let shares = [
        count(|scenario| scenario.resp.is_none()),
        resp(|resp| resp.transactions > 0.0),
        resp(|resp| resp.expiry > 0.0),
        resp(|resp| resp.lists > 0),
        resp(|resp| resp.clears > 0.0),
        resp(|resp| resp.vanishing > 0.0),
        count(|scenario| scenario.pace.pauses > 0.0),
        count(|scenario| scenario.pace.steps_back),
        count(|scenario| scenario.store.interval_ms > 0),
    ];
    assert!(shares.iter().all(|share| (10..180).contains(share)), "{shares:?}");
    let is_replaced = |scenario: &Scenario| scenario.fault_plan.replacements > 0.0;
    let may_lose = |scenario: &Scenario| is_replaced(scenario) || scenario.volumes.is_some();
    assert!(scenarios.iter().all(|scenario| !scenario.may_lose() || may_lose(scenario)));
}

#[test]
fn small_scenarios_survive_cuts_everywhere() {
    let only = Some(vec![Step::Batch, Step::DeleteA]);
    let sweep = Sweep { longest: 2, every: 16, only, jobs: 1, stop: &|| false };
    let swept = exhaustive::run(&sweep);
    assert_eq!(swept.failures.len(), 0, "{:?}", swept.failures);
    assert!(swept.first_cuts > 50 && swept.second_cuts > 50, "{swept:?}");
}

#[test]
fn fresh_seeds_find_nothing() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = now.as_secs() * 1_000_003 % (1 << 40);
    println!("cargo xtask hunt --seed {first} --seeds 40");
    let tally = campaign::run(&Campaign {
        first,
        seeds: 40,
        profile: Profile::Survived,
        size: Size::Full,
        jobs: 2,
        stop: &|| false,
        on_failure: &|_, _| {},
        on_progress: &|_| {},
    });
    assert_eq!((tally.seeds, tally.failures.len()), (40, 0), "{:?}", tally.failures);
    assert!(tally.crash_points > 300);
}

#[test]
fn redundancy_survives_any_fault_of_one_unit() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let first = now.as_secs() * 1_000_003 % (1 << 40);
    for profile in [Profile::Mirrored, Profile::Parity] {
        println!("cargo xtask hunt --size small --seed {first} --seeds 30{}", profile.arguments());
        let tally = campaign::run(&Campaign {
            first,
            seeds: 30,
            profile,
            size: Size::Small,
            jobs: 2,
            stop: &|| false,
            on_failure: &|_, _| {},
            on_progress: &|_| {},
        });
        assert_eq!((tally.seeds, tally.failures.len()), (30, 0), "{:?}", tally.failures);
    }
}
