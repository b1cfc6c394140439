//! What a member of a pair lacks: the newest data of mapping units, in memory as long as there is
//! room, and the ranges that have to be copied from the partner.

use crate::format::MAPPING_UNIT_BYTES;
use crate::image::ImageId;
use crate::unit_ranges::UnitRanges;
use softflash_base::cast;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

/// The most bytes of staged data of a member. The partner has all of them on its flash.
const MOST_STAGED: usize = 64 << 20;

/// Data of one mapping unit.
pub(super) type Unit = Rc<[u8]>;

/// Where the newest data of a mapping unit are that a member lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// In memory.
    Staged(Unit),
    /// With the partner, which may hold none: the mapping unit reads as zeros then.
    Partner,
}

/// What a member lacks.
#[derive(Default)]
pub(super) struct Behind {
    staged: RefCell<BTreeMap<(ImageId, u32), Unit>>,
    marked: RefCell<UnitRanges>,
    /// Volumes whose copy is not begun: what they lack waits.
    unbuilt: RefCell<BTreeSet<ImageId>>,
    /// Where the next copy is looked for, so that all are copied in turn.
    cursor: Cell<(u32, u32)>,
    most: Cell<u64>,
}

impl Behind {
    /// The member lacks the data of a mapping unit. False if there was no room to stage them.
    ///
    /// # Panics
    /// If the data are not those of one mapping unit.
    pub fn stage(&self, image: ImageId, lba: u32, data: &[u8]) -> bool {
        assert_eq!(data.len(), MAPPING_UNIT_BYTES, "{image}, mapping unit {lba} is staged");
        let mut staged = self.staged.borrow_mut();
        let is_new = !staged.contains_key(&(image, lba));
        if is_new && (staged.len() + 1) * MAPPING_UNIT_BYTES > MOST_STAGED {
            drop(staged);
            self.mark(image, lba..lba.saturating_add(1));
            return false;
        }
        staged.insert((image, lba), data.into());
        drop(staged);
        self.marked.borrow_mut().remove(image, &(lba..lba.saturating_add(1)));
        self.note_most();
        true
    }

    /// The member lacks what the partner has in a range.
    ///
    /// # Panics
    /// If the range ends before it begins.
    pub fn mark(&self, image: ImageId, range: Range<u32>) {
        assert!(range.start <= range.end, "{image} lacks {range:?}");
        self.forget_staged(image, &range);
        self.marked.borrow_mut().insert(image, range);
        self.note_most();
    }

    /// The member has everything in a range.
    pub fn clear(&self, image: ImageId, range: &Range<u32>) {
        self.forget_staged(image, range);
        self.marked.borrow_mut().remove(image, range);
    }

    fn forget_staged(&self, image: ImageId, range: &Range<u32>) {
        let mut staged = self.staged.borrow_mut();
        if staged.is_empty() {
            return;
        }
        let inside = staged.range((image, range.start)..(image, range.end));
        let inside: Vec<_> = inside.map(|(place, _)| *place).collect();
        inside.iter().for_each(|place| drop(staged.remove(place)));
    }

    /// The volume was deleted.
    pub fn forget(&self, image: ImageId) {
        self.clear(image, &(0..u32::MAX));
        self.unbuilt.borrow_mut().remove(&image);
    }

    /// Nothing is known of what the member lacks: everything is copied.
    pub fn forget_all(&self) {
        self.staged.borrow_mut().clear();
        self.marked.borrow_mut().clear();
        self.unbuilt.borrow_mut().clear();
    }

    /// What a member lacks of a volume waits until it [is built](Behind::built).
    pub fn build(&self, image: ImageId) {
        self.unbuilt.borrow_mut().insert(image);
    }

    /// A volume is there, and what it lacks can be copied.
    pub fn built(&self, image: ImageId) {
        self.unbuilt.borrow_mut().remove(&image);
    }

    /// Where the data of a mapping unit are, if the member lacks them.
    pub fn source(&self, image: ImageId, lba: u32) -> Option<Source> {
        if let Some(unit) = self.staged.borrow().get(&(image, lba)) {
            return Some(Source::Staged(Rc::clone(unit)));
        }
        self.marked.borrow().contains(image, lba).then_some(Source::Partner)
    }

    /// The staged data of a range, all of which is staged.
    pub fn staged(&self, image: ImageId, range: &Range<u32>) -> Vec<u8> {
        let staged = self.staged.borrow();
        let units = staged.range((image, range.start)..(image, range.end));
        units.flat_map(|(_, unit)| unit.iter().copied()).collect()
    }

    /// The member lacks what the partner has in a range, or newer data, where some are staged.
    pub fn mark_others(&self, image: ImageId, range: Range<u32>) {
        let inside = (image, range.start)..(image, range.end);
        let staged: Vec<u32> =
            self.staged.borrow().range(inside).map(|((_, lba), _)| *lba).collect();
        let mut marked = self.marked.borrow_mut();
        let mut start = range.start;
        for lba in staged {
            marked.insert(image, start..lba);
            start = lba + 1;
        }
        marked.insert(image, start..range.end);
    }

    /// Whether the member lacks something of a range.
    pub fn lacks(&self, image: ImageId, range: &Range<u32>) -> bool {
        self.lacks_staged(image, range) || self.marked.borrow().first_in(image, range).is_some()
    }

    fn lacks_staged(&self, image: ImageId, range: &Range<u32>) -> bool {
        let staged = self.staged.borrow();
        !staged.is_empty()
            && staged.range((image, range.start)..(image, range.end)).next().is_some()
    }

    /// Whether the member lacks nothing.
    pub fn is_empty(&self) -> bool {
        self.staged.borrow().is_empty() && self.marked.borrow().is_empty()
    }

    /// Mapping units that the member lacks.
    pub fn units(&self) -> u64 {
        cast::wide(self.staged.borrow().len()) + self.marked.borrow().units()
    }

    /// Bytes of staged data, and whether they are half of what there may be.
    pub fn staged_bytes(&self) -> (u64, bool) {
        let bytes = self.staged.borrow().len() * MAPPING_UNIT_BYTES;
        (cast::wide(bytes), 2 * bytes >= MOST_STAGED)
    }

    /// Bytes that can still be staged before the window ends early.
    pub fn staged_room(&self) -> u64 {
        let bytes = self.staged.borrow().len() * MAPPING_UNIT_BYTES;
        cast::wide((MOST_STAGED / 2).saturating_sub(bytes))
    }

    /// The most mapping units that the member has lacked at a time.
    pub fn most(&self) -> u64 {
        self.most.get()
    }

    fn note_most(&self) {
        self.most.set(self.most.get().max(cast::wide(self.staged.borrow().len())));
    }

    /// The places of staged data.
    pub fn staged_places(&self) -> Vec<(ImageId, u32)> {
        self.staged.borrow().keys().copied().collect()
    }

    /// What the member has to copy from the partner.
    pub fn marked(&self) -> Vec<(ImageId, Range<u32>)> {
        self.marked.borrow().iter().collect()
    }

    /// Neighbouring mapping units to copy, at most so many: the next ones in turn of volumes that
    /// are built. The first one's source is that of all.
    pub fn next(&self, most: u32) -> Option<(ImageId, Range<u32>)> {
        let (image, lba) = self.cursor.get();
        let from = (ImageId(image), lba);
        let found = self.next_staged(from, most).or_else(|| self.next_marked(from, most));
        if let Some((image, range)) = &found {
            self.cursor.set((image.0, range.end));
        }
        found
    }

    fn next_staged(&self, from: (ImageId, u32), most: u32) -> Option<(ImageId, Range<u32>)> {
        let (staged, unbuilt) = (self.staged.borrow(), self.unbuilt.borrow());
        let is_built = |place: &&(ImageId, u32)| !unbuilt.contains(&place.0);
        let behind = staged.range(from..).map(|(place, _)| place).find(is_built);
        let &(image, first) = behind.or_else(|| staged.keys().find(is_built))?;
        let follow = staged.range((image, first)..).map(|(place, _)| *place);
        let count = follow.zip(0..most).take_while(|(place, at)| *place == (image, first + at));
        Some((image, first..first + cast::saturating_u32(count.count())))
    }

    fn next_marked(&self, from: (ImageId, u32), most: u32) -> Option<(ImageId, Range<u32>)> {
        let (marked, unbuilt) = (self.marked.borrow(), self.unbuilt.borrow());
        let is_built = |found: &(ImageId, Range<u32>)| !unbuilt.contains(&found.0);
        let next = marked.next_from(from).filter(is_built);
        let (image, range) = next.or_else(|| marked.iter().find(is_built))?;
        let end = range.end.min(range.start.saturating_add(most));
        Some((image, range.start..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: ImageId = ImageId(3);

    fn unit(content: u8) -> Vec<u8> {
        vec![content; MAPPING_UNIT_BYTES]
    }

    #[test]
    fn the_newest_data_of_a_mapping_unit_count() {
        let behind = Behind::default();
        behind.mark(IMAGE, 0..10);
        assert!(behind.stage(IMAGE, 4, &unit(1)) && behind.stage(IMAGE, 4, &unit(2)));
        let staged = |content: u8| Some(Source::Staged(unit(content)[..].into()));
        assert_eq!((behind.source(IMAGE, 4), behind.units()), (staged(2), 10));
        assert_eq!(behind.source(IMAGE, 5), Some(Source::Partner));
        behind.mark(IMAGE, 4..5);
        assert_eq!(behind.source(IMAGE, 4), Some(Source::Partner));
        behind.clear(IMAGE, &(0..10));
        assert_eq!((behind.source(IMAGE, 4), behind.is_empty()), (None, true));
    }

    #[test]
    fn a_range_is_marked_around_what_is_staged() {
        let behind = Behind::default();
        [3, 4, 9].iter().for_each(|&lba| assert!(behind.stage(IMAGE, lba, &unit(lba as u8))));
        behind.mark_others(IMAGE, 3..10);
        let sources = (0..12).map(|lba| match behind.source(IMAGE, lba) {
            Some(Source::Staged(_)) => 's',
            Some(Source::Partner) => 'p',
            None => '-',
        });
        assert_eq!(sources.collect::<String>(), "---sspppps--");
        assert_eq!(behind.staged(IMAGE, &(3..5)), [unit(3), unit(4)].concat());
        assert_eq!(behind.units(), 7);
    }

    #[test]
    fn staged_data_come_before_marked_ranges_and_volumes_that_are_not_built_wait() {
        let behind = Behind::default();
        behind.mark(IMAGE, 100..200);
        assert!((5..8).all(|lba| behind.stage(IMAGE, lba, &unit(0))));
        assert_eq!(behind.next(64), Some((IMAGE, 5..8)));
        assert_eq!(behind.next(2), Some((IMAGE, 5..7)));
        behind.build(IMAGE);
        assert_eq!(behind.next(64), None);
        behind.built(IMAGE);
        behind.clear(IMAGE, &(0..8));
        assert_eq!(behind.next(64), Some((IMAGE, 100..164)));
        behind.forget(IMAGE);
        assert!(behind.is_empty());
    }
}
