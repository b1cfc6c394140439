//! The page map: from logical to physical pages and back, with a bitmap of the valid physical
//! pages. It takes 8 bytes and a bit for each page.

use crate::memory::{prefetch, table};

/// No page.
pub(crate) const NONE: u32 = u32::MAX;

/// Entries of a table in a cache line.
pub(crate) const ENTRIES_PER_LINE: u32 = 16;

/// The map of a drive.
pub(crate) struct Map {
    physical_of: Vec<u32>,
    logical_of: Vec<u32>,
    valid: Vec<u64>,
}

impl Map {
    pub(crate) fn new(logical_pages: u32, physical_pages: usize) -> Map {
        Map {
            physical_of: table(NONE, logical_pages as usize),
            logical_of: table(NONE, physical_pages),
            valid: table(0, physical_pages.div_ceil(64)),
        }
    }

    /// The physical page of a logical one; [`NONE`] if it has none.
    #[inline]
    pub(crate) fn physical_of(&self, logical: u32) -> u32 {
        self.physical_of[logical as usize]
    }

    /// The logical page that a valid physical one holds.
    #[inline]
    pub(crate) fn logical_of(&self, physical: u32) -> u32 {
        self.logical_of[physical as usize]
    }

    /// Maps a logical page to a new physical page; returns the old one, which is no longer valid.
    #[inline]
    pub(crate) fn put(&mut self, logical: u32, physical: u32) -> u32 {
        let old = std::mem::replace(&mut self.physical_of[logical as usize], physical);
        self.logical_of[physical as usize] = logical;
        self.valid[physical as usize / 64] |= 1 << (physical % 64);
        if old != NONE {
            self.valid[old as usize / 64] &= !(1 << (old % 64));
        }
        old
    }

    /// Moves the logical page of a valid physical page to a new physical page.
    #[inline]
    pub(crate) fn relocate(&mut self, from: u32, to: u32) {
        let logical = self.logical_of[from as usize];
        self.physical_of[logical as usize] = to;
        self.logical_of[to as usize] = logical;
        self.valid[to as usize / 64] |= 1 << (to % 64);
        self.valid[from as usize / 64] &= !(1 << (from % 64));
    }

    /// Unmaps a logical page; returns its physical page, which is no longer valid.
    pub(crate) fn forget(&mut self, logical: u32) -> u32 {
        let old = std::mem::replace(&mut self.physical_of[logical as usize], NONE);
        if old != NONE {
            self.valid[old as usize / 64] &= !(1 << (old % 64));
        }
        old
    }

    /// The first valid page in `from..end`.
    #[inline]
    pub(crate) fn next_valid(&self, from: u32, end: u32) -> Option<u32> {
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

    /// Valid pages in `from..end`.
    pub(crate) fn count_valid(&self, from: u32, end: u32) -> u32 {
        let next = |from: u32| if from < end { self.next_valid(from, end) } else { None };
        std::iter::successors(next(from), |&page| next(page + 1)).count() as u32
    }

    /// Checks that both directions agree, and that `valid` pages are mapped.
    pub(crate) fn check(&self, valid: u64) -> Result<(), String> {
        let mut mapped = 0_u64;
        for (logical, &physical) in (0_u32..).zip(&self.physical_of) {
            if physical != NONE {
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
    pub(crate) fn expect(&self, logical: u32) {
        prefetch(&self.physical_of, logical as usize);
    }

    /// Prefetches the valid bit of a physical page, before it becomes invalid.
    #[inline]
    pub(crate) fn expect_change(&self, physical: u32) {
        prefetch(&self.valid, physical as usize / 64);
    }

    /// Prefetches the valid bits and the logical pages of a block, from its first page on.
    #[inline]
    pub(crate) fn expect_block(&self, first: u32) {
        prefetch(&self.valid, first as usize / 64);
        prefetch(&self.logical_of, first as usize);
    }

    /// Prefetches the logical pages of the physical pages one cache line further on.
    #[inline]
    pub(crate) fn expect_behind(&self, physical: u32) {
        prefetch(&self.logical_of, physical as usize + ENTRIES_PER_LINE as usize);
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let entries = self.physical_of.capacity() + self.logical_of.capacity();
        (entries * size_of::<u32>() + self.valid.capacity() * size_of::<u64>()) as u64
    }
}
