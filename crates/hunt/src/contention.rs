//! Draws contention: changes that wait behind reads of the same keys, scans of keys that others
//! write, and writers that never rest.

use crate::scenario::{DriveShape, Flash, Scenario};
use softflash_base::random::Rng;
use softflash_nand::faults::FaultConfig;

/// Share of the scenarios of RESP with long pipelines on a handful of keys.
const LONG_PIPELINES: f64 = 0.15;
/// Share of the other scenarios of RESP with many keys and long scans.
const LONG_SCANS: f64 = 0.1;
/// Share of the scenarios without RESP with scans of keys that others write.
const SCANNED: f64 = 0.25;
/// Share of the scenarios with interval durability in which clients write steadily.
const STEADY: f64 = 0.6;
/// The time in which a steady writer makes its requests, and the most of them.
const STEADY_US: u64 = 400_000;
const MOST_STEADY: u64 = 96;

impl Scenario {
    /// Uses a random stream of its own, so that earlier seeds keep their other properties.
    pub(crate) fn with_contention(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("contention");
        if self.repairs > 0
            || self.fault_plan.returns > 0.0
            || self.clients.larges > 0.0
            || self.is_filled()
            || self.pace.prompt_cuts
        {
            return self;
        }
        if self.store.interval_ms > 0 && !self.may_lose() && rng.chance(STEADY) {
            self.write_steadily(&mut rng);
        } else if let Some(resp) = &self.resp {
            match resp.clears_beside {
                true => {}
                false if rng.chance(LONG_PIPELINES) => self.draw_long_pipelines(&mut rng),
                false if rng.chance(LONG_SCANS) => self.draw_long_scans(&mut rng),
                false => {}
            }
        } else if rng.chance(SCANNED) {
            self.draw_scans(&mut rng);
        }
        self
    }

    /// Whether more requests and keys than usual matter.
    pub(crate) fn contends(&self) -> bool {
        let many = self.clients.keys > 60 && !self.is_filled();
        many || self.clients.scans > 0.0 || self.clients.pause_us > 0
    }

    /// Long pipelines on a handful of keys, beside transactions that hold the gates of shards:
    /// reads and changes of a key wait at the same gate.
    fn draw_long_pipelines(&mut self, rng: &mut Rng) {
        if let Some(resp) = &mut self.resp {
            resp.pipeline = 8 << rng.below(3);
            resp.transactions = 0.1 + 0.3 * rng.unit_f64();
        }
        self.clients.keys = 1 + rng.below(3);
        self.clients.count = self.clients.count.max(3);
        self.clients.reads = 0.3 + 0.4 * rng.unit_f64();
    }

    /// Iterations over many short keys of all clients.
    fn draw_long_scans(&mut self, rng: &mut Rng) {
        self.hold_many_keys(rng);
        if let Some(resp) = &mut self.resp {
            resp.scans = 0.2;
        }
    }

    /// Scans of whole slices, over keys that their clients write once and again.
    fn draw_scans(&mut self, rng: &mut Rng) {
        self.hold_many_keys(rng);
        self.clients.scans = 0.1 + 0.2 * rng.unit_f64();
        self.clients.again = 0.5;
    }

    /// More keys than a scan takes from a memtable at a time, in memory and on flash.
    fn hold_many_keys(&mut self, rng: &mut Rng) {
        self.clients.count = self.clients.count.max(2);
        self.clients.keys = 100 + rng.below(100);
        self.clients.value_bytes = [16, 200][rng.below(2) as usize];
        self.clients.deletes *= 0.5;
        self.clients.batch = 6;
        // A log that is long enough for as many batches before a flush.
        self.flash = Flash { planes: 2, pages: 32, ..self.flash };
        self.clients.requests = self.clients.requests.max(32);
        self.store.slices = self.store.shards;
        self.store.memory_kib = self.store.memory_kib.max(1024);
    }

    /// Writes at shorter distances than the interval, for many intervals, on a drive that keeps
    /// them in its cache until a flush.
    fn write_steadily(&mut self, rng: &mut Rng) {
        self.resp = None;
        self.drive = Some(DriveShape { discards: rng.chance(0.5), ..DriveShape::default() });
        self.faults = FaultConfig::default();
        self.pace = Default::default();
        self.store.interval_ms = 1 + rng.below(20);
        let interval_us = 1000 * self.store.interval_ms;
        self.clients.pause_us = interval_us / (2 + rng.below(6));
        let requests = (STEADY_US / self.clients.pause_us).clamp(16, MOST_STEADY);
        self.clients.requests = requests as u32;
        self.clients.reads *= 0.5;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::size::Size;

    #[test]
    fn contention_is_drawn_with_its_shares() {
        let scenarios: Vec<Scenario> = (0..2000)
            .map(|seed| Size::Mixed.of(Scenario::drawn(seed, Profile::Survived)))
            .filter(|scenario| scenario.superblocks.is_none())
            .collect();
        let count = |what: &str, fits: &dyn Fn(&Scenario) -> bool| {
            let seeds: Vec<u64> = scenarios
                .iter()
                .filter(|scenario| fits(scenario))
                .map(|scenario| scenario.seed)
                .collect();
            println!("{what}: {seeds:?}");
            seeds.len()
        };
        let pipelines = |scenario: &Scenario| scenario.resp.as_ref().map_or(0, |r| r.pipeline);
        let fails = |scenario: &Scenario| scenario.drive.is_some_and(|d| d.failed_flushes > 0.0);
        let counts = [
            count("long pipelines", &|scenario| pipelines(scenario) >= 8),
            count("long scans", &|scenario| scenario.contends() && pipelines(scenario) > 0),
            count("scans", &|scenario| scenario.clients.scans > 0.0),
            count("steady", &|scenario| scenario.steady_interval().is_some()),
            count("several dies", &|scenario| scenario.flash.dies > 1),
            count("short frames", &|scenario| scenario.store.frame_bytes > 0),
            count("failed flushes", &fails),
        ];
        assert!(counts.iter().all(|count| (40..400).contains(count)), "{counts:?}");
        let unflushed = |scenario: &Scenario| {
            scenario.steady_interval().is_some() && scenario.store.value_threshold == 0
        };
        assert!(count("steady without separated values", &unflushed) > 30);
    }
}
