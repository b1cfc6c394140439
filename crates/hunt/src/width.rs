//! Properties drawn from random streams of their own, so that earlier seeds keep their meaning:
//! more shards, values in several fragments, nearly full flash, values larger than the memtables.

use crate::client_model::Pace;
use crate::fault_plan::FaultPlan;
use crate::scenario::{Flash, Scenario};
use softflash_base::random::Rng;
use softflash_nand::faults::{FaultConfig, SlowOperations};

/// Share of scenarios with three or four shards.
const MORE_SHARDS: f64 = 0.4;
/// Share of scenarios with several dies a unit.
const SEVERAL_DIES: f64 = 0.15;
/// Share of scenarios with short frames, of those whose segments have at least so many bytes.
const SHORT_FRAMES: f64 = 0.5;
const LEAST_SEGMENT_BYTES: u64 = 30 * 4096;
/// Share of scenarios with short fragments of values.
const SHORT_FRAGMENTS: f64 = 0.5;
/// Share of scenarios that sweep watches early.
const EARLY_SWEEPS: f64 = 0.5;
/// Share of scenarios with nearly full flash.
const FILLED: f64 = 0.15;
/// Share of scenarios whose clients remove all keys while most data are on flash.
const EMPTIED: f64 = 0.25;
/// Share of scenarios with a few values that are larger than the memtables.
const LARGE_VALUES: f64 = 0.05;
/// Maximum share of program failures in scenarios with large values.
const MOST_FAILURES_OF_LARGE: f64 = 3e-4;
/// Maximum number of units that a scenario fills.
const MOST_UNITS_FILLED: u16 = 4;
/// Maximum bytes to fill with short values: more would mean thousands of keys to compare after each
/// cut.
const SMALL_ROOM_BYTES: u64 = 4 << 20;
/// Approximate overhead of a key, in bytes.
const KEY_BYTES: u64 = 64;
/// Pages of a block that the FTL uses for its header.
const HEADER_PAGES: u32 = 2;
/// Maximum share of live data in most scenarios. Above it, the flash counts as nearly full.
const USUAL_SHARE: f64 = 1.0 / 6.0;

impl Scenario {
    /// Gives some scenarios three or four shards instead of one or two.
    pub(crate) fn with_more_shards(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("shards");
        // With an interval, the reference knows the possible losses of a single shard only.
        if self.store.interval_ms > 0 || !rng.chance(MORE_SHARDS) {
            return self;
        }
        let shards = 3 + rng.below(2) as u16;
        self.set_shards(shards);
        self
    }

    /// Sets the number of shards; slices and units per shard stay.
    pub(crate) fn set_shards(&mut self, shards: u16) {
        let before = self.store.shards.max(1);
        self.store.slices = (self.store.slices / before).max(1) * shards;
        self.flash.channels = (self.flash.channels / before).max(1) * shards;
        self.store.shards = shards;
    }

    /// Gives the units of some scenarios several dies. Not where dies die: there each is a unit.
    pub(crate) fn with_dies(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("dies");
        let FaultPlan { deaths, planned_faults, returns, .. } = self.fault_plan;
        let is_struck = deaths > 0.0 || planned_faults > 0 || returns > 0.0;
        let one = self.repairs > 0;
        if rng.chance(SEVERAL_DIES) && !one && !is_struck && !self.is_filled() {
            self.flash.dies = 2 + rng.below(2) as u8;
        }
        self
    }

    /// Limits the frames of some logs to a page or two, so that openings and streams have several.
    /// Not where segments are short: an opening must leave room.
    pub(crate) fn with_short_frames(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("frames");
        let is_long = self.flash.block_bytes() >= LEAST_SEGMENT_BYTES;
        if rng.chance(SHORT_FRAMES) && is_long {
            self.store.frame_bytes = 1000 + rng.below(7000);
        }
        self
    }

    /// A store of several runs with keys in common, whose patches are damaged and repaired at the
    /// end.
    pub(crate) fn draw_repairs(&mut self, rng: &mut Rng) {
        self.repairs = 8;
        self.resp = None;
        self.pace = Pace::default();
        self.faults = FaultConfig::default();
        self.store.interval_ms = 0;
        self.flash = Flash { planes: 1, blocks: 80, pages: 16, ..self.flash };
        self.clients.keys = 10 + rng.below(30);
        self.clients.value_bytes = [200, 3000][rng.below(2) as usize];
        self.clients.requests = 64;
        self.cuts = 1 + self.cuts % 3;
    }

    /// Draws properties that depend on the final size of the flash.
    pub(crate) fn with_width(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("width");
        if rng.chance(SHORT_FRAGMENTS) {
            self.store.fragment_bytes = [4096, 1000, 300][rng.below(3) as usize];
        }
        if rng.chance(EARLY_SWEEPS) {
            self.store.watch_sweep = 1 + rng.below(3);
        }
        if rng.chance(LARGE_VALUES) {
            self.draw_large_values(&mut rng);
        } else if rng.chance(FILLED) {
            self.fill(&mut rng);
        } else if rng.chance(EMPTIED) {
            self.draw_removals(&mut rng);
        }
        self
    }

    /// A few values are larger than all memtables of the shard together; the flash has room for
    /// some of them.
    fn draw_large_values(&mut self, rng: &mut Rng) {
        self.set_shards(1);
        self.flash =
            Flash { planes: 2, blocks: 100 + rng.below(30) as u32, pages: 32, ..self.flash };
        self.store.memory_kib = 512;
        self.store.fragment_bytes = [4096, 16_384, 65_536][rng.below(3) as usize];
        self.clients.large_bytes = (1 << 20) + rng.below(1 << 19);
        self.clients.larges = 0.1 + 0.2 * rng.unit_f64();
        // Few clients, so that the flash does not fill up: the store's reserve does not cover
        // values that are larger than the memtables, and a flush without room fails for good.
        self.clients.count = self.clients.count.min(2);
        self.clients.keys = self.clients.keys.min(2);
        self.clients.batch = 1;
        self.resp.iter_mut().for_each(|resp| resp.transactions = 0.0);
        self.clients.requests = self.clients.requests.min(16);
        // Large values mean many patch writes: with a higher rate, some patch would fail at all its
        // attempts.
        self.faults.program_failure = self.faults.program_failure.min(MOST_FAILURES_OF_LARGE);
    }

    /// At most three fifths of the flash are live: beyond that, such small flash is full most of
    /// the time.
    fn fill(&mut self, rng: &mut Rng) {
        let units = self.flash.channels / self.store.shards.max(1);
        if units * self.store.shards.min(2) > MOST_UNITS_FILLED {
            return;
        }
        if self.store.shards > 2 {
            self.set_shards(2);
        }
        let blocks = 64 + rng.below(33) as u32;
        self.flash = Flash { planes: 1, blocks, pages: 16, ..self.flash };
        // With eager erases and erase failures, half of the flash would be bad before it is full.
        self.store.eager_erases &= self.faults.erase_failure == 0.0;
        let share = 0.2 + 0.4 * rng.unit_f64();
        let short = rng.chance(0.5) && self.room_bytes() < SMALL_ROOM_BYTES;
        self.fill_up_to(share, if short { 3000 } else { 12_000 });
    }

    /// So much data that most of it is on flash, in segments that fill up soon, and clients that
    /// remove all keys from time to time while others read, watch and write.
    fn draw_removals(&mut self, rng: &mut Rng) {
        // Where writes may be lost, a removal of all keys may be lost in part.
        if self.store.interval_ms > 0 || self.store.is_redundant() || self.may_lose() {
            return;
        }
        let Some(resp) = &mut self.resp else { return };
        resp.clears_beside = true;
        resp.clears = 0.004 * 5_f64.powf(rng.unit_f64());
        resp.transactions = 0.2;
        self.set_shards(1 + rng.below(3) as u16);
        self.flash = Flash { planes: 1, blocks: 80 + rng.below(40) as u32, pages: 8, ..self.flash };
        self.store.memory_kib = 512;
        self.clients.count = 4 + rng.below(3) as u16;
        // Slow operations make overlap with the removal more likely.
        if rng.chance(0.7) {
            self.faults.slow = SlowOperations { rate: 0.3, factor: 30.0 };
        }
        self.fill_up_to(0.2, 12_000);
        self.clients.reads = 0.2 + 0.4 * rng.unit_f64();
    }

    /// Sets the maximum length of values, and the number of keys such that `share` of the room is
    /// live.
    fn fill_up_to(&mut self, share: f64, value_bytes: u64) {
        self.clients.value_bytes = value_bytes;
        self.clients.requests = self.clients.requests.max(32);
        self.clients.deletes *= 0.25;
        self.clients.reads *= 0.5;
        let of_a_key = self.clients.value_bytes / 2 + KEY_BYTES;
        let keys =
            share * self.room_bytes() as f64 / (of_a_key * u64::from(self.clients.count)) as f64;
        self.clients.keys = (keys as u64).max(1);
    }

    /// Bytes of keys and values for which the flash has room.
    pub fn room_bytes(&self) -> u64 {
        let pages = u64::from(self.flash.pages.saturating_sub(HEADER_PAGES));
        let raw = self.flash.bytes() / u64::from(self.flash.pages.max(1)) * pages;
        raw / if self.store.is_redundant() { 2 } else { 1 }
    }

    /// Share of the room that is live when every key has a value.
    pub fn alive_share(&self) -> f64 {
        let of_a_key = self.clients.value_bytes / 2 + KEY_BYTES;
        let keys = self.clients.keys * u64::from(self.clients.count);
        (keys * of_a_key) as f64 / self.room_bytes().max(1) as f64
    }

    /// Whether the flash is nearly full once the clients have written all their keys.
    pub fn is_filled(&self) -> bool {
        self.alive_share() > USUAL_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::size::Size;

    #[test]
    fn widths_are_drawn_with_their_shares() {
        let drawn = |seed| Size::Mixed.of(Scenario::drawn(seed, Profile::Survived));
        let of_a_store = |scenario: &Scenario| scenario.superblocks.is_none();
        let scenarios: Vec<Scenario> = (0..2000).map(drawn).filter(of_a_store).collect();
        let count = |fits: &dyn Fn(&Scenario) -> bool| {
            scenarios.iter().filter(|scenario| fits(scenario)).count()
        };
        for shards in 1..=4 {
            let share = count(&|scenario| scenario.store.shards == shards);
            assert!(share > 100, "{share} of {shards} shards");
        }
        for bytes in [0, 300, 1000, 4096] {
            assert!(count(&|scenario| scenario.store.fragment_bytes == bytes) > 100, "{bytes}");
        }
        let nearly_full = |range: std::ops::Range<f64>| {
            count(&|scenario| {
                scenario.clients.larges == 0.0 && range.contains(&scenario.alive_share())
            })
        };
        assert!(nearly_full(0.19..0.61) > 100);
        assert_eq!(nearly_full(0.61..99.0), 0);
        assert!(count(&|scenario| scenario.clients.larges > 0.0) > 20);
        assert!(count(&|scenario| scenario.store.watch_sweep == 1) > 100);
        let separates = |range: std::ops::Range<u64>| {
            count(&|scenario| range.contains(&scenario.store.value_threshold))
        };
        assert!(separates(8..8193) > 1000);
        assert!(separates(0..1) > 100 && separates(16_384..16_385) > 100);
        assert!(count(&|scenario| scenario.drive.is_some() && scenario.store.parity > 0) > 10);
        assert!(count(&|scenario| scenario.drive.is_some() && scenario.store.copies > 1) > 10);
        assert!(
            count(&|scenario| scenario.pace.steps_back && scenario.faults.paired_page_loss > 0.0)
                > 50
        );
        assert!(
            scenarios
                .iter()
                .all(|scenario| scenario.store.interval_ms == 0 || scenario.store.shards == 1)
        );
    }
}
