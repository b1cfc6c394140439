//! The owner of superblocks in a scenario.

use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;

/// The requests of an owner of superblocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuperblockShape {
    /// Share of superblocks that are released unused.
    pub unused: f64,
    /// Superblocks that the owner keeps in a unit, as a share of all.
    pub kept: f64,
}

impl SuperblockShape {
    /// Draws the shape for a scenario, and gives its flash several dies and planes a unit, whose
    /// blocks fail often.
    pub fn drawn(scenario: &mut Scenario, rng: &mut Rng) -> SuperblockShape {
        scenario.flash.channels = 1 + rng.below(2) as u16;
        scenario.flash.dies = 2 + rng.below(2) as u8;
        scenario.flash.planes = 1 + rng.below(2) as u8;
        scenario.flash.blocks = 16 + rng.below(17) as u32;
        scenario.flash.pages = 8;
        scenario.faults.program_failure = if rng.chance(0.7) { 0.003 } else { 0.0 };
        scenario.faults.erase_failure = if rng.chance(0.7) { 0.02 } else { 0.0 };
        scenario.faults.factory_bad_block = if rng.chance(0.5) { 0.03 } else { 0.0 };
        scenario.clients.requests = 64;
        SuperblockShape { unused: 0.4 * rng.unit_f64(), kept: 0.2 + 0.5 * rng.unit_f64() }
    }
}
