//! The slots of a mapped set in the table of sets.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use softflash_base::UnitSet;
use softflash_volume::UnitSlots;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use thiserror::Error;

/// What stands for a slot without a unit.
const EMPTY: &str = "-";

/// The unit in each slot of a mapped set. A unit keeps its slot as long as it is in the set, and
/// the next one that comes has the lowest empty one. As text, the units in the order of their
/// slots: `12,13,-,15`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slots(Vec<Option<u16>>);

/// A text that is no list of slots.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SlotsError {
    /// A part is neither a number of a unit nor empty.
    #[error(
        "`{0}` is no unit in a slot; write units with commas and `-` for empty slots, as `4,-,6`"
    )]
    NotAUnit(String),
    /// A unit is in two slots.
    #[error("unit {0} is in two slots; a unit has one")]
    Twice(u16),
}

impl Slots {
    /// Slots of units in their order.
    pub(crate) fn of(units: &UnitSet) -> Slots {
        Slots(units.iter().map(Some).collect())
    }

    /// The units.
    pub fn units(&self) -> UnitSet {
        self.0.iter().flatten().copied().collect()
    }

    /// These slots for a domain, at an epoch of the table.
    pub(crate) fn at(&self, epoch: NonZeroU32) -> UnitSlots {
        UnitSlots::new(epoch, self.0.clone())
    }

    /// Gives each of these units the lowest empty slot.
    pub(crate) fn add(&mut self, units: &UnitSet) {
        for unit in units {
            match self.0.iter_mut().find(|slot| slot.is_none()) {
                Some(empty) => *empty = Some(unit),
                None => self.0.push(Some(unit)),
            }
        }
    }

    /// Empties the slots of these units.
    pub(crate) fn remove(&mut self, units: &UnitSet) {
        for slot in &mut self.0 {
            *slot = slot.filter(|unit| !units.contains(*unit));
        }
        while self.0.pop_if(|slot| slot.is_none()).is_some() {}
    }
}

impl fmt::Display for Slots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |slot: &Option<u16>| slot.map_or(EMPTY.to_owned(), |unit| unit.to_string());
        f.write_str(&self.0.iter().map(text).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Slots {
    type Err = SlotsError;

    fn from_str(text: &str) -> Result<Slots, SlotsError> {
        let slot = |part: &str| match part.trim() {
            EMPTY => Ok(None),
            unit => unit.parse().map(Some).map_err(|_| SlotsError::NotAUnit(part.to_owned())),
        };
        let parts = text.split(',').filter(|_| !text.is_empty());
        let slots = parts.map(slot).collect::<Result<Vec<Option<u16>>, SlotsError>>()?;
        let mut units: Vec<u16> = slots.iter().flatten().copied().collect();
        units.sort_unstable();
        match units.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(SlotsError::Twice(pair[0])),
            None => Ok(Slots(slots)),
        }
    }
}

impl Serialize for Slots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Slots {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Slots, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> UnitSet {
        text.parse().unwrap()
    }

    #[test]
    fn units_keep_their_slots_and_new_ones_have_the_lowest_empty_one() {
        let mut slots = Slots::of(&units("4-7"));
        slots.remove(&units("4,6"));
        assert_eq!(slots.to_string(), "-,5,-,7");
        slots.add(&units("2,9-10"));
        assert_eq!(slots.to_string(), "2,5,9,7,10");
        slots.remove(&units("7,10"));
        assert_eq!((slots.to_string(), slots.units()), ("2,5,9".to_owned(), units("2,5,9")));
    }

    #[test]
    fn slots_read_back_and_wrong_texts_are_refused() {
        for text in ["", "3", "-,5,-,7", "0,65535"] {
            assert_eq!(text.parse::<Slots>().unwrap().to_string(), text);
        }
        let error = |text: &str| text.parse::<Slots>().unwrap_err();
        assert_eq!(error("4,5,4"), SlotsError::Twice(4));
        for text in ["a", "4,,5", "4-5", "65536", ","] {
            assert!(matches!(error(text), SlotsError::NotAUnit(_)), "{text}");
        }
    }
}
