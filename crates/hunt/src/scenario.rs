//! The parameters of a scenario.

use crate::client_model::{Pace, Resp};
use crate::fault_plan::FaultPlan;
pub use crate::profile::Profile;
pub use crate::size::Size;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use softflash_device::ModelConfig;
use softflash_nand::faults::{CutErases, CutPages, FaultConfig, SilentFaults, SlowOperations};
use softflash_store::layout::one_copy;
use softflash_store::{Durability, StoreLayout, StoreOptions};
use std::time::Duration;

const PAGE_BYTES: u32 = 4096;
/// Share of scenarios that run on a drive.
const DRIVES: f64 = 0.25;
/// Period of the scrub: short enough to find every damaged copy before a scenario ends.
const SCRUB_PERIOD: Duration = Duration::from_secs(10);

/// A scenario: all parameters of a run. Equal scenarios have equal runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Seed of all random numbers in the run.
    pub seed: u64,
    /// The flash.
    pub flash: Flash,
    /// Replaces the flash array, if present, by a drive of the same geometry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveShape>,
    /// The store.
    pub store: StoreShape,
    /// The clients.
    pub clients: Clients,
    /// Number of power cuts; a session precedes each.
    pub cuts: u32,
    /// Faults besides the power cuts.
    pub faults: FaultConfig,
    /// The client model of RESP clients; without it, clients call the store directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resp: Option<Resp>,
    /// How time passes.
    #[serde(default)]
    pub pace: Pace,
    /// Faults that destroy data.
    #[serde(default, rename = "disasters")]
    pub fault_plan: FaultPlan,
}

/// A flash array with one chip per channel; each channel is a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Number of channels.
    pub channels: u16,
    /// Planes per die.
    pub planes: u8,
    /// Blocks per plane, which is the number of superblocks of a unit.
    pub blocks: u32,
    /// Pages per block.
    pub pages: u32,
}

/// A drive with a volatile write cache: models a file or a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveShape {
    /// Erased blocks read as zeros; otherwise an erase keeps the old contents.
    pub discards: bool,
}

/// Layout and options of the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoreShape {
    /// Number of shards.
    pub shards: u16,
    /// Number of slices, at least one per shard.
    pub slices: u16,
    /// Memory, in KiB.
    pub memory_kib: u64,
    /// Every other session has a quarter of this memory.
    #[serde(default)]
    pub memory_varies: bool,
    /// Superblocks are erased as soon as they are released.
    #[serde(default)]
    pub eager_erases: bool,
    /// Writes are acknowledged immediately and are durable within this many milliseconds; 0: writes
    /// are durable when they are acknowledged.
    pub interval_ms: u64,
    /// Number of copies of all data, on different units.
    #[serde(default = "one_copy", skip_serializing_if = "is_one")]
    pub copies: u8,
    /// Maximum number of patches that share a parity block; 0 for no parity.
    #[serde(default, skip_serializing_if = "is_none")]
    pub parity: u8,
    /// Maximum length of a fragment of a value, in bytes; 0 for the store's default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fragment_bytes: u64,
    /// Number of watches after which the store sweeps the unused ones; 0 for the store's default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub watch_sweep: u64,
    /// Length from which values are written to value blocks, in bytes; 0: values stay in the tree.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub value_threshold: u64,
}

impl StoreShape {
    /// Whether the store survives the loss of a unit.
    pub fn is_redundant(&self) -> bool {
        self.copies > 1 || self.parity > 0
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_never(share: &f64) -> bool {
    *share == 0.0
}

fn is_none(parity: &u8) -> bool {
    *parity == 0
}

fn is_one(copies: &u8) -> bool {
    *copies == one_copy()
}

/// Clients. Each has its own keys and one outstanding request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// Number of clients.
    pub count: u16,
    /// Keys of each client.
    pub keys: u64,
    /// Longest value in bytes.
    pub value_bytes: u64,
    /// Maximum number of keys in one write.
    pub batch: u64,
    /// Requests of each client in a session without a cut.
    pub requests: u32,
    /// Share of reads.
    pub reads: f64,
    /// Share of deletions among writes.
    pub deletes: f64,
    /// Share of values that have the length `large_bytes`.
    #[serde(default, skip_serializing_if = "is_never")]
    pub larges: f64,
    /// Length of the largest values in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub large_bytes: u64,
}

impl Clients {
    /// Maximum length of the next value.
    pub fn longest_value(&self, rng: &mut Rng) -> u64 {
        let is_large = self.larges > 0.0 && rng.chance(self.larges);
        if is_large { self.large_bytes } else { self.value_bytes }
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
        let flash = Flash { channels, planes, blocks, pages };
        let interval = shards == 1 && rng.chance(0.25);
        let store = StoreShape {
            shards,
            slices: shards * (1 + rng.below(2) as u16),
            memory_kib: 512 << rng.below(3),
            memory_varies: extra_rng.chance(0.3),
            eager_erases: extra_rng.chance(0.3),
            interval_ms: if interval { 1 + rng.below(20) } else { 0 },
            copies: one_copy(),
            parity: 0,
            fragment_bytes: 0,
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
        };
        let on_drive = profile.may_be_on_drive() && extra_rng.chance(DRIVES);
        let drive = on_drive.then(|| DriveShape { discards: extra_rng.chance(0.5) });
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
        }
        .with_more_shards()
        .with_client_model(profile)
        .with_width()
        .with_value_log()
    }

    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// The file cannot be read or parsed; the error names the file.
    pub fn read(path: &str) -> Result<Scenario, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{path}: {error}"))
    }

    /// Uses random streams of its own, so that earlier seeds keep their meaning.
    fn with_client_model(mut self, profile: Profile) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("habits");
        let firm = self.store.interval_ms == 0;
        profile.add(&mut self, &mut rng);
        // Where data may be lost, only the reference of RESP clients knows how much.
        let speaks = rng.chance(0.6) || self.may_lose();
        let mut extra_rng = Rng::seeded(self.seed).fork("speech");
        self.resp = speaks.then(|| Resp::drawn(&mut rng, &mut extra_rng, firm && !self.may_lose()));
        if speaks {
            self.pace = Pace::drawn(&mut rng, firm);
        }
        profile.force(&mut self, &mut rng);
        self
    }

    /// Number of units of each shard.
    pub fn units_of_a_shard(&self) -> usize {
        usize::from(self.flash.channels / self.store.shards).max(1)
    }

    /// Whether acknowledged data may be lost other than by a power cut. False where copies or
    /// parity exist.
    pub fn may_lose(&self) -> bool {
        let Scenario { faults, fault_plan, store, .. } = self;
        if store.is_redundant() {
            return false;
        }
        faults.silent != SilentFaults::default()
            || faults.bit_errors.is_on()
            || *fault_plan != FaultPlan::default()
    }

    /// A new device.
    pub fn device(&self) -> ModelConfig {
        let mut config = ModelConfig::model();
        config.array.geometry.channels = self.flash.channels;
        config.array.geometry.chips_per_channel = 1;
        config.array.geometry.planes_per_die = self.flash.planes;
        config.array.geometry.blocks_per_plane = self.flash.blocks;
        config.array.geometry.pages_per_block = self.flash.pages;
        config.seed = self.seed >> 1;
        config.faults = self.faults;
        config
    }

    /// Layout of the store.
    pub fn layout(&self) -> StoreLayout {
        StoreLayout {
            shards: self.store.shards,
            slices: self.store.slices,
            units: self.flash.channels,
            compression: Vec::new(),
            copies: self.store.copies,
            parity: self.store.parity,
        }
    }

    /// Options of the store in a session.
    pub fn options(&self, session: u64) -> StoreOptions {
        let durability = match self.store.interval_ms {
            0 => Durability::Flash,
            ms => Durability::Interval(Duration::from_millis(ms)),
        };
        let little = self.store.memory_varies && session % 2 == 1;
        let threshold = self.store.value_threshold;
        let mut options = StoreOptions {
            memory_bytes: (self.store.memory_kib << 10) >> if little { 2 } else { 0 },
            durability,
            value_threshold: (threshold > 0).then_some(threshold as usize),
            ..StoreOptions::default()
        };
        if self.store.fragment_bytes > 0 {
            options.fragment_bytes = self.store.fragment_bytes as usize;
        }
        if self.store.watch_sweep > 0 {
            options.watch_sweep = self.store.watch_sweep as usize;
        }
        if self.store.is_redundant() {
            options.scrub = Some(SCRUB_PERIOD);
        }
        if self.store.eager_erases {
            options.ftl.erased_target = u32::MAX;
            options.ftl.idle_before_erase_ns = 0;
            options.ftl.shortage_patience_ns = 0;
        }
        options
    }
}

impl Flash {
    /// Bytes of a superblock, metadata included.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.planes) * u64::from(PAGE_BYTES)
    }

    /// Bytes of the flash, metadata included.
    pub(crate) fn bytes(&self) -> u64 {
        let pages = u64::from(self.blocks) * u64::from(self.pages) * u64::from(self.planes);
        pages * u64::from(PAGE_BYTES) * u64::from(self.channels)
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

    #[test]
    fn a_seed_is_a_scenario_and_a_scenario_is_a_file() {
        for seed in 0..200 {
            let scenario = Scenario::drawn(seed, Profile::Paired);
            assert_eq!(scenario, Scenario::drawn(seed, Profile::Paired));
            assert_eq!(scenario, toml::from_str(&toml::to_string(&scenario).unwrap()).unwrap());
            scenario.device().array.validate().unwrap();
            assert_eq!(scenario.layout().problem(), None, "seed {seed}");
            let longest = scenario.options(0).fragment_bytes as u64;
            assert!(scenario.clients.larges == 0.0 || longest < scenario.flash.block_bytes() / 2);
            let mirrored = Scenario::drawn(seed, Profile::Mirrored);
            assert_eq!(mirrored.layout().problem(), None, "seed {seed}");
            assert_eq!((mirrored.store.copies, mirrored.may_lose()), (2, false));
            let parity = Scenario::drawn(seed, Profile::Parity);
            assert_eq!(
                (parity.layout().problem(), parity.may_lose()),
                (None, false),
                "seed {seed}"
            );
        }
        assert_ne!(Scenario::drawn(1, Profile::Survived), Scenario::drawn(2, Profile::Survived));
    }
}
