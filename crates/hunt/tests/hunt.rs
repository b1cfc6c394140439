//! The hunter itself: what was found stays found, equal seeds give equal traces, and fresh seeds find nothing.

#![expect(clippy::unwrap_used, reason = "a test ends at the first error")]
#![expect(clippy::disallowed_methods, reason = "fresh seeds follow from the time, and are printed")]

use softflash_hunt::campaign::{self, Campaign};
use softflash_hunt::trial;
use softflash_hunt::world::{Profile, World};
use std::path::Path;
use std::time::SystemTime;

/// Worlds that failed once.
fn regressions() -> Vec<(String, World)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let world = toml::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        (path.display().to_string(), world)
    };
    files.map(read).collect()
}

#[test]
fn what_was_found_stays_found() {
    let worlds = regressions();
    assert!(!worlds.is_empty());
    for (file, world) in worlds {
        assert_eq!(campaign::attempt(&world).err(), None, "{file}");
    }
}

#[test]
fn equal_seeds_give_equal_traces() {
    for seed in 0..6 {
        let world = World::drawn(seed, Profile::Survived);
        let record = trial::run(&world).unwrap();
        assert_eq!(trial::run(&world).unwrap(), record, "seed {seed}");
        assert!(record.crash_points >= u64::from(world.cuts), "every cut is followed by a look");
    }
    let trace = |seed| trial::run(&World::drawn(seed, Profile::Survived)).unwrap().trace;
    assert_ne!(trace(1), trace(2));
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
        jobs: 2,
        stop: &|| false,
        told: &|_| {},
    });
    assert_eq!((tally.seeds, tally.failures.len()), (40, 0), "{:?}", tally.failures);
    assert!(tally.crash_points > 300);
}
