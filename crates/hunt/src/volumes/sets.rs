//! The table of sets of a scenario: who has which unit, while units pass from one domain to
//! another.

use super::session::domain_config;
use crate::scenario::Scenario;
use crate::volume_shape::VolumeShape;
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_volume::{DomainConfig, UnitSlots};
use std::collections::BTreeSet;
use std::iter::once;
use std::num::NonZeroU32;
use std::ops::Range;

/// A mapped set.
#[derive(Debug, Clone)]
pub struct Set {
    domain: u16,
    slots: Vec<Option<u16>>,
}

/// The table, as it is when the power comes on.
#[derive(Debug, Clone)]
pub struct SetTable {
    /// 0 without a table.
    epoch: u32,
    /// The set of the scenario's clients, and perhaps one that comes and goes.
    sets: Vec<Set>,
    spare: BTreeSet<u16>,
    next_domain: u16,
    /// Both sets are there for ever: they are a pair.
    is_pair: bool,
}

impl Set {
    /// Its units.
    pub fn units(&self) -> UnitSet {
        self.slots.iter().flatten().copied().collect()
    }

    /// The number of its domain.
    pub fn domain(&self) -> u16 {
        self.domain
    }

    /// Gives it a unit, in the first empty slot or in a new one.
    fn join(&mut self, unit: u16, rng: &mut Rng) {
        let empty = self.slots.iter().position(Option::is_none);
        match empty.filter(|_| rng.chance(0.8)) {
            Some(slot) => self.slots[slot] = Some(unit),
            None => self.slots.push(Some(unit)),
        }
    }
}

impl SetTable {
    /// One set with all units of the device. Where a table names its slots, they have another order
    /// than the units, behind an empty slot.
    pub fn new(scenario: &Scenario, shape: &VolumeShape) -> SetTable {
        let units = 0..scenario.flash.channels;
        let slots_of = |units: Range<u16>| -> Vec<Option<u16>> {
            match shape.has_table {
                true => once(None).chain(units.rev().map(Some)).collect(),
                false => units.map(Some).collect(),
            }
        };
        let domain = DomainConfig::default().domain;
        if shape.pair.is_some() {
            let half = units.end / 2;
            let first = Set { domain, slots: slots_of(0..half) };
            let second = Set { domain: domain + 1, slots: slots_of(half..units.end) };
            return SetTable {
                epoch: 1,
                sets: vec![first, second],
                spare: BTreeSet::new(),
                next_domain: domain + 2,
                is_pair: true,
            };
        }
        let slots = slots_of(units);
        SetTable {
            epoch: shape.has_table.into(),
            sets: vec![Set { domain, slots }],
            spare: BTreeSet::new(),
            next_domain: domain + 1,
            is_pair: false,
        }
    }

    /// The sets: that of the scenario's clients first.
    pub fn sets(&self) -> &[Set] {
        &self.sets
    }

    /// The settings of a set's domain.
    pub fn config(&self, set: &Set, scenario: &Scenario, shape: &VolumeShape) -> DomainConfig {
        let named = |epoch| UnitSlots::new(epoch, set.slots.clone());
        let slots = NonZeroU32::new(self.epoch).map(named);
        DomainConfig { domain: set.domain, slots, ..domain_config(scenario, shape) }
    }

    /// Its epoch; 0 without a table.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether the sets are a pair.
    pub fn is_pair(&self) -> bool {
        self.is_pair
    }

    /// A spare unit, if there is one.
    pub fn any_spare(&self, rng: &mut Rng) -> Option<u16> {
        let at = rng.below(self.spare.len().max(1) as u64) as usize;
        self.spare.iter().nth(at).copied()
    }

    /// A spare unit that has been erased joins a set; a new one, if there is only one.
    pub fn join(&mut self, unit: u16, rng: &mut Rng) {
        self.spare.remove(&unit);
        self.epoch += 1;
        match (self.sets.len(), rng.chance(0.5)) {
            (1, true) => {
                let slots = if rng.chance(0.5) { vec![Some(unit)] } else { vec![None, Some(unit)] };
                self.sets.push(Set { domain: self.next_domain, slots });
                self.next_domain += 1;
            }
            (2.., true) => self.sets[1].join(unit, rng),
            _ => self.sets[0].join(unit, rng),
        }
    }

    /// As [`join`](SetTable::join), with a choice of the set, which goes on meanwhile.
    pub fn join_live(&mut self, unit: u16, set: usize, rng: &mut Rng) {
        self.spare.remove(&unit);
        self.epoch += 1;
        self.sets[set].join(unit, rng);
    }

    /// The slots of a set as the table names them, which has changed before.
    pub fn slots(&self, set: usize) -> UnitSlots {
        let epoch = NonZeroU32::new(self.epoch).unwrap_or(NonZeroU32::MIN);
        UnitSlots::new(epoch, self.sets[set].slots.clone())
    }

    /// A unit that was drained leaves its set.
    pub fn leave(&mut self, unit: u16) {
        self.epoch += 1;
        for slot in self.sets.iter_mut().flat_map(|set| &mut set.slots) {
            if *slot == Some(unit) {
                *slot = None;
            }
        }
        self.spare.insert(unit);
    }

    /// The set that comes and goes, goes.
    pub fn delete_second(&mut self) {
        self.epoch += 1;
        let deleted = self.sets.pop();
        self.spare.extend(deleted.iter().flat_map(|set| set.slots.iter().flatten()));
    }
}
