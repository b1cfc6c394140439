//! The units of a queue pair, by place, id and superblock.

use crate::due::Due;
use crate::slots::State;
use crate::superblock::{FtlError, Superblock};
use crate::unit::Unit;
use softflash_base::{Time, UnitId, UnitSet};
use std::ops::{Index, IndexMut};

/// The units in the order of their ids. The *place* of a unit is its position in that order.
pub(crate) struct Units {
    ids: UnitSet,
    units: Vec<Unit>,
    /// The next erase ahead of need of each unit.
    due: Due,
}

impl Units {
    pub fn new(ids: UnitSet, units: Vec<Unit>) -> Units {
        Units { ids, due: Due::new(units.len()), units }
    }

    /// The ids of the units.
    pub fn ids(&self) -> &UnitSet {
        &self.ids
    }

    /// The places of the units with an erase ahead of need that is due.
    pub fn due(&mut self, now: Time) -> Vec<usize> {
        let units = &self.units;
        self.due.refresh(|place| units[place].erase_ahead_due());
        self.due.up_to(now)
    }

    /// The time of the next erase ahead of need.
    pub fn next_due(&self) -> Option<Time> {
        self.due.first(|place| self.units[place].erase_ahead_due())
    }

    /// Recounts superblocks, commands and blocks.
    ///
    /// # Panics
    /// If any is lost or counted twice.
    pub fn check(&self) {
        self.units.iter().for_each(Unit::check);
        self.due.check(|place| self.units[place].erase_ahead_due());
    }

    /// The place of a unit that has not left.
    pub fn place(&self, unit: UnitId) -> Result<usize, FtlError> {
        let place = self.ids.position(unit.0).filter(|place| !self.units[*place].leaves());
        place.ok_or(FtlError::NotOurs { unit })
    }

    /// The unit of an id, also if it has left.
    ///
    /// # Panics
    /// If there is none.
    pub fn unit(&self, unit: UnitId) -> &Unit {
        match self.ids.position(unit.0) {
            Some(place) => &self.units[place],
            None => unreachable!("unit {unit} is not one of the units {}", self.ids),
        }
    }

    /// The place of the unit of a superblock; an error if the handle is stale.
    pub fn locate(&self, superblock: &Superblock) -> Result<usize, FtlError> {
        let place = self.place(superblock.unit)?;
        match self.units[place].try_slot(superblock.index) {
            Some(slot)
                if slot.generation() == superblock.generation
                    && matches!(slot.state(), State::Open | State::Live) =>
            {
                Ok(place)
            }
            _ => Err(FtlError::Stale { superblock: *superblock }),
        }
    }
}

impl Index<usize> for Units {
    type Output = Unit;

    fn index(&self, place: usize) -> &Unit {
        &self.units[place]
    }
}

impl IndexMut<usize> for Units {
    fn index_mut(&mut self, place: usize) -> &mut Unit {
        self.due.note_change(place);
        &mut self.units[place]
    }
}
