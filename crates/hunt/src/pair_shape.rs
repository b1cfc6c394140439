//! The pair of sets of a scenario of volumes.

use crate::scenario::Scenario;
use serde::{Deserialize, Serialize};
use softflash_base::random::Rng;
use std::time::Duration;

/// Two sets with a copy each of the volumes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairShape {
    /// The length of windows, in microseconds; 0 without windows.
    pub window_us: u32,
    /// Share of power-offs at which the flash of one of the sets is lost, once both have
    /// everything.
    pub losses: f64,
}

impl PairShape {
    /// Draws the pair of a scenario, whose flash is that of two sets then.
    pub fn drawn(scenario: &mut Scenario, rng: &mut Rng) -> PairShape {
        scenario.flash.channels *= 2;
        let exponent = 9.0 + 7.0 * rng.unit_f64();
        let window_us = if rng.chance(0.6) { exponent.exp2() as u32 } else { 0 };
        let losses = if rng.chance(0.5) { 0.5 * rng.unit_f64() } else { 0.0 };
        PairShape { window_us, losses }
    }

    /// The length of windows.
    pub fn window(&self) -> Option<Duration> {
        (self.window_us > 0).then(|| Duration::from_micros(self.window_us.into()))
    }
}
