//! The client model: how clients behave, and how time passes.

use crate::memory::Memory;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// RESP clients of the server's command layer. Without this, clients call the store directly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resp {
    /// Maximum number of commands in a pipeline or a transaction.
    pub pipeline: u64,
    /// Share of requests that are transactions.
    pub transactions: f64,
    /// Share of writes that set an expiry.
    pub expiry: f64,
    /// Maximum time to live of a key with an expiry.
    pub longest_life_ms: u64,
    /// Number of keys that all clients write.
    pub lists: u64,
    /// Share of requests to these keys.
    pub list_share: f64,
    /// Share of requests that are FLUSHALL.
    pub clears: f64,
    /// FLUSHALL runs concurrently with other requests; otherwise it runs alone.
    #[serde(default, skip_serializing_if = "is_not")]
    pub clears_beside: bool,
    /// Share of requests that are full SCAN iterations.
    #[serde(default = "few_scans", skip_serializing_if = "are_few_scans")]
    pub scans: f64,
    /// Maximum number of keys that a transaction watches.
    #[serde(default = "one_key", skip_serializing_if = "is_one_key")]
    pub watched: u64,
    /// Share of requests that watch keys and then unwatch them. The key in files of scenarios is
    /// `litter`.
    #[serde(rename = "litter", default, skip_serializing_if = "is_zero")]
    pub unused_watches: f64,
    /// Share of requests during which the client disconnects.
    pub vanishing: f64,
    /// The server's memory for requests and replies.
    #[serde(default, skip_serializing_if = "Memory::is_ample")]
    pub memory: Memory,
}

/// How time passes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pace {
    /// Share of requests before which a client pauses.
    pub pauses: f64,
    /// The longest pause.
    pub longest_pause_ms: u64,
    /// The longest power outage.
    pub longest_outage_ms: u64,
    /// The wall clock may be set back during an outage.
    pub steps_back: bool,
    /// Three of four cuts occur within milliseconds of a request.
    #[serde(skip_serializing_if = "is_not")]
    pub prompt_cuts: bool,
}

fn is_not(flag: &bool) -> bool {
    !flag
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Share of SCAN requests in most scenarios.
pub(crate) fn few_scans() -> f64 {
    0.02
}

fn are_few_scans(share: &f64) -> bool {
    *share == few_scans()
}

fn one_key() -> u64 {
    1
}

fn is_one_key(keys: &u64) -> bool {
    *keys == one_key()
}

impl Resp {
    /// Draws a client model; newer properties come from the random stream `extra_rng`. `durable`:
    /// acknowledged writes are durable.
    pub fn drawn(rng: &mut Rng, extra_rng: &mut Rng, durable: bool) -> Resp {
        let mut some = |rate: f64, chance: f64| if rng.chance(chance) { rate } else { 0.0 };
        let (transactions, list_share) = (some(0.2, 0.6), some(0.2, 0.5));
        let (expiry, vanishing) = (some(0.4, 0.6), some(0.02, 0.4));
        // Where the last writes of each shard may be lost, a FLUSHALL may be lost in some shards
        // only.
        let clears = if durable { some(0.01, 0.3) } else { 0.0 };
        let beside = extra_rng.chance(0.35);
        // Log-uniform: from so frequent that keys are removed soon, to so rare that most data are
        // on flash.
        let often = 0.002 * 50_f64.powf(extra_rng.unit_f64());
        let (clears_beside, clears) =
            if durable && beside { (true, often) } else { (false, clears) };
        let scans = if extra_rng.chance(0.3) { 0.1 } else { few_scans() };
        let (watched, unused_watches) =
            if extra_rng.chance(0.5) { (2 + extra_rng.below(7), 0.2) } else { (one_key(), 0.0) };
        Resp {
            pipeline: 1 + rng.below(6),
            transactions,
            expiry,
            longest_life_ms: 1 << (4 + rng.below(20)),
            lists: if list_share > 0.0 { 1 + rng.below(3) } else { 0 },
            list_share,
            clears,
            clears_beside,
            scans,
            watched,
            unused_watches,
            vanishing,
            memory: Memory::drawn(&mut extra_rng.fork("memory")),
        }
    }
}

impl Pace {
    /// Draws the passage of time; half of the scenarios have no pauses. The clock is set back only
    /// where acknowledged writes are durable: only there is it certain that an expired key stays
    /// expired.
    pub fn drawn(rng: &mut Rng, durable: bool) -> Pace {
        let slow = rng.chance(0.5);
        Pace {
            pauses: if slow { 0.3 * rng.unit_f64() } else { 0.0 },
            longest_pause_ms: if slow { 1 << (8 + rng.below(18)) } else { 0 },
            longest_outage_ms: 1 << rng.below(28),
            steps_back: durable && rng.chance(0.2),
            prompt_cuts: false,
        }
    }
}
