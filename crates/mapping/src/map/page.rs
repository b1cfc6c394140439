//! The page map: from logical to physical pages and back, with a bitmap of the valid physical
//! pages. It takes 8 bytes and a bit for each page.

use crate::memory::{grow, prefetch, table};
use softflash_base::cast::index;

/// No page.
pub const NONE: u32 = u32::MAX;

/// Entries of a table in a cache line.
pub const ENTRIES_PER_LINE: u32 = 16;

/// The map of a drive or of a volume.
#[derive(Debug, Clone)]
pub struct PageMap {
    physical_of: Vec<u32>,
    logical_of: Vec<u32>,
    valid: Vec<u64>,
}

impl PageMap {
    /// A map of so many pages that maps none yet.
    ///
    /// # Panics
    /// If a page would have the number [`NONE`].
    pub fn new(logical_pages: u32, physical_pages: u32) -> PageMap {
        assert!(logical_pages < NONE && physical_pages < NONE, "the numbers of pages need a none");
        PageMap {
            physical_of: table(NONE, index(logical_pages)),
            logical_of: table(NONE, index(physical_pages)),
            valid: table(0, index(physical_pages).div_ceil(64)),
        }
    }

    /// Logical pages, mapped or not.
    #[inline]
    pub fn logical_pages(&self) -> u32 {
        self.physical_of.len() as u32
    }

    /// Physical pages.
    #[inline]
    pub fn physical_pages(&self) -> u32 {
        self.logical_of.len() as u32
    }

    /// Extends the logical pages to `to`; the new ones are not mapped. Fewer than there are have no
    /// effect.
    ///
    /// # Panics
    /// If a page would have the number [`NONE`].
    pub fn grow_logical(&mut self, to: u32) {
        assert!(to < NONE, "the numbers of pages need a none");
        if to > self.logical_pages() {
            grow(&mut self.physical_of, NONE, index(to));
        }
    }

    /// Extends the physical pages to `to`. Fewer than there are have no effect.
    ///
    /// # Panics
    /// If a page would have the number [`NONE`].
    pub fn grow_physical(&mut self, to: u32) {
        assert!(to < NONE, "the numbers of pages need a none");
        if to > self.physical_pages() {
            grow(&mut self.logical_of, NONE, index(to));
            grow(&mut self.valid, 0, index(to).div_ceil(64));
        }
    }

    /// The physical page of a logical one; [`NONE`] if it has none.
    #[inline]
    pub fn physical_of(&self, logical: u32) -> u32 {
        self.physical_of[logical as usize]
    }

    /// The logical page that a valid physical one holds. Of a page that is no longer valid, the
    /// last one that it held.
    #[inline]
    pub fn logical_of(&self, physical: u32) -> u32 {
        self.logical_of[physical as usize]
    }

    /// Maps a logical page to a new physical page; returns the old one, which is no longer valid.
    #[inline]
    pub fn put(&mut self, logical: u32, physical: u32) -> u32 {
        let old = std::mem::replace(&mut self.physical_of[logical as usize], physical);
        self.logical_of[physical as usize] = logical;
        self.valid[physical as usize / 64] |= 1 << (physical % 64);
        if self.is_page(old) {
            self.valid[old as usize / 64] &= !(1 << (old % 64));
        }
        old
    }

    /// Whether a number is that of a physical page, and not [`NONE`] or a mark.
    #[inline]
    pub fn is_page(&self, number: u32) -> bool {
        (number as usize) < self.logical_of.len()
    }

    /// Marks a logical page, which then has no physical one: [`physical_of`](PageMap::physical_of)
    /// returns the mark, a number that is no page. Returns the old physical page or mark.
    ///
    /// # Panics
    /// If the mark is the number of a page.
    pub fn mark(&mut self, logical: u32, mark: u32) -> u32 {
        assert!(!self.is_page(mark), "{mark} is a page, not a mark");
        let old = std::mem::replace(&mut self.physical_of[logical as usize], mark);
        if self.is_page(old) {
            self.valid[old as usize / 64] &= !(1 << (old % 64));
        }
        old
    }

    /// Sets the physical page or the mark of a logical page, and nothing else: for the recovery of
    /// a map, until [`rebuild_reverse`](PageMap::rebuild_reverse).
    #[inline]
    pub fn restore(&mut self, logical: u32, physical: u32) -> u32 {
        std::mem::replace(&mut self.physical_of[logical as usize], physical)
    }

    /// Computes which physical pages are valid, and which logical page each holds. Returns a
    /// physical page that two logical ones have, if there is one.
    pub fn rebuild_reverse(&mut self) -> Result<(), u32> {
        self.valid.fill(0);
        for (logical, &physical) in (0_u32..).zip(&self.physical_of) {
            if let Some(holds) = self.logical_of.get_mut(physical as usize) {
                *holds = logical;
                let (word, bit) = (&mut self.valid[physical as usize / 64], 1 << (physical % 64));
                if *word & bit != 0 {
                    return Err(physical);
                }
                *word |= bit;
            }
        }
        Ok(())
    }

    /// Moves the logical page of a valid physical page to a new physical page.
    #[inline]
    pub fn relocate(&mut self, from: u32, to: u32) {
        let logical = self.logical_of[from as usize];
        self.physical_of[logical as usize] = to;
        self.logical_of[to as usize] = logical;
        self.valid[to as usize / 64] |= 1 << (to % 64);
        self.valid[from as usize / 64] &= !(1 << (from % 64));
    }

    /// Unmaps a logical page; returns its physical page, which is no longer valid.
    #[inline]
    pub fn forget(&mut self, logical: u32) -> u32 {
        self.mark(logical, NONE)
    }

    /// The first valid page in `from..end`.
    #[inline]
    pub fn next_valid(&self, from: u32, end: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        let mut bits = self.valid[word] & (u64::MAX << (from % 64));
        loop {
            if bits != 0 {
                let page = word as u32 * 64 + bits.trailing_zeros();
                return (page < end).then_some(page);
            }
            word += 1;
            if word as u32 * 64 >= end {
                return None;
            }
            bits = self.valid[word];
        }
    }

    /// Whether a physical page holds the data of a logical one.
    #[inline]
    pub fn is_valid(&self, physical: u32) -> bool {
        self.valid[physical as usize / 64] & (1 << (physical % 64)) != 0
    }

    /// Valid pages in `from..end`.
    pub fn count_valid(&self, from: u32, end: u32) -> u32 {
        if from >= end {
            return 0;
        }
        let (first, last) = (from as usize / 64, (end as usize - 1) / 64);
        let counted = self.valid[first..=last].iter().map(|word| word.count_ones()).sum::<u32>();
        let before = self.valid[first] & !(u64::MAX << (from % 64));
        let behind = self.valid[last] & !(u64::MAX >> (63 - (end - 1) % 64));
        counted - before.count_ones() - behind.count_ones()
    }

    /// Checks that both directions agree, and that `valid` pages are mapped.
    pub fn check(&self, valid: u64) -> Result<(), String> {
        let mut mapped = 0_u64;
        for (logical, &physical) in (0_u32..).zip(&self.physical_of) {
            if self.is_page(physical) {
                mapped += 1;
                if self.logical_of(physical) != logical {
                    return Err(format!("page {physical} does not hold logical page {logical}"));
                }
            }
        }
        if mapped != valid {
            return Err(format!("{mapped} logical pages lie in {valid} valid ones"));
        }
        Ok(())
    }

    /// Prefetches the physical page of a logical one.
    #[inline]
    pub fn prefetch_entry(&self, logical: u32) {
        prefetch(&self.physical_of, logical as usize);
    }

    /// Prefetches the valid bit of a physical page, before it becomes invalid.
    #[inline]
    pub fn prefetch_change(&self, physical: u32) {
        prefetch(&self.valid, physical as usize / 64);
    }

    /// Prefetches the valid bits and the logical pages of a block, from its first page on.
    #[inline]
    pub fn prefetch_block(&self, first: u32) {
        prefetch(&self.valid, first as usize / 64);
        prefetch(&self.logical_of, first as usize);
    }

    /// Prefetches the logical pages of the physical pages one cache line further on.
    #[inline]
    pub fn prefetch_behind(&self, physical: u32) {
        prefetch(&self.logical_of, physical as usize + ENTRIES_PER_LINE as usize);
    }

    /// Memory of the tables, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let entries = self.physical_of.capacity() + self.logical_of.capacity();
        (entries * size_of::<u32>() + self.valid.capacity() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_found_where_it_was_put_last() {
        let mut map = PageMap::new(3, 130);
        assert_eq!((map.physical_of(1), map.put(1, 64)), (NONE, NONE));
        assert_eq!((map.put(1, 129), map.put(2, 64)), (64, NONE));
        assert_eq!((map.physical_of(1), map.logical_of(129)), (129, 1));
        map.relocate(129, 3);
        assert_eq!((map.physical_of(1), map.logical_of(3)), (3, 1));
        assert_eq!((map.is_valid(3), map.is_valid(129)), (true, false));
        map.check(2).unwrap();
        assert!(map.check(3).unwrap_err().contains("lie in 3"));
        assert_eq!((map.forget(1), map.forget(1), map.physical_of(1)), (3, NONE, NONE));
        map.check(1).unwrap();
    }

    #[test]
    fn marks_are_no_pages() {
        let mut map = PageMap::new(3, 10);
        map.put(1, 5);
        assert_eq!((map.mark(1, 77), map.mark(1, 78), map.physical_of(1)), (5, 77, 78));
        assert!(!map.is_valid(5) && !map.is_page(78) && map.is_page(9));
        map.check(0).unwrap();
        assert_eq!((map.put(1, 6), map.forget(1)), (78, 6));
    }

    #[test]
    fn the_reverse_of_a_restored_map_is_rebuilt() {
        let mut map = PageMap::new(4, 10);
        assert_eq!((map.restore(0, 9), map.restore(0, 3), map.restore(2, 9)), (NONE, 9, NONE));
        map.restore(3, 77);
        map.rebuild_reverse().unwrap();
        map.check(2).unwrap();
        assert_eq!((map.logical_of(3), map.logical_of(9), map.count_valid(0, 10)), (0, 2, 2));
        map.restore(1, 3);
        assert_eq!(map.rebuild_reverse(), Err(3));
    }

    #[test]
    fn valid_pages_are_found_across_words_and_not_beyond_the_end() {
        let mut map = PageMap::new(300, 300);
        for (logical, physical) in (0..).zip([0, 63, 64, 200, 299]) {
            map.put(logical, physical);
        }
        assert_eq!((map.next_valid(0, 300), map.next_valid(1, 300)), (Some(0), Some(63)));
        assert_eq!((map.next_valid(65, 300), map.next_valid(65, 200)), (Some(200), None));
        assert_eq!((map.next_valid(201, 299), map.next_valid(299, 300)), (None, Some(299)));
        assert_eq!((map.count_valid(0, 300), map.count_valid(63, 65)), (5, 2));
        assert_eq!((map.count_valid(65, 200), map.count_valid(7, 7)), (0, 0));
    }

    #[test]
    fn logical_pages_are_added_in_many_steps_and_keep_what_is_mapped() {
        let mut map = PageMap::new(0, 5000);
        for leaf in 0..500 {
            map.grow_logical((leaf + 1) * 10);
            assert_eq!(map.physical_of(leaf * 10 + 9), NONE);
            map.put(leaf * 10 + 3, leaf);
        }
        map.grow_logical(7);
        assert_eq!((map.logical_pages(), map.physical_pages()), (5000, 5000));
        assert!((0..500).all(|leaf| map.physical_of(leaf * 10 + 3) == leaf));
        map.check(500).unwrap();
        let entries = map.memory_bytes() / 4;
        assert!((10_000..20_500).contains(&entries), "{entries} entries");
    }
}
