//! Draws the length from which values go to value blocks.

use crate::scenario::Scenario;
use softflash_base::random::Rng;

/// Share of scenarios in which many values are separated.
const SEPARATED: f64 = 2.0 / 3.0;
/// Share of the other scenarios with the store's default, which separates only large values.
const DEFAULT: f64 = 0.5;
/// The store's default.
const DEFAULT_BYTES: u64 = 32 << 10;
/// The thresholds of scenarios with many separated values: 2^3 to 2^13 bytes.
const LEAST: f64 = 3.0;
const MOST: f64 = 13.0;

impl Scenario {
    /// Uses a random stream of its own, so that earlier seeds keep their other properties.
    pub(crate) fn with_value_log(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("value log");
        self.store.value_threshold = if rng.chance(SEPARATED) {
            // No threshold above the longest value: it would separate nothing.
            let most = (self.clients.value_bytes.max(16) as f64 / 2.0).log2().min(MOST);
            (LEAST + (most - LEAST) * rng.unit_f64()).exp2() as u64
        } else if rng.chance(DEFAULT) {
            DEFAULT_BYTES
        } else {
            0
        };
        self
    }
}
