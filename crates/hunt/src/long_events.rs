//! Draws events that are longer than several segments of the log.
//!
//! Such an event lies on units in turn: the end of one of its segments, and what declares it
//! durable, may be on one unit, and be lost together. Short segments make it likely.

use crate::fault_plan::FaultPlan;
use crate::scenario::{Flash, Scenario};
use softflash_base::random::Rng;

/// Share of the scenarios that lose a unit, of those whose shards have two units or more.
const LONG_EVENTS: f64 = 0.35;
/// Share of them in which each shard has two units, so that every third segment is on the unit of
/// the first.
const TWO_UNITS: f64 = 0.8;
/// Segments of the longest value: at least so many, and up to so many more.
const LEAST_SEGMENTS: u64 = 3;
const MORE_SEGMENTS: u64 = 4;

impl Scenario {
    /// Uses a random stream of its own, so that earlier seeds keep their other properties.
    pub(crate) fn with_long_events(mut self) -> Scenario {
        let mut rng = Rng::seeded(self.seed).fork("long events");
        let FaultPlan { deaths, old_images, replacements, .. } = self.fault_plan;
        let loses_a_unit = deaths + old_images + replacements > 0.0 && !self.store.is_redundant();
        let has_store = self.volumes.is_none() && self.superblocks.is_none();
        let is_special = self.clients.larges > 0.0 || self.is_filled() || self.contends();
        if !loses_a_unit
            || !has_store
            || is_special
            || self.units_of_a_shard() < 2
            || !rng.chance(LONG_EVENTS)
        {
            return self;
        }
        self.draw_long_events(&mut rng);
        self
    }

    /// Values of several short segments, which stay in the log, and few other events, so that one
    /// of them is often the last before a cut.
    fn draw_long_events(&mut self, rng: &mut Rng) {
        if rng.chance(TWO_UNITS) {
            self.flash.channels = 2 * self.store.shards;
        }
        let blocks = 100 + rng.below(30) as u32;
        self.flash = Flash { dies: 1, planes: 1, blocks, pages: 8, ..self.flash };
        // Some of the values fit into the memtables: a flush would be a further event.
        self.store.memory_kib = 2048 << rng.below(2);
        self.store.frame_bytes = 0;
        self.store.fragment_bytes = [4096, 1000][rng.below(2) as usize];
        self.store.value_threshold = 0;
        let segments = LEAST_SEGMENTS + rng.below(MORE_SEGMENTS + 1);
        self.clients.large_bytes = self.flash.block_bytes() * segments;
        self.clients.larges = 0.5 + 0.4 * rng.unit_f64();
        // A recovery begins a segment, and what is before an event in its segment is declared.
        self.clients.requests = 1 << rng.below(3);
        self.clients.deletes *= 0.25;
        self.clients.reads *= 0.5;
        self.clients.count = self.clients.count.min(2);
        self.clients.keys = self.clients.keys.min(2);
        self.clients.batch = self.clients.batch.min(2);
        if let Some(resp) = &mut self.resp {
            (resp.pipeline, resp.lists, resp.list_share) = (1, 0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;
    use crate::size::Size;

    #[test]
    fn long_events_are_drawn_where_units_are_lost() {
        for profile in [Profile::Unit, Profile::Dead] {
            let drawn = (0..400).map(|seed| Size::Mixed.of(Scenario::drawn(seed, profile)));
            let long: Vec<Scenario> = drawn
                .filter(|it| it.clients.large_bytes > it.flash.block_bytes())
                .filter(|it| it.flash.pages == 8 && it.store.value_threshold == 0)
                .collect();
            assert!(long.len() > 20, "{profile:?}: {} of 400", long.len());
            assert!(long.iter().all(|it| it.units_of_a_shard() >= 2 && it.may_lose()));
        }
    }
}
