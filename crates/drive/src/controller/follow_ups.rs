//! What follows from the steps of a drive beside its requests: reads and programs of the pages of a
//! map on flash, pages that wait for their place there, pages that the placement has held back, and
//! the collection of bands.

use super::Controller;
use crate::dispatch::Dispatch;
use crate::mapping::Mapping;
use crate::pages::{Purpose, Then};
use crate::space::BandStep;
use softflash_base::AccessKind;
use softflash_mapping::NONE;
use softflash_mapping::map::cached::Step;

impl<M: Mapping> Controller<M> {
    /// Whether the place of a page is known now. Otherwise it waits for its translation page, and
    /// goes on with `then`.
    #[inline(always)]
    pub(super) fn knows(&mut self, page: u32, logical: u32, then: Then) -> bool {
        let known = self.space.look_up(logical);
        if !known {
            self.pages.set_then(page, then);
            self.space.wait_for_map(logical, page, &mut self.pages);
        }
        // A page that comes into the cache may do so instead of one that must be programmed.
        if self.space.has_follow_ups() {
            self.follow_up();
        }
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
                self.dispatch_alone(die);
            }
        }
        self.host_interface_changed();
    }

    /// Goes on with a page whose place is known by now; returns the die that has new work.
    fn go_on(&mut self, page: u32) -> Option<u32> {
        let logical = self.pages.logical(page);
        match self.pages.then(page) {
            Then::Read if self.is_buffered(logical) => self.read_without_flash(page),
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
                self.dispatch_alone(die);
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
        Some(self.queue_read(page, (logical, physical), Purpose::Map))
    }

    /// Starts work on a die; what follows from it is left to [`follow_up`](Controller::follow_up).
    fn dispatch_alone(&mut self, die: u32) {
        let accepts = self.dies.accepts(die);
        let Controller { space, dies, pages, buffer, .. } = self;
        Dispatch::new(space, dies, pages, buffer).dispatch(die, accepts);
    }

    /// Queues a page of the host to be programmed in a band; returns the die, unless the page is
    /// held back.
    #[inline]
    pub(super) fn write_to_band(&mut self, page: u32, logical: u32) -> Option<u32> {
        let die = self.space.write_to_band(logical, page, &mut self.pages);
        if let Some(die) = die {
            self.dies.rank(die, AccessKind::Write);
        }
        self.follow_bands();
        die
    }

    /// A page that collection moves has been read.
    #[inline(never)]
    pub(super) fn moved_page_read(&mut self, page: u32) {
        match self.space.queue_moved(page, &mut self.pages) {
            Some(die) => {
                self.dies.rank(die, AccessKind::Write);
                self.dispatch_alone(die);
            }
            None => _ = self.pages.complete_page(page),
        }
        self.follow_bands();
    }

    /// A page that collection moves has been programmed.
    #[inline]
    pub(super) fn move_ended(&mut self, page: u32) {
        self.space.move_ended(self.pages.block(page));
        self.pages.complete_page(page);
    }

    /// Queues pages that were held back and have a band by now, and does the steps of collection
    /// that are due.
    #[inline(never)]
    pub(super) fn follow_bands(&mut self) {
        loop {
            if let Some(die) = self.space.queue_held_back(&mut self.pages) {
                self.dies.rank(die, AccessKind::Write);
                self.dispatch_alone(die);
                continue;
            }
            let die = match self.space.next_band_step(false) {
                Some(BandStep::Read { logical, physical }) => {
                    let page = self.pages.add_page(NONE, logical, 0);
                    let die = self.queue_read(page, (logical, physical), Purpose::Move);
                    self.pages.set_flash_page(page, physical);
                    die
                }
                Some(BandStep::Erase { die }) => die,
                None => return,
            };
            self.dispatch_alone(die);
        }
    }
}
