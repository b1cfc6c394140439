//! Differences between two images, from the map alone: mapping units in the same slot are equal.

use super::{DomainMap, Found, leaf_of};
use crate::format::leaf::LEAF_UNITS;
use crate::image::{Image, ImageId};

/// Neighbouring mapping units in which an image differs from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The first one.
    pub start: u32,
    /// How many they are.
    pub count: u32,
    /// Whether they hold data in the image, all of them; otherwise all read as zeros there.
    pub has_data: bool,
}

impl DomainMap {
    /// The first difference of an image from `base`, or from zeros without one, from `from` on, of
    /// at most so many mapping units. What is beyond the end of `base` reads as zeros there.
    pub fn next_difference(
        &self,
        image: ImageId,
        base: Option<ImageId>,
        from: u32,
        most: u32,
    ) -> Option<Difference> {
        let size = self.images.get(image)?.size;
        let base_size = base.and_then(|base| self.images.get(base)).map_or(0, |base| base.size);
        let of_image = self.sources_of(image);
        let apart = self.sources_apart(&of_image, base);
        let all = [of_image, apart.clone()].concat();
        let change_at = |lba: u32| {
            let found = self.find(image, lba);
            let before = match base.filter(|_| lba < base_size) {
                Some(base) => self.find(base, lba),
                None => Found::Zeros,
            };
            (found != before).then_some(found != Found::Zeros)
        };
        let mut first = from;
        while first < size {
            let end = (first / LEAF_UNITS + 1).saturating_mul(LEAF_UNITS).min(size);
            // Beyond the base, what both are looked up in counts as well.
            let sources = if end <= base_size { &apart } else { &all };
            let may_differ = sources.iter().any(|source| leaf_of(source, first).is_some());
            let mut group = first..if may_differ { end } else { first };
            if let Some((start, has_data)) = group.find_map(|lba| Some((lba, change_at(lba)?))) {
                let last = start.saturating_add(most.max(1)).min(size);
                let end = (start + 1..last).find(|&lba| change_at(lba) != Some(has_data));
                let count = end.unwrap_or(last) - start;
                return Some(Difference { start, count, has_data });
            }
            first = end;
        }
        None
    }

    /// The images in which only one of two is looked up: of the sources of one, and of `base`. From
    /// the first that they share on, both find the same.
    fn sources_apart<'a>(&'a self, of: &[&'a Image], base: Option<ImageId>) -> Vec<&'a Image> {
        let base = base.map(|base| self.sources_of(base)).unwrap_or_default();
        let both = of.iter().rev().zip(base.iter().rev());
        let shared = both.take_while(|(one, other)| std::ptr::eq(**one, **other)).count();
        let own = |sources: &[&'a Image]| sources[..sources.len() - shared].to_vec();
        [own(of), own(&base)].concat()
    }
}
