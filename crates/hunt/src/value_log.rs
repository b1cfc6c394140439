//! Draws the length from which values go to value blocks.

use crate::scenario::Scenario;
use softflash_base::random::Rng;

/// Share of scenarios in which many values are separated.
const SEPARATED: f64 = 2.0 / 3.0;
/// Share of the other scenarios with the store's default, which separates only large values.
const DEFAULT: f64 = 0.5;
/// Share of scenarios with steady writers in which no values are separated.
const UNFLUSHED: f64 = 0.8;
/// The store's default.
const DEFAULT_BYTES: u64 = 16 << 10;
/// The thresholds of scenarios with many separated values: 2^3 to 2^13 bytes.
const LEAST: f64 = 3.0;
const MOST: f64 = 13.0;

impl Scenario {
    /// Uses a random stream of its own, so that earlier seeds keep their other properties.
    pub(crate) fn with_value_log(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("value log");
        if self.clients.pause_us > 0 && rng.chance(UNFLUSHED) {
            // Each frame with references follows a flush.
            return self;
        }
        let separates = rng.chance(SEPARATED);
        self.store.value_threshold = if separates {
            // No threshold above the longest value: it would separate nothing.
            let most = (self.clients.value_bytes.max(16) as f64 / 2.0).log2().min(MOST);
            (LEAST + (most - LEAST) * rng.unit_f64()).exp2() as u64
        } else if rng.chance(DEFAULT) {
            DEFAULT_BYTES
        } else {
            0
        };
        if separates && self.pace.prompt_cuts {
            self.erase_expired_values(&mut rng);
        }
        self
    }

    /// Deletes blocks of expired values soon enough that a clock which is set back shows it: all
    /// values of a block expire, and deleted blocks are erased at once.
    fn erase_expired_values(&mut self, rng: &mut Rng) {
        self.store.eager_erases = true;
        self.clients.value_bytes = self.clients.value_bytes.max(200);
        self.store.value_threshold = self.store.value_threshold.min(self.clients.value_bytes / 4);
        if let Some(resp) = &mut self.resp
            && rng.chance(0.5)
        {
            (resp.expiry, resp.lists, resp.list_share) = (1.0, 0, 0.0);
        }
    }
}
