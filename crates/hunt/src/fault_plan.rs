//! Faults beyond the random error rates: dies that fail during a session, units restored from an
//! old image, commands that silently do something else. With one copy, these faults lose
//! acknowledged data, and the store must report the loss. With several copies or parity, the fault
//! plan strikes one unit per scenario, and nothing may be lost.

use serde::{Deserialize, Serialize};

/// Probabilities of these faults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultPlan {
    /// Probability per session that a die fails.
    pub deaths: f64,
    /// Probability per session that a unit is restored from an image of an earlier session.
    pub old_images: f64,
    /// Probability per session that the contents of one whole unit are replaced by random bytes, by
    /// zeros, or by an image of an earlier session. Happens at most once per scenario.
    #[serde(skip_serializing_if = "is_never")]
    pub replacements: f64,
    /// Probability per session that, while the power is off, bits of a unit flip, or two ranges of
    /// its pages change places. Of volumes.
    #[serde(skip_serializing_if = "is_never")]
    pub changed_pages: f64,
    /// Probability per outage that a unit returns in its state of the outage before, again and
    /// again: the store has a rest after each. Only with redundancy.
    #[serde(skip_serializing_if = "is_never")]
    pub returns: f64,
    /// Commands per session, all on one unit, that silently do something else. The key in
    /// files of scenarios is `strikes`.
    #[serde(rename = "strikes", skip_serializing_if = "is_zero")]
    pub planned_faults: u32,
}

fn is_never(chance: &f64) -> bool {
    *chance == 0.0
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}
