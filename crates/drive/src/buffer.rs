//! The write buffer: DRAM that holds pages from their acknowledgement until they are on flash.

use hashbrown::HashMap;

/// Flag: the newest version of a page waits to be programmed.
const WAITS: u32 = 1 << 31;

/// The state of a page in the buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    capacity_pages: u64,
    used_pages: u64,
    /// By logical page: versions being programmed, and [`WAITS`].
    pages: HashMap<u32, u32>,
}

impl Buffer {
    pub(crate) fn new(capacity_pages: u64) -> Buffer {
        // Never more than half full, so that the table never grows: the time of growth would depend
        // on hashes, which differ from run to run, and the memory of a run must not.
        let pages = HashMap::with_capacity(2 * capacity_pages as usize);
        Buffer { capacity_pages, used_pages: 0, pages }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.used_pages < self.capacity_pages
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.used_pages == 0
    }

    pub(crate) fn holds(&self, logical: u32) -> bool {
        self.pages.contains_key(&logical)
    }

    /// Versions of a page that are not on flash.
    pub(crate) fn versions_of(&self, logical: u32) -> u32 {
        let state = self.pages.get(&logical).copied().unwrap_or(0);
        (state & !WAITS) + u32::from(state & WAITS != 0)
    }

    /// The pages that it holds, with their versions that are not on flash.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (u32, u32)> {
        self.pages.keys().map(|&logical| (logical, self.versions_of(logical)))
    }

    /// Adds a page. False if it replaces a version that waited.
    pub(crate) fn put(&mut self, logical: u32) -> bool {
        let state = self.pages.entry(logical).or_insert(0);
        let new = *state & WAITS == 0;
        *state |= WAITS;
        self.used_pages += u64::from(new);
        new
    }

    /// The program of the waiting version begins.
    pub(crate) fn begin_program(&mut self, logical: u32) {
        if let Some(state) = self.pages.get_mut(&logical) {
            assert!(*state & WAITS != 0, "page {logical} is programmed and waits for nothing");
            *state = (*state & !WAITS) + 1;
        }
    }

    /// A version is on flash.
    pub(crate) fn end_program(&mut self, logical: u32) {
        assert!(self.used_pages > 0, "page {logical} leaves an empty buffer");
        self.used_pages -= 1;
        if let Some(state) = self.pages.get_mut(&logical) {
            assert!(*state & !WAITS > 0, "page {logical} is on flash before its program");
            *state -= 1;
            if *state == 0 {
                self.pages.remove(&logical);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.pages.allocation_size() as u64
    }
}
