//! A demand-cached map: which pages of the map are in memory, which of these have changed, and
//! which pages are read and programmed.
//!
//! A *translation page* is a page of flash with the entries of consecutive logical pages, four
//! bytes each. A share of them is cached, and the least recently used is evicted: if it has
//! changed, it is programmed. An entry that changes outside of the cache (its page is moved by
//! collection) changes on flash: its translation page is read and programmed, once for all changes
//! until then.
//!
//! Gupta, Kim and Urgaonkar, *DFTL: a flash translation layer employing demand-based selective
//! caching of page-level address mappings*, ASPLOS 2009, sections 3.2 and 3.3, with translation
//! pages instead of single entries as the unit of the cache.
//!
//! The map itself is a [`PageMap`](super::page::PageMap). This says what a lookup or a change costs
//! on flash: the caller executes the [`Step`]s, and reports them.

use std::collections::VecDeque;

/// Bytes of an entry.
const ENTRY_BYTES: u32 = 4;

/// No translation page.
const NONE: u32 = u32::MAX;

/// In the cache.
const CACHED: u8 = 1;
/// Changed in the cache.
const DIRTY: u8 = 2;
/// Being read.
const READING: u8 = 4;
/// Looked up, so that the read brings it into the cache.
const WANTED: u8 = 8;
/// Changed outside of the cache, so that the read is followed by a program.
const PENDING: u8 = 16;
/// In memory until its program begins.
const STAGED: u8 = 32;

/// What is done on flash next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The read of a translation page; [`CachedMap::read_done`] follows.
    Read(u32),
    /// The program of a translation page; [`CachedMap::program_begins`] follows.
    Program(u32),
}

/// The cache of a map, and what is under way to and from flash.
#[derive(Debug, Clone)]
pub struct CachedMap {
    /// Entries of a translation page, as a power of two.
    entries_shift: u32,
    capacity: u32,
    states: Vec<State>,
    cached: u32,
    newest: u32,
    oldest: u32,
    steps: VecDeque<Step>,
    hits: u64,
    misses: u64,
}

/// A translation page, with its neighbours in the order of use while it is cached.
#[derive(Debug, Clone, Copy)]
struct State {
    flags: u8,
    newer: u32,
    older: u32,
}

impl CachedMap {
    /// An empty cache of up to `capacity` translation pages, at least one, of a map with so many
    /// logical pages.
    pub fn new(logical_pages: u32, page_bytes: u32, capacity: u32) -> CachedMap {
        let pages = CachedMap::pages_of(logical_pages, page_bytes);
        CachedMap {
            entries_shift: entries_shift(page_bytes),
            capacity: capacity.max(1),
            states: vec![State { flags: 0, newer: NONE, older: NONE }; pages as usize],
            cached: 0,
            newest: NONE,
            oldest: NONE,
            steps: VecDeque::new(),
            hits: 0,
            misses: 0,
        }
    }

    /// Translation pages of so many logical pages.
    pub fn pages_of(logical_pages: u32, page_bytes: u32) -> u32 {
        logical_pages.div_ceil(1 << entries_shift(page_bytes))
    }

    /// Translation pages.
    pub fn pages(&self) -> u32 {
        self.states.len() as u32
    }

    /// The translation page of a logical page.
    #[inline]
    pub fn page_of(&self, logical: u32) -> u32 {
        logical >> self.entries_shift
    }

    /// Looks a translation page up. If it is not in memory, it is read, and the lookup waits for
    /// [`read_done`](CachedMap::read_done).
    pub fn look_up(&mut self, page: u32) -> bool {
        if self.has(page, CACHED) {
            self.unlink(page);
            self.link(page);
        } else if self.has(page, STAGED) {
            self.admit(page);
        } else {
            self.misses += 1;
            self.set(page, WANTED);
            self.read(page);
            return false;
        }
        self.hits += 1;
        true
    }

    /// An entry of a translation page changes.
    pub fn change(&mut self, page: u32) {
        if self.change_later(page) {
            self.read(page);
        }
    }

    /// As [`change`](CachedMap::change), but a page that is not in memory is left as it is until
    /// [`update`](CachedMap::update). Returns whether the page waits for that from now on.
    pub fn change_later(&mut self, page: u32) -> bool {
        if self.has(page, CACHED) {
            self.set(page, DIRTY);
        } else if !self.has(page, STAGED | PENDING) {
            self.set(page, PENDING);
            return true;
        }
        false
    }

    /// Brings the changes of a translation page to flash, unless they are no longer pending.
    pub fn update(&mut self, page: u32) {
        if self.has(page, PENDING) {
            self.read(page);
        }
    }

    /// A translation page has been read.
    ///
    /// # Panics
    /// If its read was no [step](CachedMap::next_step).
    pub fn read_done(&mut self, page: u32) {
        assert!(self.has(page, READING), "translation page {page} was read without a step");
        let wanted = self.has(page, WANTED);
        let changed = self.has(page, PENDING);
        self.clear(page, READING | WANTED | PENDING);
        if wanted {
            self.admit(page);
        }
        match (wanted, changed) {
            (true, true) => self.set(page, DIRTY),
            (false, true) => self.stage(page),
            _ => {}
        }
    }

    /// The program of a translation page begins; it holds all changes up to now.
    pub fn program_begins(&mut self, page: u32) {
        self.clear(page, STAGED);
    }

    /// The next step, in the order in which they became due.
    pub fn next_step(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }

    /// Whether steps are due.
    #[inline]
    pub fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }

    /// Lookups that found their page in memory, and those that did not.
    pub fn lookups(&self) -> (u64, u64) {
        (self.hits, self.misses)
    }

    /// Sets the counts of lookups to 0.
    pub fn clear_lookups(&mut self) {
        (self.hits, self.misses) = (0, 0);
    }

    /// Memory of the model, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let steps = self.steps.capacity() * size_of::<Step>();
        (self.states.capacity() * size_of::<State>() + steps) as u64
    }

    /// Checks that the order of use has the cached pages, and no more than the capacity.
    pub fn check(&self) -> Result<(), String> {
        let newer =
            |&page: &u32| Some(self.states[page as usize].newer).filter(|&page| page != NONE);
        let first = Some(self.oldest).filter(|&page| page != NONE);
        let listed = std::iter::successors(first, newer).take(self.states.len() + 1).count();
        let cached = (0..self.pages()).filter(|&page| self.has(page, CACHED)).count();
        if listed != cached || cached != self.cached as usize || self.cached > self.capacity {
            let (counted, most) = (self.cached, self.capacity);
            return Err(format!(
                "the cache of the map lists {listed} pages, has {cached}, counts {counted} of {most}"
            ));
        }
        Ok(())
    }

    fn has(&self, page: u32, flags: u8) -> bool {
        self.states[page as usize].flags & flags != 0
    }

    fn set(&mut self, page: u32, flags: u8) {
        self.states[page as usize].flags |= flags;
    }

    fn clear(&mut self, page: u32, flags: u8) {
        self.states[page as usize].flags &= !flags;
    }

    fn read(&mut self, page: u32) {
        if !self.has(page, READING) {
            self.set(page, READING);
            self.steps.push_back(Step::Read(page));
        }
    }

    fn stage(&mut self, page: u32) {
        if !self.has(page, STAGED) {
            self.set(page, STAGED);
            self.steps.push_back(Step::Program(page));
        }
    }

    /// Brings a page into the cache, as the most recently used.
    fn admit(&mut self, page: u32) {
        assert!(!self.has(page, CACHED), "translation page {page} comes into the cache twice");
        if self.cached == self.capacity {
            self.evict(self.oldest);
        }
        self.cached += 1;
        self.set(page, CACHED);
        self.link(page);
    }

    fn evict(&mut self, page: u32) {
        assert!(self.has(page, CACHED), "translation page {page} leaves the cache twice");
        self.unlink(page);
        self.cached -= 1;
        let changed = self.has(page, DIRTY);
        self.clear(page, CACHED | DIRTY);
        if changed {
            self.stage(page);
        }
    }

    /// Makes a page the most recently used.
    fn link(&mut self, page: u32) {
        let older = std::mem::replace(&mut self.newest, page);
        match older {
            NONE => self.oldest = page,
            older => self.states[older as usize].newer = page,
        }
        let state = &mut self.states[page as usize];
        (state.newer, state.older) = (NONE, older);
    }

    fn unlink(&mut self, page: u32) {
        let State { newer, older, .. } = self.states[page as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.states[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.states[older as usize].newer = newer,
        }
    }
}

/// Entries of a translation page, as a power of two; a page has a power of two of bytes.
fn entries_shift(page_bytes: u32) -> u32 {
    (page_bytes / ENTRY_BYTES).max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::{BTreeMap, BTreeSet};

    /// Eight translation pages of four entries, two of them cached.
    fn eight() -> CachedMap {
        CachedMap::new(32, 16, 2)
    }

    /// Executes all steps at once; returns them.
    fn settle(map: &mut CachedMap) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(step) = map.next_step() {
            match step {
                Step::Read(page) => map.read_done(page),
                Step::Program(page) => map.program_begins(page),
            }
            steps.push(step);
        }
        steps
    }

    #[test]
    fn a_miss_reads_and_a_changed_page_is_programmed_when_it_is_evicted() {
        let mut map = eight();
        assert_eq!((map.pages(), map.page_of(7), map.page_of(8)), (8, 1, 2));
        assert!(!map.look_up(0));
        assert_eq!(settle(&mut map), [Step::Read(0)]);
        map.change(0);
        assert!(!map.look_up(1) && settle(&mut map) == [Step::Read(1)]);
        assert!(map.look_up(0) && !map.look_up(2));
        // Page 1 is the least recently used, and unchanged.
        assert_eq!(settle(&mut map), [Step::Read(2)]);
        assert!(!map.look_up(3));
        assert_eq!(settle(&mut map), [Step::Read(3), Step::Program(0)]);
        assert_eq!(map.lookups(), (1, 4));
        map.check().unwrap();
    }

    #[test]
    fn changes_outside_of_the_cache_are_one_read_and_one_program() {
        let mut map = eight();
        assert!(map.change_later(5) && !map.change_later(5));
        assert!(!map.has_steps());
        map.update(5);
        map.change(5);
        map.update(5);
        assert_eq!(settle(&mut map), [Step::Read(5), Step::Program(5)]);
        map.update(5);
        assert!(!map.has_steps());
    }

    #[test]
    fn a_page_that_waits_for_its_program_is_found_in_memory() {
        let mut map = eight();
        map.change(5);
        assert_eq!(map.next_step(), Some(Step::Read(5)));
        // The lookup needs no further read, and makes the change one of the cache.
        assert!(!map.look_up(5));
        map.read_done(5);
        assert!(!map.has_steps() && map.look_up(5));
        for page in [6, 7] {
            map.look_up(page);
            assert_eq!(map.next_step(), Some(Step::Read(page)));
            map.read_done(page);
        }
        // It is evicted by now; before its program begins it is still here, and takes changes.
        assert!(map.look_up(5));
        map.change(5);
        assert_eq!(settle(&mut map), [Step::Program(5)]);
    }

    /// Random lookups and changes, with steps executed at random times: what flash and memory hold
    /// is never behind the changes.
    #[test]
    fn no_change_is_lost() {
        for seed in 0..200 {
            let mut rng = Rng::seeded(seed).fork("cached map");
            let mut map = CachedMap::new(40, 16, 1 + rng.below(5) as u32);
            // Changes of each page that are on flash, and all.
            let (mut on_flash, mut all) =
                (BTreeMap::<u32, u32>::new(), BTreeMap::<u32, u32>::new());
            let mut reading: BTreeSet<u32> = BTreeSet::new();
            let mut later: BTreeSet<u32> = BTreeSet::new();
            for _ in 0..600 {
                let page = rng.below(10) as u32;
                match rng.below(6) {
                    0 => _ = map.look_up(page),
                    1 => {
                        map.change(page);
                        *all.entry(page).or_default() += 1;
                    }
                    2 => {
                        *all.entry(page).or_default() += 1;
                        later.extend(map.change_later(page).then_some(page));
                    }
                    3 => std::mem::take(&mut later).into_iter().for_each(|page| map.update(page)),
                    4 => {
                        if let Some(page) = reading.pop_first() {
                            map.read_done(page);
                        }
                    }
                    _ => match map.next_step() {
                        Some(Step::Read(page)) => assert!(reading.insert(page), "seed {seed}"),
                        Some(Step::Program(page)) => {
                            map.program_begins(page);
                            on_flash.insert(page, all.get(&page).copied().unwrap_or(0));
                        }
                        None => {}
                    },
                }
                map.check().unwrap();
                // What is not on flash is in memory: changed, staged or pending.
                for (&page, &changes) in &all {
                    let kept = map.has(page, DIRTY | STAGED | PENDING);
                    let flash = on_flash.get(&page).copied().unwrap_or(0);
                    assert!(kept || flash == changes, "seed {seed}: page {page}");
                }
            }
        }
    }

    #[test]
    fn random_lookups_hit_as_often_as_pages_are_cached() {
        let mut map = CachedMap::new(64 * 1024, 4096, 8);
        let mut rng = Rng::seeded(11);
        println!("seed 11");
        for lookup in 0..100_000 {
            if lookup == 1000 {
                map.clear_lookups();
            }
            map.look_up(map.page_of(rng.below(64 * 1024) as u32));
            settle(&mut map);
        }
        let (hits, misses) = map.lookups();
        let ratio = hits as f64 / (hits + misses) as f64;
        // Four standard deviations.
        assert!((ratio - 0.125).abs() < 4.0 * (0.125 * 0.875 / 99_000.0_f64).sqrt(), "{ratio}");
    }
}
