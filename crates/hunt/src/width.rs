//! What is drawn beside the rest, from generators of its own, so that what else a seed means stays: more shards, values in
//! several fragments, flash that is nearly full, values larger than memtables may be.

use crate::scenario::{Flash, Scenario};
use softflash_base::random::Rng;
use softflash_nand::faults::SlowOperations;

/// The share of scenarios with three or four shards.
const MORE_SHARDS: f64 = 0.4;
/// The share of scenarios whose values are cut into short fragments.
const SHORT_FRAGMENTS: f64 = 0.5;
/// The share of scenarios that drop watches early.
const EARLY_SWEEPS: f64 = 0.5;
/// The share of scenarios on flash that is nearly full.
const FILLED: f64 = 0.15;
/// The share of scenarios whose clients remove everything while most of it is on flash.
const EMPTIED: f64 = 0.25;
/// The share of scenarios that have a few values larger than their memtables may be.
const LARGE_VALUES: f64 = 0.05;
/// Share of programs that fail where values are large, at most.
const MOST_FAILURES_OF_LARGE: f64 = 3e-4;
/// Units that are worth filling.
const MOST_UNITS_FILLED: u16 = 4;
/// What is filled with short values at most: of more, there would be thousands to be looked at after each cut.
const SMALL_ROOM_BYTES: u64 = 4 << 20;
/// What a key costs beside its value, about.
const KEY_BYTES: u64 = 64;
/// Pages of a block that the FTL keeps for itself.
const HEADER_PAGES: u32 = 2;
/// What is alive in most scenarios, at most. Above, a scenario is nearly full.
const USUAL_SHARE: f64 = 1.0 / 6.0;

impl Scenario {
    /// Some scenarios get three or four shards instead of one or two.
    pub(crate) fn with_more_shards(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("shards");
        // What may be lost with an interval is known of a single shard.
        if self.store.interval_ms > 0 || !rng.chance(MORE_SHARDS) {
            return self;
        }
        let shards = 3 + rng.below(2) as u16;
        self.set_shards(shards);
        self
    }

    /// As many shards, each with as many slices and units as before.
    pub(crate) fn set_shards(&mut self, shards: u16) {
        let before = self.store.shards.max(1);
        self.store.slices = (self.store.slices / before).max(1) * shards;
        self.flash.channels = (self.flash.channels / before).max(1) * shards;
        self.store.shards = shards;
    }

    /// Properties that need to know the flash as it is in the end.
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

    /// A little of what is written is larger than the memtables of the shard may be together; the flash is large enough for
    /// some of it.
    fn draw_large_values(&mut self, rng: &mut Rng) {
        self.set_shards(1);
        self.flash =
            Flash { planes: 2, blocks: 100 + rng.below(30) as u32, pages: 32, ..self.flash };
        self.store.memory_kib = 512;
        self.store.fragment_bytes = [4096, 16_384, 65_536][rng.below(3) as usize];
        self.clients.large_bytes = (1 << 20) + rng.below(1 << 19);
        self.clients.larges = 0.1 + 0.2 * rng.unit_f64();
        // So few that the flash is not short of space: what is kept free does not count with values that are larger than
        // memtables, and a flush that finds no room is the last.
        self.clients.count = self.clients.count.min(2);
        self.clients.keys = self.clients.keys.min(2);
        self.clients.batch = 1;
        self.resp.iter_mut().for_each(|resp| resp.transactions = 0.0);
        self.clients.requests = self.clients.requests.min(16);
        // So many patches are written that of those which fail some would fail in all four places that are tried.
        self.faults.program_failure = self.faults.program_failure.min(MOST_FAILURES_OF_LARGE);
    }

    /// Of a flash of many blocks three fifths are alive at most: with more, such small flash is full most of the time.
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
        // With all of it erased again and again, and erases that fail, half of the flash would be gone before it is full.
        self.store.eager_erases &= self.faults.erase_failure == 0.0;
        let share = 0.2 + 0.4 * rng.unit_f64();
        let short = rng.chance(0.5) && self.room_bytes() < SMALL_ROOM_BYTES;
        self.fill_up_to(share, if short { 3000 } else { 12_000 });
    }

    /// So much data that most of it is on flash, in segments that are soon full, and clients that remove all of it now and then
    /// while others read, watch and write.
    fn draw_removals(&mut self, rng: &mut Rng) {
        // Who loses writes may lose a part of what was removed with them.
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
        // What is under way when all is removed is seen best where it takes long.
        if rng.chance(0.7) {
            self.faults.slow = SlowOperations { rate: 0.3, factor: 30.0 };
        }
        self.fill_up_to(0.2, 12_000);
        self.clients.reads = 0.2 + 0.4 * rng.unit_f64();
    }

    /// Values of up to so many bytes, and as many keys as make such a share of the room alive.
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

    /// Bytes of values and keys that there is room for, were all of it used.
    pub fn room_bytes(&self) -> u64 {
        let pages = u64::from(self.flash.pages.saturating_sub(HEADER_PAGES));
        let raw = self.flash.bytes() / u64::from(self.flash.pages.max(1)) * pages;
        raw / if self.store.is_redundant() { 2 } else { 1 }
    }

    /// The share of the room that is alive when every key has a value.
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
    use crate::scenario::{Profile, Size};

    #[test]
    fn scenarios_are_drawn_as_wide_as_they_should_be() {
        let drawn = |seed| Size::Mixed.of(Scenario::drawn(seed, Profile::Survived));
        let scenarios: Vec<Scenario> = (0..2000).map(drawn).collect();
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
