//! Sets of mapping units of images, kept as ranges.

use crate::image::ImageId;
use std::collections::BTreeMap;
use std::ops::Range;

/// A set of mapping units of images. Ranges that touch are one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct UnitRanges {
    /// Image and start, with the end.
    ranges: BTreeMap<(ImageId, u32), u32>,
    /// Mapping units in them.
    units: u64,
}

impl UnitRanges {
    /// How many ranges they are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn clear(&mut self) {
        *self = UnitRanges::default();
    }

    /// The ranges in their order.
    pub fn iter(&self) -> impl Iterator<Item = (ImageId, Range<u32>)> + '_ {
        self.ranges.iter().map(|(&(image, start), &end)| (image, start..end))
    }

    /// Adds a range.
    pub fn insert(&mut self, image: ImageId, range: Range<u32>) {
        let Range { mut start, mut end } = range;
        if start >= end {
            return;
        }
        // From the last one that begins at the start or before it.
        if let Some((first, last)) = self.at_or_before(image, start)
            && last >= start
        {
            if last >= end {
                return;
            }
            start = first;
        }
        while let Some((&(_, next), &last)) =
            self.ranges.range((image, start)..=(image, end)).next()
        {
            self.take(image, next..last);
            end = end.max(last);
        }
        self.put(image, start..end);
    }

    /// Takes a range out.
    pub fn remove(&mut self, image: ImageId, range: &Range<u32>) {
        while let Some(found) = self.overlap(image, range) {
            let Range { start, end } = found;
            self.take(image, start..end);
            if start < range.start {
                self.put(image, start..range.start);
            }
            if end > range.end {
                self.put(image, range.end..end);
            }
        }
    }

    fn put(&mut self, image: ImageId, range: Range<u32>) {
        assert!(range.start < range.end, "{image} has the range {range:?}");
        self.units += u64::from(range.end - range.start);
        self.ranges.insert((image, range.start), range.end);
    }

    fn take(&mut self, image: ImageId, range: Range<u32>) {
        let end = self.ranges.remove(&(image, range.start));
        assert_eq!(end, Some(range.end), "{image} has another range at {}", range.start);
        self.units -= u64::from(range.end - range.start);
    }

    /// Takes all of an image out.
    pub fn remove_image(&mut self, image: ImageId) {
        self.remove(image, &(0..u32::MAX));
    }

    /// The first range that overlaps another one; whole.
    fn overlap(&self, image: ImageId, range: &Range<u32>) -> Option<Range<u32>> {
        if range.is_empty() {
            return None;
        }
        if let Some((start, end)) = self.at_or_before(image, range.start)
            && end > range.start
        {
            return Some(start..end);
        }
        let after = (image, range.start)..(image, range.end);
        self.ranges.range(after).next().map(|(&(_, start), &end)| start..end)
    }

    /// The first part of a range that is in the set.
    pub fn first_in(&self, image: ImageId, range: &Range<u32>) -> Option<Range<u32>> {
        let Range { start, end } = self.overlap(image, range)?;
        Some(start.max(range.start)..end.min(range.end))
    }

    pub fn contains(&self, image: ImageId, lba: u32) -> bool {
        self.overlap(image, &(lba..lba.saturating_add(1))).is_some()
    }

    /// The first range at or behind a place, at most to the end of its image; from the beginning
    /// again where there is none.
    pub fn next_from(&self, place: (ImageId, u32)) -> Option<(ImageId, Range<u32>)> {
        let behind = self.ranges.range(place..).next();
        behind
            .or_else(|| self.ranges.iter().next())
            .map(|(&(image, start), &end)| (image, start..end))
    }

    /// Takes all of another set out.
    pub fn remove_all(&mut self, other: &UnitRanges) {
        other.iter().for_each(|(image, range)| self.remove(image, &range));
    }

    /// Mapping units in the set.
    pub fn units(&self) -> u64 {
        self.units
    }

    fn at_or_before(&self, image: ImageId, start: u32) -> Option<(u32, u32)> {
        let (&(_, first), &last) = self.ranges.range((image, 0)..=(image, start)).next_back()?;
        Some((first, last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::BTreeSet;

    /// Units one by one.
    fn units(ranges: &UnitRanges) -> BTreeSet<(ImageId, u32)> {
        ranges.iter().flat_map(|(image, range)| range.map(move |lba| (image, lba))).collect()
    }

    #[test]
    fn the_set_is_that_of_the_units_one_by_one() {
        let mut rng = Rng::seeded(7);
        let (mut ranges, mut expected) = (UnitRanges::default(), BTreeSet::new());
        for _ in 0..20_000 {
            let image = ImageId(rng.below(2) as u32);
            let start = rng.below(60) as u32;
            let range = start..start + rng.below(9) as u32;
            let all = range.clone().map(|lba| (image, lba));
            match rng.below(2) {
                0 => {
                    ranges.insert(image, range.clone());
                    expected.extend(all);
                }
                _ => {
                    ranges.remove(image, &range);
                    all.for_each(|unit| {
                        expected.remove(&unit);
                    });
                }
            }
            assert_eq!(units(&ranges), expected);
            assert_eq!(ranges.units(), expected.len() as u64);
            let first = range.clone().find(|&lba| expected.contains(&(image, lba)));
            let found = ranges.first_in(image, &range);
            assert_eq!(found.as_ref().map(|found| found.start), first);
            if let Some(found) = found {
                assert!(found.clone().all(|lba| expected.contains(&(image, lba))));
                assert!(found.end == range.end || !expected.contains(&(image, found.end)));
            }
            assert_eq!(ranges.contains(image, start), expected.contains(&(image, start)));
            let mut before = None;
            for (image, range) in ranges.iter() {
                assert!(!range.is_empty() && before.is_none_or(|end| end < (image, range.start)));
                before = Some((image, range.end));
            }
        }
    }
}
