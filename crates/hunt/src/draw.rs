//! Draws the scenario of a seed.

use crate::client_model::{Pace, Resp};
use crate::fault_plan::FaultPlan;
use crate::profile::Profile;
use crate::scenario::{Clients, DriveShape, Flash, Scenario, StoreShape};
use crate::superblock_shape::SuperblockShape;
use crate::volume_shape::VolumeShape;
use softflash_base::random::Rng;
use softflash_nand::faults::{CutErases, CutPages, FaultConfig, SlowOperations};
use softflash_store::layout::one_copy;

/// Share of scenarios that run on a drive.
const DRIVES: f64 = 0.25;

/// Share of scenarios of volumes where a profile damages data.
const VOLUMES: f64 = 0.25;

/// Share of drives whose flushes fail now and then.
const FAILED_FLUSHES: f64 = 0.3;

impl DriveShape {
    /// Draws whether flushes fail from a stream of its own, so that earlier seeds keep their other
    /// properties.
    fn drawn(rng: &mut Rng, seed: u64) -> DriveShape {
        let discards = rng.chance(0.5);
        let mut rng = Rng::seeded(seed).fork("flushes");
        let fail = rng.chance(FAILED_FLUSHES);
        // Log-uniform, from one in five hundred to one in ten.
        let failed_flushes = if fail { 0.002 * 50_f64.powf(rng.unit_f64()) } else { 0.0 };
        DriveShape { discards, failed_flushes, stays_failed: fail && rng.chance(0.3) }
    }
}

impl Scenario {
    /// Draws the scenario of a seed. Each property has its own probability, and each scenario has
    /// only some kinds of faults, so that one fault does not always hide another.
    pub fn drawn(seed: u64, profile: Profile) -> Scenario {
        let profile = profile.of_seed(seed);
        let mut rng = Rng::seeded(seed).fork("world");
        let mut extra_rng = Rng::seeded(seed).fork("medium");
        let shards = 1 + rng.below(2) as u16;
        let channels = shards * (1 + rng.below(2) as u16);
        let planes = 1 + rng.below(2) as u8;
        let (blocks, pages) = (32 + rng.below(25) as u32, 8 << rng.below(3));
        // Small blocks: the store needs more of them to have room for cleaning.
        let blocks = if pages == 8 { 5 * blocks / 2 } else { blocks };
        let flash = Flash { channels, dies: 1, planes, blocks, pages };
        let interval = shards == 1 && rng.chance(0.25);
        let store = StoreShape {
            shards,
            slices: shards * (1 + rng.below(2) as u16),
            memory_kib: 512 << rng.below(3),
            memory_varies: extra_rng.chance(0.3),
            eager_erases: extra_rng.chance(0.3),
            hand_overs: 0.0,
            interval_ms: if interval { 1 + rng.below(20) } else { 0 },
            copies: one_copy(),
            parity: 0,
            fragment_bytes: 0,
            frame_bytes: 0,
            watch_sweep: 0,
            value_threshold: 0,
        };
        let value_bytes = [16, 200, 3000, 12_000][rng.below(4) as usize];
        let count = 1 + rng.below(4) as u16;
        // At most an eighth of the flash holds live data, so that there is always room for
        // cleaning.
        let most_keys = flash.bytes() / 8 / (u64::from(count) * (value_bytes / 2 + 64));
        let clients = Clients {
            count,
            keys: (1 + rng.below(60)).min(most_keys.max(1)),
            value_bytes,
            batch: 1 + rng.below(5),
            requests: 1 << rng.below(7),
            reads: 0.3 * rng.unit_f64(),
            deletes: 0.4 * rng.unit_f64(),
            larges: 0.0,
            large_bytes: 0,
            scans: 0.0,
            again: 0.0,
            pause_us: 0,
        };
        let on_drive = profile.may_be_on_drive() && extra_rng.chance(DRIVES);
        let drive = on_drive.then(|| DriveShape::drawn(&mut extra_rng, seed));
        let faults = faults(&mut rng, profile);
        Scenario {
            seed,
            flash,
            drive,
            store,
            clients,
            cuts: 4 + rng.below(12) as u32,
            faults: if on_drive { FaultConfig::default() } else { faults },
            resp: None,
            pace: Pace::default(),
            fault_plan: FaultPlan::default(),
            repairs: 0,
            volumes: None,
            superblocks: None,
        }
        .with_more_shards()
        .with_client_model(profile)
        .with_width()
        .with_dies()
        .with_short_frames()
        .with_contention()
        .with_value_log()
        .with_owner(profile)
        .with_long_events()
        .with_store_hand_overs()
        .with_one_fault()
    }

    /// Redundancy holds against one fault: a failed flush, which may lose data of all units, is not
    /// drawn together with a unit that fails.
    fn with_one_fault(mut self) -> Scenario {
        let FaultPlan { deaths, planned_faults, old_images, replacements, returns, .. } =
            self.fault_plan;
        let fails = deaths + old_images + replacements + returns > 0.0 || planned_faults > 0;
        if self.store.is_redundant()
            && fails
            && let Some(drive) = &mut self.drive
        {
            (drive.failed_flushes, drive.stays_failed) = (0.0, false);
        }
        self
    }

    fn with_owner(mut self, profile: Profile) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("volumes");
        match profile {
            _ if profile.damages() && rng.fork("owner").chance(VOLUMES) => {
                profile.fit_to_volumes(&mut self, &mut rng.fork("damage"));
                self.volumes = Some(VolumeShape::drawn(&mut self, &mut rng));
            }
            Profile::Volumes => self.volumes = Some(VolumeShape::drawn(&mut self, &mut rng)),
            Profile::Pairs => self.volumes = Some(VolumeShape::of_pair(&mut self, &mut rng)),
            Profile::Superblocks => {
                self.superblocks = Some(SuperblockShape::drawn(&mut self, &mut rng));
            }
            _ => {}
        }
        let may_lose = self.may_lose();
        if let Some(shape) = self.volumes.as_mut().filter(|_| may_lose) {
            // An operation that has completed may be lost until it is proven.
            shape.lifts = 0.0;
        }
        self
    }

    /// Uses random streams of its own, so that earlier seeds keep their meaning.
    fn with_client_model(mut self, profile: Profile) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("habits");
        let durable = self.store.interval_ms == 0;
        profile.add(&mut self, &mut rng);
        // Where data may be lost, only the reference of RESP clients knows how much.
        let speaks = rng.chance(0.6) || self.may_lose();
        let mut extra_rng = Rng::seeded(self.seed).fork("speech");
        self.resp =
            speaks.then(|| Resp::drawn(&mut rng, &mut extra_rng, durable && !self.may_lose()));
        if speaks {
            self.pace = Pace::drawn(&mut rng, durable);
        }
        profile.force(&mut self, &mut rng);
        self
    }
}

/// Draws which kinds of faults occur.
fn faults(rng: &mut Rng, profile: Profile) -> FaultConfig {
    let program_failure = 1e-4 * 30_f64.powf(rng.unit_f64());
    let mut some = |rate: f64, chance: f64| if rng.chance(chance) { rate } else { 0.0 };
    let mut faults = FaultConfig {
        factory_bad_block: some(0.03, 0.3),
        program_failure: some(program_failure, 0.3),
        erase_failure: some(10.0 * program_failure, 0.3),
        shorn_page_readable: some(0.5, 0.5),
        slow: SlowOperations { rate: some(0.01, 0.2), factor: 100.0 },
        ..FaultConfig::default()
    };
    // Otherwise the outcome depends on the progress of the operation.
    if rng.chance(0.5) {
        let unstable = if profile == Profile::Decaying { 1.0 } else { 0.0 };
        let (untouched, whole, shorn, random) = (1.0, 1.0, 1.0, 1.0);
        faults.cut_pages =
            CutPages { untouched, whole, shorn, random, unstable, ..CutPages::default() };
    }
    if rng.chance(0.5) {
        let (looks_erased, part_old, random) = (1.0, 1.0, 1.0);
        faults.cut_erases =
            CutErases { looks_erased, part_old, random, program_failure_factor: 10.0 };
    }
    if profile == Profile::Paired {
        faults.paired_page_loss = 0.5;
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn a_seed_is_a_scenario_and_a_scenario_is_a_file() {
        for seed in 0..200 {
            let scenario = Scenario::drawn(seed, Profile::Paired);
            assert_eq!(scenario, Scenario::drawn(seed, Profile::Paired));
            assert_eq!(scenario, toml::from_str(&toml::to_string(&scenario).unwrap()).unwrap());
            scenario.device().array.validate().unwrap();
            // A scenario of volumes has no store on its flash.
            let problem = |it: &Scenario| it.volumes.is_none().then(|| it.layout().problem())?;
            assert_eq!(problem(&scenario), None, "seed {seed}");
            let longest = scenario.options(0).fragment_bytes as u64;
            assert!(scenario.clients.larges == 0.0 || longest < scenario.flash.block_bytes() / 2);
            for profile in [Profile::Mirrored, Profile::Parity] {
                let drawn = Scenario::drawn(seed, profile);
                assert_eq!(problem(&drawn), None, "seed {seed}");
                // Volumes have one copy of their data.
                let has_one_copy = drawn.volumes.is_some();
                assert_eq!(drawn.store.is_redundant(), !has_one_copy, "seed {seed}");
                assert!(has_one_copy || !drawn.may_lose(), "seed {seed}");
            }
        }
        assert_ne!(Scenario::drawn(1, Profile::Survived), Scenario::drawn(2, Profile::Survived));
    }

    #[test]
    fn every_profile_that_damages_data_damages_volumes() {
        for profile in Profile::value_variants().iter().filter(|profile| profile.damages()) {
            let drawn = (0..200).map(|seed| Scenario::drawn(seed, *profile));
            let of_volumes: Vec<Scenario> = drawn.filter(|it| it.volumes.is_some()).collect();
            assert!(of_volumes.len() > 20, "{profile:?}: {} of 200", of_volumes.len());
            let is_damaged = |it: &&Scenario| {
                let survives = it.faults.paired_page_loss + it.faults.cut_pages.unstable > 0.0;
                it.may_lose() || it.repairs > 0 || survives
            };
            let damaged = of_volumes.iter().filter(is_damaged).count();
            assert!(4 * damaged > of_volumes.len(), "{profile:?}: {damaged} are damaged");
        }
    }
}
