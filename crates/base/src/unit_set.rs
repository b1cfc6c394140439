//! Sets of units: what an owner of flash has.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Range, RangeInclusive};
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;

/// Units of a device in ascending order. The *position* of a unit is its index in that order.
///
/// A set is written `0-3,7`. A clone shares the memory.
#[derive(Clone, Default)]
pub struct UnitSet(Arc<Members>);

#[derive(Default)]
struct Members {
    units: Box<[u16]>,
    /// For each number from the first unit to the last, its position, or [`ABSENT`].
    positions: Box<[u32]>,
}

/// No position: a set has at most 65,536 units.
const ABSENT: u32 = u32::MAX;

/// Why a text is not a set of units.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitSetError {
    /// A part is neither a number nor a range.
    #[error("`{0}` is no unit and no range of units; write a set of units like 0-3,7")]
    Part(String),
    /// A range ends before it begins.
    #[error("the range of units `{0}` ends before it begins; name the smaller unit first")]
    Backwards(String),
    /// A unit is named more than once.
    #[error("unit {0} is named twice; name each unit once")]
    Twice(u16),
}

impl UnitSet {
    /// The number of units.
    pub fn len(&self) -> usize {
        self.0.units.len()
    }

    /// Whether it has no unit.
    pub fn is_empty(&self) -> bool {
        self.0.units.is_empty()
    }

    /// The units.
    pub fn iter(&self) -> std::iter::Copied<std::slice::Iter<'_, u16>> {
        self.0.units.iter().copied()
    }

    /// The smallest unit.
    pub fn first(&self) -> Option<u16> {
        self.0.units.first().copied()
    }

    /// The greatest unit.
    pub fn last(&self) -> Option<u16> {
        self.0.units.last().copied()
    }

    /// The unit at a position.
    pub fn get(&self, position: usize) -> Option<u16> {
        self.0.units.get(position).copied()
    }

    /// Whether a unit is among them.
    #[inline]
    pub fn contains(&self, unit: u16) -> bool {
        self.position(unit).is_some()
    }

    /// The position of a unit, by one look-up.
    #[inline]
    pub fn position(&self, unit: u16) -> Option<usize> {
        let first = *self.0.units.first()?;
        let position = *self.0.positions.get(usize::from(unit.checked_sub(first)?))?;
        (position != ABSENT).then_some(position as usize)
    }

    /// The smallest unit that both sets have.
    pub fn shared_with(&self, other: &UnitSet) -> Option<u16> {
        self.iter().find(|unit| other.contains(*unit))
    }

    /// The first unit found that two of these sets have, with the numbers of both.
    pub fn in_two_of<'a>(sets: impl IntoIterator<Item = &'a UnitSet>) -> Option<(u16, [usize; 2])> {
        let mut owner_of: Vec<Option<usize>> = Vec::new();
        for (number, set) in sets.into_iter().enumerate() {
            let end = set.last().map_or(0, |last| usize::from(last) + 1);
            owner_of.resize(owner_of.len().max(end), None);
            for unit in set {
                if let Some(first) = owner_of[usize::from(unit)].replace(number) {
                    return Some((unit, [first, number]));
                }
            }
        }
        None
    }

    /// The longest ranges of successive units, in ascending order.
    pub fn ranges(&self) -> impl Iterator<Item = RangeInclusive<u16>> {
        let is_next = |before: &u16, after: &u16| after - before == 1;
        let runs = self.0.units.chunk_by(is_next);
        runs.filter_map(|run| Some(*run.first()?..=*run.last()?))
    }
}

impl From<Range<u16>> for UnitSet {
    fn from(units: Range<u16>) -> UnitSet {
        units.collect()
    }
}

impl FromIterator<u16> for UnitSet {
    /// The units, in any order; one that is named more than once counts once.
    fn from_iter<I: IntoIterator<Item = u16>>(units: I) -> UnitSet {
        let mut units: Vec<u16> = units.into_iter().collect();
        units.sort_unstable();
        units.dedup();
        let (Some(first), Some(last)) = (units.first(), units.last()) else {
            return UnitSet::default();
        };
        let mut positions = vec![ABSENT; usize::from(last - first) + 1];
        for (position, unit) in (0..).zip(&units) {
            positions[usize::from(unit - first)] = position;
        }
        UnitSet(Arc::new(Members { positions: positions.into(), units: units.into() }))
    }
}

impl<'a> IntoIterator for &'a UnitSet {
    type Item = u16;
    type IntoIter = std::iter::Copied<std::slice::Iter<'a, u16>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for UnitSet {
    fn eq(&self, other: &UnitSet) -> bool {
        self.0.units == other.0.units
    }
}

impl Eq for UnitSet {}

impl Hash for UnitSet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.units.hash(state);
    }
}

impl fmt::Display for UnitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, range) in self.ranges().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let (first, last) = range.into_inner();
            write!(f, "{comma}{first}")?;
            if first != last {
                write!(f, "-{last}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for UnitSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnitSet({self})")
    }
}

impl FromStr for UnitSet {
    type Err = UnitSetError;

    /// Reads ranges and units in any order; the empty text is the empty set.
    fn from_str(text: &str) -> Result<UnitSet, UnitSetError> {
        if text.trim().is_empty() {
            return Ok(UnitSet::default());
        }
        let ranges: Vec<_> = text.split(',').map(range_of).collect::<Result<_, _>>()?;
        let mut units: Vec<u16> = Vec::new();
        for range in ranges {
            units.extend(range);
            // Bounds the memory, whatever the text is.
            if units.len() > usize::from(u16::MAX) {
                refuse_twice(&mut units)?;
            }
        }
        refuse_twice(&mut units)?;
        Ok(units.into_iter().collect())
    }
}

/// Refuses units that are named more than once.
fn refuse_twice(units: &mut [u16]) -> Result<(), UnitSetError> {
    units.sort_unstable();
    let twice = units.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map_or(Ok(()), |pair| Err(UnitSetError::Twice(pair[0])))
}

/// The units of one part of a text.
fn range_of(part: &str) -> Result<RangeInclusive<u16>, UnitSetError> {
    let part = part.trim();
    let number = |text: &str| {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_plain);
        number.ok_or_else(|| UnitSetError::Part(part.to_owned()))
    };
    let (first, last) = match part.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(part)?, number(part)?),
    };
    match first <= last {
        true => Ok(first..=last),
        false => Err(UnitSetError::Backwards(part.to_owned())),
    }
}

impl Serialize for UnitSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UnitSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnitSet, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};
    use std::collections::BTreeSet;

    fn set(text: &str) -> UnitSet {
        text.parse().unwrap()
    }

    fn from_serde(text: &str) -> Result<UnitSet, Error> {
        let text: StrDeserializer<'_, Error> = text.into_deserializer();
        UnitSet::deserialize(text)
    }

    #[test]
    fn a_range_and_a_list_are_sets() {
        assert_eq!(UnitSet::from(4..7), UnitSet::from_iter([6, 4, 5, 4]));
        assert_eq!(UnitSet::from(4..7).to_string(), "4-6");
        assert_eq!(UnitSet::from(3..3), UnitSet::default());
        assert_eq!(UnitSet::from_iter([7, 0, 1, 2, 3, 9, 10]).to_string(), "0-3,7,9-10");
        assert_eq!(UnitSet::from_iter(0..=u16::MAX).to_string(), "0-65535");
    }

    #[test]
    fn a_unit_of_two_sets_is_found() {
        let sets = |texts: &[&str]| texts.iter().map(|text| set(text)).collect::<Vec<_>>();
        assert_eq!(UnitSet::in_two_of(&sets(&["0-3", "", "9", "4-8"])), None);
        assert_eq!(UnitSet::in_two_of(&sets(&["9", "0-3", "", "2,5,9"])), Some((2, [1, 3])));
    }

    #[test]
    fn texts_are_read_in_any_order() {
        assert_eq!(set("7, 0-3"), UnitSet::from_iter([0, 1, 2, 3, 7]));
        assert_eq!((set(""), set(" ")), (UnitSet::default(), UnitSet::default()));
        assert_eq!(set("0-65535").len(), 65_536);
        assert_eq!(from_serde("7,0-3"), Ok(set("0-3,7")));
    }

    #[test]
    fn wrong_texts_are_refused_with_the_remedy() {
        let reason = |text: &str| text.parse::<UnitSet>().unwrap_err().to_string();
        for text in [",", "1,", "x", "+1", "-1", "1-", "1--2", "1-2-3", "65536", "0-99999"] {
            assert!(reason(text).contains("write a set of units like"), "{text}");
        }
        assert!(reason("3-1").contains("`3-1` ends before it begins"));
        assert!(reason("4,0-3,2").contains("unit 2 is named twice"));
        assert!(reason("0-65535,0-65535,0-65535").contains("unit 0 is named twice"));
        assert!(from_serde("1,1").is_err());
    }

    proptest! {
        #[test]
        fn a_set_is_the_sorted_list_of_its_units(
            units in prop::collection::vec(prop_oneof![0..80u16, any::<u16>()], 0..60),
            other in prop::collection::btree_set(0..80u16, 0..10),
        ) {
            let model: BTreeSet<u16> = units.iter().copied().collect();
            let set: UnitSet = units.into_iter().collect();
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), Vec::from_iter(model.clone()));
            prop_assert_eq!(set.len(), model.len());
            prop_assert_eq!((set.first(), set.last()), (model.first().copied(), model.last().copied()));
            for (position, unit) in model.iter().enumerate() {
                prop_assert_eq!(set.position(*unit), Some(position));
                prop_assert_eq!(set.get(position), Some(*unit));
            }
            prop_assert_eq!(set.get(model.len()), None);
            for unit in (0..100).chain([u16::MAX]) {
                prop_assert_eq!(set.contains(unit), model.contains(&unit));
            }
            prop_assert_eq!(set.ranges().flatten().collect::<UnitSet>(), set.clone());
            prop_assert_eq!(set.to_string().parse::<UnitSet>(), Ok(set.clone()));
            let shared = model.intersection(&other).next().copied();
            prop_assert_eq!(set.shared_with(&other.into_iter().collect()), shared);
        }
    }
}
