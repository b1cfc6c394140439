//! How clients behave, and how time passes.

use crate::memory::Memory;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// Clients that speak RESP to the server's own command layer. Without it they call the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resp {
    /// Most commands that are sent at once, or are in a transaction.
    pub pipeline: u64,
    /// Share of requests that are transactions.
    pub transactions: f64,
    /// Share of writes that say how long the value lasts.
    pub expiry: f64,
    /// The longest that a value lasts that does not last for ever.
    pub longest_life_ms: u64,
    /// Keys that all clients write.
    pub lists: u64,
    /// Share of requests for them.
    pub list_share: f64,
    /// Share of requests that remove everything.
    pub clears: f64,
    /// While others make their requests; otherwise nobody else does anything meanwhile.
    #[serde(default, skip_serializing_if = "is_not")]
    pub clears_beside: bool,
    /// Share of requests that are whole iterations of SCAN.
    #[serde(default = "few_scans", skip_serializing_if = "are_few_scans")]
    pub scans: f64,
    /// Most keys that a transaction watches.
    #[serde(default = "one_key", skip_serializing_if = "is_one_key")]
    pub watched: u64,
    /// Share of requests that watch keys and let go of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub litter: f64,
    /// Share of requests that are the last, as the connection is lost in their middle.
    pub vanishing: f64,
    /// What the server has for requests and replies.
    #[serde(default, skip_serializing_if = "Memory::is_ample")]
    pub memory: Memory,
}

/// How time passes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pace {
    /// Share of requests before which a client rests.
    pub pauses: f64,
    /// The longest rest.
    pub longest_pause_ms: u64,
    /// The longest that the power stays away.
    pub longest_outage_ms: u64,
    /// The wall clock may be set back while the power is away.
    pub steps_back: bool,
    /// Three of four cuts come within milliseconds of a request.
    #[serde(skip_serializing_if = "is_not")]
    pub prompt_cuts: bool,
}

fn is_not(flag: &bool) -> bool {
    !flag
}

fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// The share of SCANs where nobody does many.
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
    /// Drawn client_model, some of them `apart`; `firm` where acknowledged writes are on flash.
    pub fn drawn(rng: &mut Rng, apart: &mut Rng, firm: bool) -> Resp {
        let mut some = |rate: f64, chance: f64| if rng.chance(chance) { rate } else { 0.0 };
        let (transactions, list_share) = (some(0.2, 0.6), some(0.2, 0.5));
        let (expiry, vanishing) = (some(0.4, 0.6), some(0.02, 0.4));
        // Who may lose the last writes of each shard may lose a part of what was removed with them.
        let clears = if firm { some(0.01, 0.3) } else { 0.0 };
        let beside = apart.chance(0.35);
        // Often, and so rarely that much is on flash by then.
        let often = 0.002 * 50_f64.powf(apart.unit_f64());
        let (clears_beside, clears) = if firm && beside { (true, often) } else { (false, clears) };
        let scans = if apart.chance(0.3) { 0.1 } else { few_scans() };
        let (watched, litter) =
            if apart.chance(0.5) { (2 + apart.below(7), 0.2) } else { (one_key(), 0.0) };
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
            litter,
            vanishing,
            memory: Memory::drawn(&mut apart.fork("memory")),
        }
    }
}

impl Pace {
    /// A drawn pace: half of the scenarios are in a hurry. Only where acknowledged writes are on flash is it certain that
    /// what was seen expired stays so when the clock is set back.
    pub fn drawn(rng: &mut Rng, firm: bool) -> Pace {
        let slow = rng.chance(0.5);
        Pace {
            pauses: if slow { 0.3 * rng.unit_f64() } else { 0.0 },
            longest_pause_ms: if slow { 1 << (8 + rng.below(18)) } else { 0 },
            longest_outage_ms: 1 << rng.below(28),
            steps_back: firm && rng.chance(0.2),
            prompt_cuts: false,
        }
    }
}
