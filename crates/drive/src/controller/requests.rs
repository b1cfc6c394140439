//! Takes a request through a drive: admission, arrival of its pages, work of the dies, completion.

use super::Controller;
use crate::collect;
use crate::host_interface::PageJob;
use crate::mapping::Mapping;
use crate::pages::{Purpose, Then};
use crate::request::HostRequest;
use softflash_base::{AccessKind, Durability};
use softflash_mapping::NONE;
use softflash_nand::{Work, WorkKind};

impl<M: Mapping> Controller<M> {
    /// Admits a request to the device.
    #[inline(always)]
    pub(super) fn admit(&mut self, since: u64, request: &HostRequest) {
        let shape = self.space.shape();
        let logical = shape.page_at(request.offset_bytes);
        let cut_begin = shape.cuts_page(request.offset_bytes);
        // Most requests are for one whole page.
        if request.bytes == u64::from(shape.page_bytes()) && !cut_begin {
            return self.admit_pages(since, request, (logical, 1), [false; 2]);
        }
        let end_bytes = request.offset_bytes + request.bytes;
        let cut_end = shape.cuts_page(end_bytes);
        let pages = shape.pages_up_to(end_bytes) - logical;
        let partial = [cut_begin || (pages == 1 && cut_end), cut_end];
        self.admit_pages(since, request, (logical, pages), partial);
    }

    /// Admits a request for so many pages from a logical one on. It may cover the first and the
    /// last in part.
    #[inline(always)]
    fn admit_pages(
        &mut self,
        since: u64,
        request: &HostRequest,
        (logical, pages): (u32, u32),
        partial: [bool; 2],
    ) {
        let place = self.pages.add_request(since, request, (logical, pages));
        if M::BANDED && request.kind == AccessKind::Write {
            let is_wide = self.space.is_wide(request.offset_bytes, request.bytes);
            self.pages.set_wide(place, is_wide);
        }
        match request.kind {
            AccessKind::Read => self.counters.host_pages_read += u64::from(pages),
            AccessKind::Write => {
                self.counters.host_pages_written += u64::from(pages);
                if request.durability != Durability::Accepted {
                    self.admit_durable(place, request, pages);
                }
            }
            AccessKind::Trim => return self.trim(place, request),
        }
        if self.host_interface.is_straight(request.kind) {
            for page in 0..pages {
                let die = self.page_arrived(PageJob {
                    request: place,
                    logical: logical + page,
                    kind: request.kind,
                    partial: (page == 0 && partial[0]) || (page + 1 == pages && partial[1]),
                    more: page + 1 < pages,
                });
                if let Some(die) = die {
                    self.dispatch(die, self.dies.accepts(die));
                }
            }
        } else {
            self.host_interface.enter(
                self.now,
                place,
                request.kind,
                (logical, pages),
                (request.bytes, partial),
            );
            self.host_interface_changed();
        }
    }

    /// A write has been admitted that ends when it is on flash: where the buffer would lose it.
    #[cold]
    fn admit_durable(&mut self, place: u32, request: &HostRequest, pages: u32) {
        if self.buffer.is_some() && !self.is_protected {
            self.durable.admit(place, request.durability, pages);
        }
    }

    /// Unmaps the pages that the request covers as a whole.
    #[cold]
    fn trim(&mut self, place: u32, request: &HostRequest) {
        let page_bytes = u64::from(self.space.shape().page_bytes());
        let first = request.offset_bytes.div_ceil(page_bytes) as u32;
        let end = ((request.offset_bytes + request.bytes) / page_bytes) as u32;
        for logical in first..end {
            self.space.forget(logical);
        }
        self.complete_request(place, AccessKind::Trim, self.now);
        if self.space.has_follow_ups() {
            self.follow_up();
        }
    }

    /// Handles a page that has passed the host interface; returns the die that has new work.
    #[inline(always)]
    pub(super) fn page_arrived(&mut self, arrived: PageJob) -> Option<u32> {
        let PageJob { request, logical, kind, partial, more } = arrived;
        let page = self.pages.page_of(request, logical);
        if kind == AccessKind::Read {
            let die = self.read_page(page, logical);
            if self.is_packed() {
                return self.read_arrived(die, more);
            }
            die
        } else {
            let die = match partial && self.space.physical_of(logical) != NONE {
                true => self.read_for_merge(page, logical),
                false => self.write_page(page, logical),
            };
            if self.is_packed() {
                return self.write_arrived(die, more);
            }
            die
        }
    }

    #[inline(always)]
    fn read_page(&mut self, page: u32, logical: u32) -> Option<u32> {
        if self.is_buffered(logical) {
            return self.read_without_flash(page);
        }
        if !self.knows(page, logical, Then::Read) {
            return None;
        }
        self.read_known(page, logical)
    }

    /// Reads a page for the host, whose place is known.
    #[inline(always)]
    pub(super) fn read_known(&mut self, page: u32, logical: u32) -> Option<u32> {
        let physical = self.space.physical_of(logical);
        if physical == NONE {
            return self.read_without_flash(page);
        }
        self.counters.read_for_host += 1;
        Some(self.queue_read(page, (logical, physical), Purpose::Host))
    }

    /// Reads a page for the host that is in the buffer, or was never written.
    #[inline(always)]
    pub(super) fn read_without_flash(&mut self, page: u32) -> Option<u32> {
        self.counters.read_without_flash += 1;
        self.complete_read(page);
        None
    }

    #[cold]
    fn read_for_merge(&mut self, page: u32, logical: u32) -> Option<u32> {
        if self.is_buffered(logical) {
            return self.write_page(page, logical);
        }
        if !self.knows(page, logical, Then::Merge) {
            return None;
        }
        self.read_old(page, logical)
    }

    /// Reads the page that a partial write changes, if it still has a place.
    pub(super) fn read_old(&mut self, page: u32, logical: u32) -> Option<u32> {
        let physical = self.space.physical_of(logical);
        if physical == NONE {
            return self.write_page(page, logical);
        }
        self.counters.read_for_partial_writes += 1;
        Some(self.queue_read(page, (logical, physical), Purpose::Merge))
    }

    #[inline(always)]
    pub(super) fn is_buffered(&self, logical: u32) -> bool {
        self.buffer.as_ref().is_some_and(|buffer| buffer.holds(logical))
    }

    /// Queues a page to be read from where it lies; returns the die.
    #[inline(always)]
    pub(super) fn queue_read(
        &mut self,
        page: u32,
        (logical, physical): (u32, u32),
        purpose: Purpose,
    ) -> u32 {
        let place = self.space.shape().place_of_physical(physical);
        let die = self.space.wait_to_read(logical, place.0);
        self.pages.arrive_to_read(page, place, purpose);
        if self.is_packed() {
            self.pages.set_flash_page(page, self.space.shape().flash_page_of(physical));
        }
        self.dies.queue_read(die, page, &mut self.pages);
        self.dies.rank(die, AccessKind::Read);
        die
    }

    /// Queues the next flash page of the scrub, if its block is full and has data; returns the die.
    pub(super) fn scrub_page(&mut self) -> Option<u32> {
        let (block, first) = self.scrubbing.step(self.now, self.space.shape())?;
        if !self.space.has_data_at_rest(block) {
            return None;
        }
        self.scrubbing.begin(self.space.shape().group_of_block(block));
        let page = self.pages.add_page(NONE, NONE, 0);
        Some(self.queue_read(page, (NONE, first), Purpose::Scrub))
    }

    /// A flash page has been read by the scrub.
    #[cold]
    fn scrubbed(&mut self, page: u32) {
        self.scrubbing.end(self.space.shape().group_of_block(self.pages.block(page)));
        self.counters.scrub_reads += 1;
        self.pages.complete_page(page);
    }

    /// Queues a page that is complete, and acknowledges it if there is a buffer.
    #[inline(always)]
    pub(super) fn write_page(&mut self, mut page: u32, logical: u32) -> Option<u32> {
        if let Some(buffer) = &mut self.buffer {
            let (hint, is_wide) = (self.pages.hint(page), self.pages.is_wide(page));
            let new = buffer.put(logical);
            if self.durable.is_empty() || !self.buffered_durably(page, logical) {
                self.complete_write(page);
            }
            if !new {
                self.counters.absorbed += 1;
                return None;
            }
            page = self.pages.add_page(NONE, logical, hint);
            if M::BANDED {
                self.pages.set_wide(page, is_wide);
            }
        }
        if self.knows(page, logical, Then::Write) { self.place_write(page, logical) } else { None }
    }

    /// A page has come to the buffer; false if its request ends now.
    #[cold]
    fn buffered_durably(&mut self, page: u32, logical: u32) -> bool {
        let Some(buffer) = &self.buffer else { return false };
        let waits = self.durable.buffered(self.pages.request(page), (page, logical), buffer);
        if self.durable.waits() {
            self.program_what_waits();
        }
        waits
    }

    /// A version of a page is on flash, for which writes may wait.
    #[cold]
    fn durably_programmed(&mut self, logical: u32) {
        for page in self.durable.programmed(logical) {
            self.complete_write(page);
        }
    }

    /// Queues a page to be programmed where the placement chooses; returns the die, unless the page
    /// is held back.
    #[inline(always)]
    pub(super) fn place_write(&mut self, page: u32, logical: u32) -> Option<u32> {
        if M::BANDED {
            return self.write_to_band(page, logical);
        }
        let die = self.space.place_write(logical, page, &mut self.pages);
        if self.is_packed() {
            self.gather();
        }
        let die = die?;
        self.dies.rank(die, AccessKind::Write);
        Some(die)
    }

    /// Work on a die has completed.
    #[inline(always)]
    pub(super) fn work_completed(&mut self, die: u32, work: Work) {
        match work.kind {
            WorkKind::Read => {
                if M::GATHERS {
                    self.space.count_read(self.pages.block(work.tag));
                }
                match self.is_packed() {
                    true => self.pages_read(die, work.tag),
                    false => self.page_read(die, work.tag),
                }
            }
            WorkKind::Program => {
                self.dies.end_oldest(die);
                self.programmed(work.tag);
            }
            _ => {
                collect::completed(&mut self.space, &mut self.dies, die, work);
                if M::BANDED {
                    self.follow_bands();
                }
            }
        }
    }

    /// Pages of a flash page have been read from a die.
    #[inline(never)]
    fn pages_read(&mut self, die: u32, mut page: u32) {
        while page != NONE {
            let behind = self.pages.behind(page);
            self.page_read(die, page);
            page = behind;
        }
    }

    /// A page has been read from a die.
    #[inline(always)]
    fn page_read(&mut self, die: u32, page: u32) {
        self.space.served(die);
        match self.pages.purpose(page) {
            Purpose::Host => self.complete_read(page),
            Purpose::Merge => self.old_page_read(die, page),
            Purpose::Map => self.map_page_read(page),
            Purpose::Scrub => self.scrubbed(page),
            Purpose::Move => self.moved_page_read(page),
        }
    }

    /// The page that a partial write changes has been read.
    #[cold]
    fn old_page_read(&mut self, from: u32, page: u32) {
        let die = self.write_page(page, self.pages.logical(page));
        self.host_interface_changed();
        // The die that it was read from is fed anyway.
        if let Some(die) = die.filter(|&die| die != from) {
            self.dispatch(die, self.dies.accepts(die));
        }
    }

    /// A queue of the host's pages has been programmed.
    #[inline(always)]
    fn programmed(&mut self, mut page: u32) {
        while page != NONE {
            let behind = self.pages.behind(page);
            if M::BANDED && self.pages.purpose(page) == Purpose::Move {
                self.move_ended(page);
                page = behind;
                continue;
            }
            match &mut self.buffer {
                Some(buffer) => {
                    let logical = self.pages.logical(page);
                    if logical < self.space.shape().logical_pages() {
                        buffer.end_program(logical);
                    }
                    self.pages.complete_page(page);
                    if !self.durable.is_empty() {
                        self.durably_programmed(logical);
                    }
                }
                None => self.complete_write(page),
            }
            page = behind;
        }
        if self.buffer.is_some() {
            self.host_interface_changed();
        }
        if M::BANDED {
            self.follow_bands();
        }
    }

    /// Transfers a page that was read to the host, after those before it.
    #[inline(always)]
    pub(super) fn complete_read(&mut self, page: u32) {
        let through = self.host_interface.leave(self.now, self.space.shape().page_bytes().into());
        self.complete_page(page, AccessKind::Read, through);
    }

    /// Acknowledges a written page, which is on flash or in the buffer.
    #[inline(always)]
    fn complete_write(&mut self, page: u32) {
        self.complete_page(page, AccessKind::Write, self.now);
    }

    /// A page has completed; its transfer ends at `through`.
    #[inline(always)]
    fn complete_page(&mut self, page: u32, kind: AccessKind, through: u64) {
        if let Some(request) = self.pages.complete_page(page) {
            self.complete_request(request, kind, through);
        }
    }

    /// A request has completed; its transfer ends at `through`.
    #[inline(always)]
    fn complete_request(&mut self, request: u32, kind: AccessKind, through: u64) {
        let at = through + self.host_interface.complete_ns();
        if at == self.now {
            self.complete(at, request);
        } else {
            self.completions.push(kind, at, request);
        }
    }

    /// A request completes for the host.
    #[inline(always)]
    pub(super) fn complete(&mut self, at: u64, request: u32) {
        self.host.add_completed(self.pages.complete_request(request, at));
        self.counters.completed += 1;
        if self.host.waiting() > 0 {
            self.admit_next();
        } else if M::GATHERS && self.pages.requests() == 0 {
            self.idling.begin(self.now);
        }
    }

    #[cold]
    fn admit_next(&mut self) {
        if let Some((since, request)) = self.host.take_waiting() {
            self.admit(since, &request);
        }
    }
}
