//! A map that lies on flash: its translation pages are logical pages behind those of the host, in
//! write frontiers of their own, and a share of them is cached. The map in memory says where every
//! page is; this says what that costs.

use crate::pages::{Pages, Queue};
use crate::shape::Shape;
use crate::spec::MapKind;
use hashbrown::HashMap;
use softflash_mapping::CachedMap;
use softflash_mapping::map::cached::Step;

/// The state of a map on flash.
#[derive(Debug)]
pub(crate) struct Translation {
    map: CachedMap,
    /// Logical pages of the host; that of the first translation page follows.
    host_pages: u32,
    /// Pages that wait for each translation page that is being read.
    waiting: HashMap<u32, Queue>,
    /// Translation pages that the victim of each write frontier has changed, which are not in
    /// memory. They are updated when all of its pages have moved.
    changed: Vec<Vec<u32>>,
    reads: u64,
}

impl Translation {
    /// An empty cache; `None` for a map in memory.
    pub(crate) fn new(kind: MapKind, shape: &Shape) -> Option<Translation> {
        let MapKind::Cached(share) = kind else { return None };
        let host_pages = shape.logical_pages();
        let capacity = share.of(shape.translation_pages());
        Some(Translation {
            map: CachedMap::new(host_pages, shape.page_bytes(), capacity),
            host_pages,
            waiting: HashMap::new(),
            changed: vec![Vec::new(); shape.frontiers() as usize],
            reads: 0,
        })
    }

    /// Whether the place of a logical page is known now; otherwise its translation page is read.
    pub(crate) fn look_up(&mut self, logical: u32) -> bool {
        self.map.look_up(self.map.page_of(logical))
    }

    /// A page waits for its translation page, which is being read.
    pub(crate) fn wait(&mut self, logical: u32, page: u32, pages: &mut Pages) {
        let translation = self.map.page_of(logical);
        self.waiting.entry(translation).or_insert(Queue::EMPTY).push(pages, page);
    }

    /// The place of a logical page has changed.
    pub(crate) fn change(&mut self, logical: u32) {
        if logical < self.host_pages {
            self.map.change(self.map.page_of(logical));
        }
    }

    /// Collection has moved a logical page to another page of this write frontier.
    pub(crate) fn moved(&mut self, frontier: u32, logical: u32) {
        if logical >= self.host_pages {
            // Where translation pages lie is in memory.
            return;
        }
        let translation = self.map.page_of(logical);
        if self.map.change_later(translation) {
            self.changed[frontier as usize].push(translation);
        }
    }

    /// All pages of a write frontier's victim have moved: their places change on flash.
    pub(crate) fn update(&mut self, frontier: u32) {
        let mut changed = std::mem::take(&mut self.changed[frontier as usize]);
        changed.drain(..).for_each(|translation| self.map.update(translation));
        self.changed[frontier as usize] = changed;
    }

    /// The program of this logical page begins.
    pub(crate) fn program_begins(&mut self, logical: u32) {
        match logical.checked_sub(self.host_pages) {
            Some(translation) => self.map.program_begins(translation),
            None => self.change(logical),
        }
    }

    /// The translation page with this logical number is in memory; returns the pages that waited.
    pub(crate) fn read_done(&mut self, logical: u32) -> Queue {
        let translation = logical - self.host_pages;
        self.map.read_done(translation);
        self.waiting.remove(&translation).unwrap_or(Queue::EMPTY)
    }

    /// Counts a translation page read from flash.
    pub(crate) fn count_read(&mut self) {
        self.reads += 1;
    }

    /// Whether translation pages are to be read or programmed.
    #[inline]
    pub(crate) fn has_steps(&self) -> bool {
        self.map.has_steps()
    }

    /// The next translation page to be read or programmed, as a logical page.
    pub(crate) fn next_step(&mut self) -> Option<Step> {
        Some(match self.map.next_step()? {
            Step::Read(translation) => Step::Read(self.host_pages + translation),
            Step::Program(translation) => Step::Program(self.host_pages + translation),
        })
    }

    /// Lookups that found their page in memory, those that did not, and pages read.
    pub(crate) fn counters(&self) -> (u64, u64, u64) {
        let (hits, misses) = self.map.lookups();
        (hits, misses, self.reads)
    }

    pub(crate) fn clear_counters(&mut self) {
        self.map.clear_lookups();
        self.reads = 0;
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let changed = self.changed.iter().map(|of| of.capacity() * size_of::<u32>());
        self.map.memory_bytes() + changed.sum::<usize>() as u64
    }

    /// Checks the order of the cache.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.map.check()
    }
}
