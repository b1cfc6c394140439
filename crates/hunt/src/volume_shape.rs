//! The clients of volumes in a scenario.

use crate::fault_plan::FaultPlan;
use crate::pair_shape::PairShape;
use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use softflash_policy::LifetimePolicy;

/// The domain of a scenario, and the requests of its clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeShape {
    /// Mapping units of a client's volume.
    pub units: u32,
    /// The most mapping units of a request.
    pub longest: u32,
    /// The most mapping units of a frame.
    pub frame_units: u32,
    /// Entries between checkpoints.
    pub checkpoint_entries: u64,
    /// Share of discards among requests.
    pub discards: f64,
    /// Share of flushes.
    pub flushes: f64,
    /// Share of snapshots, clones, changes of size and deletions.
    pub operations: f64,
    /// Share of changes of settings: quotas, limits, weights and hints.
    #[serde(default)]
    pub settings: f64,
    /// Share of bursts: several reads and writes of a client at once.
    #[serde(default, skip_serializing_if = "is_never")]
    pub bursts: f64,
    /// Share of writes that wait for a low limit, which is lifted meanwhile.
    #[serde(default, skip_serializing_if = "is_never")]
    pub lifts: f64,
    /// Share of new names, of returns to a snapshot, and of clones that are promoted.
    #[serde(default, skip_serializing_if = "is_never")]
    pub reshapes: f64,
    /// At the end three volumes compete, of which one begins later than the others.
    #[serde(default, skip_serializing_if = "is_not")]
    pub contest: bool,
    /// A table of sets names the unit slots: another order than that of the units, behind an empty
    /// slot.
    #[serde(default, skip_serializing_if = "is_not")]
    pub has_table: bool,
    /// Share of sessions in which units pass from one set to another: a domain drains one, or a
    /// spare one is erased and joins. Only with a table of sets.
    #[serde(default, skip_serializing_if = "is_never")]
    pub hand_overs: f64,
    /// Two sets with a copy each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<PairShape>,
    /// Which data without hints share superblocks.
    #[serde(default, skip_serializing_if = "predicts_nothing")]
    pub lifetime: LifetimePolicy,
}

/// A policy that is drawn in half of the scenarios.
fn drawn_lifetime(rng: &mut Rng) -> LifetimePolicy {
    let policies = ["sepbit", "interval:3", "decay:3", "sfr:3"];
    let drawn = rng.below(2 * policies.len() as u64) as usize;
    let policy = policies.get(drawn).map(|text| text.parse());
    policy.and_then(Result::ok).unwrap_or_default()
}

fn predicts_nothing(policy: &LifetimePolicy) -> bool {
    *policy == LifetimePolicy::NONE
}

fn is_never(share: &f64) -> bool {
    *share == 0.0
}

fn is_not(flag: &bool) -> bool {
    !flag
}

impl VolumeShape {
    /// Draws the shape for a scenario, and makes its flash large enough.
    pub fn drawn(scenario: &mut Scenario, rng: &mut Rng) -> VolumeShape {
        // A unit keeps some superblocks for frontiers and reserves.
        scenario.flash.blocks = 48 + rng.below(48) as u32;
        if rng.chance(0.2) {
            // Enough for several classes of data.
            scenario.flash.blocks += 96;
        }
        let mut lifetimes = Rng::seeded(scenario.seed).fork("lifetimes");
        let lifetime = drawn_lifetime(&mut lifetimes);
        if !predicts_nothing(&lifetime) && lifetimes.chance(0.5) {
            scenario.flash.blocks = scenario.flash.blocks.max(128 + lifetimes.below(64) as u32);
        }
        scenario.flash.channels = 1 + rng.below(4) as u16;
        let FaultPlan { replacements, old_images, returns, .. } = scenario.fault_plan;
        if replacements + old_images + returns > 0.0 {
            // An older image of the only unit is a consistent, older domain.
            scenario.flash.channels = scenario.flash.channels.max(2);
        }
        scenario.flash.pages = 32 << rng.below(2);
        scenario.clients.count = 1 + rng.below(4) as u16;
        let frame_units = [8, 16, 64][rng.below(3) as usize];
        // A client has its volume, up to two snapshots and a clone: full devices are some of all.
        let data = scenario.flash.bytes() / 4096 / 2;
        let most = data / u64::from(scenario.clients.count) / 4;
        let mut rivals = Rng::seeded(scenario.seed).fork("competing requests");
        let contest = rivals.chance(0.5);
        let mut some = |share: f64| {
            let is_drawn = rivals.chance(0.5);
            share * rivals.unit_f64() * f64::from(u8::from(is_drawn))
        };
        let mut reshaping = Rng::seeded(scenario.seed).fork("names, returns and promotions");
        let is_reshaped = reshaping.chance(0.5);
        let most_reshapes = if reshaping.chance(0.25) { 0.4 } else { 0.1 };
        let reshapes = if is_reshaped { most_reshapes * reshaping.unit_f64() } else { 0.0 };
        let has_table = Rng::seeded(scenario.seed).fork("table of sets").chance(0.25);
        let hand_overs = drawn_hand_overs(scenario);
        VolumeShape {
            units: (16 + rng.below(most.clamp(1, 400))) as u32,
            longest: 1 + rng.below(20) as u32,
            frame_units,
            checkpoint_entries: 50 << rng.below(8),
            discards: 0.2 * rng.unit_f64(),
            flushes: 0.2 * rng.unit_f64(),
            operations: if rng.chance(0.7) { 0.05 * rng.unit_f64() } else { 0.0 },
            settings: if rng.chance(0.5) { 0.05 * rng.unit_f64() } else { 0.0 },
            bursts: some(0.3),
            lifts: some(0.1),
            reshapes,
            contest,
            lifetime,
            has_table: has_table || hand_overs > 0.0,
            hand_overs,
            pair: None,
        }
    }

    /// As [`drawn`](VolumeShape::drawn), of volumes with two copies. A quota is that of one of the
    /// sets, and volumes compete for both.
    pub fn of_pair(scenario: &mut Scenario, rng: &mut Rng) -> VolumeShape {
        let mut of_pair = Rng::seeded(scenario.seed).fork("pair");
        let shape = VolumeShape::drawn(scenario, rng);
        let pair = Some(PairShape::drawn(scenario, &mut of_pair));
        VolumeShape { pair, has_table: true, contest: false, settings: 0.0, lifts: 0.0, ..shape }
    }
}

/// The share of sessions with hand-overs, in some scenarios in which no data may be lost.
fn drawn_hand_overs(scenario: &mut Scenario) -> f64 {
    let mut rng = Rng::seeded(scenario.seed).fork("hand-overs");
    if scenario.may_lose() || scenario.repairs > 0 || !rng.chance(0.5) {
        return 0.0;
    }
    scenario.flash.channels = scenario.flash.channels.max(2 + rng.below(3) as u16);
    0.2 + 0.8 * rng.unit_f64()
}
