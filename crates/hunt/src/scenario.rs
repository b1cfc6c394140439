//! The parameters of a scenario.

use crate::client_model::{Pace, Resp};
use crate::fault_plan::FaultPlan;
use crate::superblock_shape::SuperblockShape;
use crate::volume_shape::VolumeShape;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use softflash_device::ModelConfig;
use softflash_nand::faults::{FaultConfig, SilentFaults};
use softflash_store::layout::one_copy;
use softflash_store::{Durability, StoreLayout, StoreOptions};
use std::time::Duration;

const PAGE_BYTES: u32 = 4096;
/// Period of the scrub: short enough to find every damaged copy before a scenario ends.
const SCRUB_PERIOD: Duration = Duration::from_secs(10);

/// The most passes of the scrub while a client pauses: a pause of hours would take minutes.
const SCRUBS_IN_PAUSE: u32 = 100;

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
    /// Patches that are damaged after the end, one after the other, with a repair for each.
    #[serde(default, skip_serializing_if = "is_zero_repairs")]
    pub repairs: u32,
    /// Clients of volumes, in place of those of a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<VolumeShape>,
    /// An owner of superblocks on the FTL alone, in place of a store and its clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superblocks: Option<SuperblockShape>,
}

/// A flash array with one chip per channel, of one or several dies; each channel is a unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flash {
    /// Number of channels.
    pub channels: u16,
    /// Dies of a unit.
    #[serde(default = "one_die", skip_serializing_if = "is_one_die")]
    pub dies: u8,
    /// Planes per die.
    pub planes: u8,
    /// Blocks per plane, which is the number of superblocks of a unit.
    pub blocks: u32,
    /// Pages per block.
    pub pages: u32,
}

/// A drive with a volatile write cache: models a file or a block device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriveShape {
    /// Erased blocks read as zeros; otherwise an erase keeps the old contents.
    pub discards: bool,
    /// Share of flushes that fail, in sessions that end with a cut.
    #[serde(default, skip_serializing_if = "is_never")]
    pub failed_flushes: f64,
    /// After a failed flush all later ones of the session fail, as with a file; otherwise a later
    /// one may make everything durable.
    #[serde(default, skip_serializing_if = "is_not")]
    pub stays_failed: bool,
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
    /// Share of sessions in which units leave a shard, and come back.
    #[serde(default, skip_serializing_if = "is_never")]
    pub hand_overs: f64,
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
    /// The most bytes of a frame of the log; 0 for the store's default.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frame_bytes: u64,
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

fn is_zero_repairs(count: &u32) -> bool {
    *count == 0
}

fn is_not(flag: &bool) -> bool {
    !flag
}

fn is_never(share: &f64) -> bool {
    *share == 0.0
}

fn is_none(parity: &u8) -> bool {
    *parity == 0
}

fn one_die() -> u8 {
    1
}

fn is_one_die(dies: &u8) -> bool {
    *dies == one_die()
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
    /// Share of requests that scan a slice, keys of other clients included. Of clients that call
    /// the store.
    #[serde(default, skip_serializing_if = "is_never")]
    pub scans: f64,
    /// Share of writes that write the keys of the write before once more. Of clients that call the
    /// store.
    #[serde(default, skip_serializing_if = "is_never")]
    pub again: f64,
    /// Pause of a client between two requests, in microseconds. Of clients that call the store.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_us: u64,
}

impl Clients {
    /// Maximum length of the next value.
    pub fn longest_value(&self, rng: &mut Rng) -> u64 {
        let is_large = self.larges > 0.0 && rng.chance(self.larges);
        if is_large { self.large_bytes } else { self.value_bytes }
    }
}

impl Scenario {
    /// Reads a scenario from a file.
    ///
    /// # Errors
    /// The file cannot be read or parsed; the error names the file.
    pub fn read(path: &str) -> Result<Scenario, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
        toml::from_str(&text).map_err(|error| format!("{path}: {error}"))
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

    /// Whether the contents of one unit of several may be replaced, once, and nothing else is lost.
    pub fn loses_one_unit_at_most(&self) -> bool {
        let Scenario { faults, fault_plan, flash, .. } = self;
        let replaces = FaultPlan { replacements: fault_plan.replacements, ..FaultPlan::default() };
        flash.channels > 1
            && *fault_plan == replaces
            && faults.silent == SilentFaults::default()
            && !faults.bit_errors.is_on()
            && faults.paired_page_loss == 0.0
            && faults.cut_pages.unstable == 0.0
    }

    /// The interval of durability, where clients write steadily: there the age of lost writes is
    /// compared with it.
    pub fn steady_interval(&self) -> Option<Duration> {
        let interval = Duration::from_millis(self.store.interval_ms);
        (self.clients.pause_us > 0 && !interval.is_zero()).then_some(interval)
    }

    /// A new device.
    pub fn device(&self) -> ModelConfig {
        let mut config = ModelConfig::model();
        config.array.geometry.channels = self.flash.channels;
        config.array.geometry.chips_per_channel = 1;
        config.array.geometry.dies_per_chip = self.flash.dies;
        config.array.geometry.planes_per_die = self.flash.planes;
        config.array.geometry.blocks_per_plane = self.flash.blocks;
        config.array.geometry.pages_per_block = self.flash.pages;
        config.seed = self.seed >> 1;
        config.faults = self.faults;
        config
    }

    /// Layout of the store.
    pub fn layout(&self) -> StoreLayout {
        let StoreShape { shards, slices, copies, parity, .. } = self.store;
        StoreLayout { copies, parity, ..StoreLayout::new(shards, slices, self.flash.channels) }
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
        if self.store.frame_bytes > 0 {
            options.frame_bytes = Some(self.store.frame_bytes as usize);
        }
        if self.store.watch_sweep > 0 {
            options.watch_sweep = self.store.watch_sweep as usize;
        }
        if self.store.is_redundant() {
            let pause = Duration::from_millis(self.pace.longest_pause_ms);
            options.scrub = Some(SCRUB_PERIOD.max(pause / SCRUBS_IN_PAUSE));
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
        self.pages_of_superblock() * u64::from(PAGE_BYTES)
    }

    fn pages_of_superblock(&self) -> u64 {
        u64::from(self.pages) * u64::from(self.planes) * u64::from(self.dies)
    }

    /// Bytes of the flash, metadata included.
    pub(crate) fn bytes(&self) -> u64 {
        let pages = u64::from(self.blocks) * self.pages_of_superblock();
        pages * u64::from(PAGE_BYTES) * u64::from(self.channels)
    }
}
