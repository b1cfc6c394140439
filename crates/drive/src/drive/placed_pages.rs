//! Drives that are not [plain](crate::space::Space::is_plain): pages that wait for their place in
//! the map, pages that are placed and ranked, and the reads and programs of the map's own pages.

use super::Drive;
use crate::dispatch::Dispatch;
use crate::pages::{Purpose, Then};
use softflash_base::AccessKind;
use softflash_mapping::NONE;
use softflash_mapping::map::cached::Step;

impl Drive {
    /// Reads a page for the host, when its place is known.
    #[inline(never)]
    pub(super) fn read_if_known(&mut self, page: u32, logical: u32) -> Option<u32> {
        if self.is_buffered(logical) || self.knows(page, logical, Then::Read) {
            return self.read_known(page, logical);
        }
        None
    }

    fn read_known(&mut self, page: u32, logical: u32) -> Option<u32> {
        let physical = self.space.physical_of(logical);
        if self.is_buffered(logical) || physical == NONE {
            self.counters.read_without_flash += 1;
            self.complete_read(page);
            return None;
        }
        self.counters.read_for_host += 1;
        Some(self.queue_read_anywhere(page, physical, Purpose::Placed))
    }

    /// Queues a page to be programmed, when the place of what it replaces is known.
    #[inline(never)]
    pub(super) fn write_if_known(&mut self, page: u32, logical: u32) -> Option<u32> {
        if self.knows(page, logical, Then::Write) { self.place_write(page, logical) } else { None }
    }

    /// Queues a page to be programmed where the placement chooses; returns the die, unless the page
    /// is held back.
    fn place_write(&mut self, page: u32, logical: u32) -> Option<u32> {
        let die = self.space.place_write(logical, page, &mut self.pages)?;
        self.dies.rank(die, AccessKind::Write);
        Some(die)
    }

    /// Queues a page to be read from where it lies; returns the die.
    pub(super) fn queue_read_anywhere(
        &mut self,
        page: u32,
        physical: u32,
        purpose: Purpose,
    ) -> u32 {
        self.pages.set_purpose(page, purpose);
        let place = self.space.shape().place_of_physical(physical);
        let die = self.space.wait_to_read(place.0);
        self.pages.arrive_to_read(page, place);
        self.dies.queue_read(die, page, &mut self.pages);
        self.dies.rank(die, AccessKind::Read);
        die
    }

    /// Whether the place of a page is known now. Otherwise it waits for its translation page, and
    /// goes on with `then`.
    pub(super) fn knows(&mut self, page: u32, logical: u32, then: Then) -> bool {
        let known = self.space.look_up(logical);
        if !known {
            self.pages.set_then(page, then);
            self.space.wait_for_map(logical, page, &mut self.pages);
        }
        // A page that comes into the cache may do so instead of one that must be programmed.
        self.follow_up();
        known
    }

    /// A translation page has been read from flash.
    #[cold]
    pub(super) fn map_page_read(&mut self, page: u32) {
        let logical = self.pages.logical(page);
        self.pages.complete_page(page);
        self.map_page_known(logical);
        self.follow_up();
    }

    /// A translation page is in memory: what waited for it goes on.
    fn map_page_known(&mut self, logical: u32) {
        let mut waiting = self.space.map_page_read(logical);
        while let Some(page) = waiting.pop(&self.pages) {
            if let Some(die) = self.go_on(page) {
                self.feed_alone(die);
            }
        }
        self.front_changed();
    }

    /// Goes on with a page whose place is known by now; returns the die that has new work.
    fn go_on(&mut self, page: u32) -> Option<u32> {
        let logical = self.pages.logical(page);
        match self.pages.then(page) {
            Then::Read => self.read_known(page, logical),
            Then::Merge => self.read_old(page, logical),
            Then::Write => self.place_write(page, logical),
        }
    }

    /// Reads and programs the pages of the map that are due, and queues pages that were held back.
    #[inline(never)]
    pub(super) fn follow_up(&mut self) {
        loop {
            let die = match self.space.next_map_step() {
                Some(Step::Read(logical)) => self.read_map_page(logical),
                Some(Step::Program(logical)) => {
                    let page = self.pages.add_map_page(logical);
                    self.place_write(page, logical)
                }
                None => match self.space.take_held_back(&self.pages) {
                    Some(page) => self.place_write(page, self.pages.logical(page)),
                    None => return,
                },
            };
            if let Some(die) = die {
                self.feed_alone(die);
            }
        }
    }

    /// Reads a translation page; returns its die. One that was never programmed is known at once.
    fn read_map_page(&mut self, logical: u32) -> Option<u32> {
        let physical = self.space.place_of_map_page(logical);
        if physical == NONE {
            self.map_page_known(logical);
            return None;
        }
        let page = self.pages.add_map_page(logical);
        Some(self.queue_read_anywhere(page, physical, Purpose::Map))
    }

    /// Starts work on a die; what follows from it is left to [`follow_up`](Drive::follow_up).
    fn feed_alone(&mut self, die: u32) {
        let accepts = self.dies.accepts(die);
        let Drive { space, dies, pages, buffer, .. } = self;
        Dispatch::new(space, dies, pages, buffer).feed(die, accepts);
    }
}
