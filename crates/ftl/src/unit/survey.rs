//! Counts of a unit, for users and tests.

use super::Unit;
use crate::slots::State;
use crate::telemetry::{UnitState, UnitTelemetry};

impl Unit {
    /// The greatest generation in the headers on the flash; 0 if there is none.
    pub fn newest_generation(&self) -> u64 {
        self.newest.map_or(0, |(generation, _)| generation)
    }

    /// The state and the counters. Scans all blocks.
    pub fn telemetry(&self) -> UnitTelemetry {
        let space = self.space();
        let (erase_count_min, erase_count_mean, erase_count_max, bad_blocks) = self.blocks.survey();
        let busy_ns: u64 = self.dies.iter().map(|die| die.busy_ns).sum();
        let state = if space.is_worn_out() {
            UnitState::ReadOnly
        } else if space.free() == 0 {
            UnitState::Full
        } else {
            UnitState::Online
        };
        UnitTelemetry {
            unit: self.id,
            state,
            queue: self.load,
            busy_ns: busy_ns / self.dies.len() as u64,
            space,
            superblock_payload_bytes: u64::from(self.layout.payload_pages())
                * u64::from(self.layout.page_bytes),
            erase_count_min,
            erase_count_mean,
            erase_count_max,
            bad_blocks,
            damaged_headers: self.damaged_headers,
            reads: self.counters.reads,
            programs: self.counters.programs,
            erases: self.counters.erases,
            bytes_read: self.counters.bytes_read,
            bytes_programmed: self.counters.programmed.total(),
            programmed: self.counters.programmed,
            errors: self.counters.errors,
            service: self.counters.service,
        }
    }

    /// Checks that new lives get greater generations than all lives so far.
    ///
    /// # Panics
    /// If they do not.
    pub fn check_generations(&self) {
        let greatest = self.slots.numbered().map(|(_, slot)| slot.generation()).max();
        assert!(
            greatest < Some(self.next_generation),
            "unit {}: generation {} follows {greatest:?}",
            self.id,
            self.next_generation
        );
    }

    /// Recounts superblocks, commands and blocks.
    ///
    /// # Panics
    /// If a superblock or block is lost or counted twice.
    pub fn check(&self) {
        for (index, slot) in self.slots.numbered() {
            let complete =
                (0..self.layout.columns()).all(|column| self.blocks.block(index, column).is_some());
            assert!(
                complete || slot.state() == State::OutOfService || slot.has_failed(),
                "superblock {}/{index} is in service without all of its blocks",
                self.id
            );
        }
        self.slots.check(self.load);
        self.blocks.check();
    }
}
