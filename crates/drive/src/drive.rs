//! The state machine: requests in, events, completions out.

use crate::buffer::Buffer;
use crate::completions::Completions;
use crate::counters::DriveCounters;
use crate::error::DriveError;
use crate::front::{Front, PageJob};
use crate::map::{Map, NONE};
use crate::pages::{Pages, Queue};
use crate::policy::NOT_CLOSED;
use crate::request::{Done, HostRequest};
use crate::shape::Shape;
use crate::spec::{DeviceSpec, PageMapped};
use crate::write_frontier::WriteFrontier;
use softflash_base::{AccessKind, Time};
use softflash_nand::Timeline;
use softflash_nand::timeline::{Accepted, Step};
use std::collections::VecDeque;

/// A conventional drive.
pub struct Drive {
    pub(crate) shape: Shape,
    pub(crate) layout: PageMapped,
    pub(crate) flash: Timeline,
    pub(crate) map: Map,
    pub(crate) frontiers: Vec<WriteFrontier>,
    /// Erased blocks of each write frontier, the first to be used first.
    pub(crate) free: Vec<VecDeque<u32>>,
    /// Valid pages of each block; [`NOT_CLOSED`] is added unless it can be collected.
    pub(crate) valid: Vec<u16>,
    /// When each block was closed; see [`crate::policy`].
    pub(crate) closed: Vec<u32>,
    pub(crate) dies: Vec<DieQueue>,
    pub(crate) pages: Pages,
    pub(crate) front: Front,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) counters: DriveCounters,
    pub(crate) completions: Completions,
    /// When the front does something next; the end of time while it is idle.
    front_at: u64,
    /// Completed requests that have not been returned.
    pub(crate) completed: Vec<Done>,
    waiting: VecDeque<(u64, HostRequest)>,
    queue_depth: usize,
    reads_straight: bool,
    writes_straight: bool,
    /// Pages are moved one by one inside their die.
    pub(crate) copies_back: bool,
    pub(crate) order: u32,
    pub(crate) now: u64,
}

/// The requests of a die.
#[derive(Debug)]
pub(crate) struct DieQueue {
    /// Pages that wait to be read.
    pub(crate) reads: Queue,
    /// Pages that wait to be programmed, in all of its write frontiers.
    pub(crate) writes: u32,
    /// Its write frontiers that collect.
    pub(crate) collecting: u32,
    /// The write frontier whose turn it is.
    pub(crate) turn: u32,
    /// It is copying back, which a read cuts short.
    pub(crate) copies_back: bool,
}

impl DieQueue {
    fn new() -> DieQueue {
        DieQueue { reads: Queue::EMPTY, writes: 0, collecting: 0, turn: 0, copies_back: false }
    }
}

impl Drive {
    /// An empty drive. `op_percent` is spare / logical; where that leaves too little to collect
    /// into, the drive keeps two blocks a write frontier and [`op_percent`](Drive::op_percent)
    /// returns the result.
    pub fn new(
        device: &DeviceSpec,
        layout: &PageMapped,
        op_percent: f64,
    ) -> Result<Drive, DriveError> {
        let shape = Shape::new(device, layout, op_percent)?;
        let array = match (layout.suspend, device.array()) {
            (false, array) => array.without_suspend(),
            (true, array) => array,
        };
        if let Some(key) = array.suspend_key() {
            return Err(DriveError::Suspend { device: device.name.clone(), key });
        }
        let mut flash = Timeline::new(&array)?;
        flash.set_copyback(layout.copyback);
        let front = Front::new(device);
        let page_bytes = u64::from(shape.page_bytes);
        let buffer_pages = device.controller.write_buffer_bytes / page_bytes;
        let buffer = (layout.write_buffer && buffer_pages > 0).then(|| Buffer::new(buffer_pages));
        let per_frontier = shape.blocks_per_frontier;
        let first_blocks = || (0..shape.frontiers).map(|frontier| shape.first_block_of(frontier));
        Ok(Drive {
            map: Map::new(shape.logical_pages, shape.pages_end()),
            frontiers: first_blocks().map(WriteFrontier::new).collect(),
            free: first_blocks().map(|first| (first + 1..first + per_frontier).collect()).collect(),
            valid: vec![NOT_CLOSED; shape.blocks_end() as usize],
            closed: vec![0; shape.blocks_end() as usize],
            dies: (0..device.geometry.dies()).map(|_| DieQueue::new()).collect(),
            pages: Pages::default(),
            reads_straight: front.is_free_for_reads(),
            writes_straight: front.is_free_for_writes() && buffer.is_none(),
            front,
            buffer,
            counters: DriveCounters::default(),
            completions: Completions::new(),
            front_at: u64::MAX,
            completed: Vec::new(),
            waiting: VecDeque::new(),
            queue_depth: match device.controller.queue_depth {
                0 => usize::MAX,
                depth => depth as usize,
            },
            copies_back: layout.copyback && shape.row_pages == 1 && shape.parity_period == 0,
            order: 0,
            now: 0,
            layout: layout.clone(),
            flash,
            shape,
        })
    }

    /// The time that has been reached.
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.now)
    }

    /// The counters.
    pub fn counters(&self) -> DriveCounters {
        self.counters
    }

    /// Sets all counters to 0.
    pub fn clear_counters(&mut self) {
        self.counters = DriveCounters::default();
    }

    /// Requests that have not ended.
    pub fn in_flight(&self) -> usize {
        self.pages.requests() + self.waiting.len()
    }

    /// Makes ready for a request some time from now: its entry of the map.
    #[inline]
    pub fn expect(&self, offset_bytes: u64) {
        self.map.expect((offset_bytes >> self.shape.page_shift) as u32);
    }

    /// Makes ready for a write some time from now, after [`expect`](Drive::expect): the page that
    /// it replaces.
    #[inline]
    pub fn expect_write(&self, offset_bytes: u64) {
        let logical = (offset_bytes >> self.shape.page_shift) as u32;
        if logical < self.shape.logical_pages {
            self.expect_old_page(logical);
        }
    }

    /// Takes a request at `now`, which must not be before what was played nor after
    /// [`next_at`](Drive::next_at).
    #[inline(always)]
    pub fn submit(&mut self, now: Time, request: HostRequest) -> Result<(), DriveError> {
        let end_bytes = request.offset_bytes.saturating_add(request.bytes);
        if request.bytes == 0 || end_bytes > self.capacity_bytes() {
            return Err(self.refuse(&request));
        }
        self.pass_to(now.0);
        self.counters.submitted += 1;
        if self.pages.requests() < self.queue_depth {
            self.admit(now.0, &request);
        } else {
            self.waiting.push_back((now.0, request));
        }
        Ok(())
    }

    #[cold]
    fn refuse(&self, request: &HostRequest) -> DriveError {
        let HostRequest { offset_bytes, bytes, .. } = *request;
        if bytes == 0 {
            return DriveError::Empty { offset_bytes };
        }
        let end_bytes = offset_bytes.saturating_add(bytes);
        DriveError::BeyondEnd { offset_bytes, end_bytes, capacity_bytes: self.capacity_bytes() }
    }

    /// When something happens next, unless a request comes before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let flash_at = self.flash.next_at().map_or(u64::MAX, |at| at.0);
        let next = flash_at.min(self.completions.next_at()).min(self.front_at);
        (next != u64::MAX).then_some(Time(next))
    }

    /// Plays the next event and appends the requests that completed. False when nothing is under
    /// way.
    #[inline]
    pub fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let played = self.play_event(u64::MAX);
        // A request that asks nothing of the flash ends as it comes in.
        let completed = !self.completed.is_empty();
        self.hand_over(done);
        played || completed
    }

    /// Plays events, but none at `end` or later, until requests complete, which are appended. False
    /// when none completes before that.
    #[inline]
    pub fn play_to_next_end(&mut self, end: Time, done: &mut Vec<Done>) -> bool {
        while self.completed.is_empty() {
            if !self.play_event(end.0) {
                return false;
            }
        }
        self.hand_over(done);
        true
    }

    #[inline]
    fn hand_over(&mut self, done: &mut Vec<Done>) {
        if done.is_empty() {
            std::mem::swap(done, &mut self.completed);
        } else {
            done.append(&mut self.completed);
        }
    }

    /// Plays the next event that the drive has to do with, if it is before `end`.
    #[inline(always)]
    pub(crate) fn play_event(&mut self, end: u64) -> bool {
        let (completes_at, front_at) = (self.completions.next_at(), self.front_at);
        let other_at = completes_at.min(front_at);
        let fed = match self.flash.step_before(other_at.min(end)) {
            Some(step) => self.flash_went_on(step),
            None if other_at >= end => return false,
            None if completes_at <= front_at => {
                self.end_first();
                None
            }
            None => self.play_front(),
        };
        if let Some((die, accepts)) = fed {
            self.feed(die, accepts);
        }
        true
    }

    /// Takes note of what the flash has done; returns a die that takes work.
    #[inline(always)]
    fn flash_went_on(&mut self, step: Step) -> Option<(u32, Accepted)> {
        self.now = step.at;
        if let Some(work) = step.ended {
            self.work_ended(step.die, work);
            // What has ended may have let a request in that had something for this die.
            return Some((step.die, self.flash.accepts(step.die)));
        }
        Some((step.die, step.accepts))
    }

    /// Takes what comes through the front; returns the die that has something to do then.
    #[inline(always)]
    fn play_front(&mut self) -> Option<(u32, Accepted)> {
        self.pass_to(self.front_at);
        let room = self.has_room();
        let die = self.front.play(self.now, room).and_then(|page| self.page_arrived(page));
        self.front_changed();
        die.map(|die| (die, self.flash.accepts(die)))
    }

    /// Something came into the front or through it, or the room behind it has changed. What room
    /// made possible may have been ready long ago.
    #[inline]
    pub(crate) fn front_changed(&mut self) {
        self.front_at = self.front.next_at(self.has_room()).max(self.now);
    }

    /// Completes the request whose completion is next.
    #[inline(always)]
    fn end_first(&mut self) {
        let (at, request) = self.completions.pop();
        self.pass_to(at);
        self.tell(at, request);
    }

    /// A request completes for the host.
    #[inline(always)]
    fn tell(&mut self, at: u64, request: u32) {
        self.completed.push(self.pages.end_request(request, at));
        self.counters.completed += 1;
        if !self.waiting.is_empty() {
            self.admit_next();
        }
    }

    #[cold]
    fn admit_next(&mut self) {
        if let Some((since, request)) = self.waiting.pop_front() {
            self.admit(since, &request);
        }
    }

    /// Whether requests of a kind never wait in the front.
    #[inline]
    pub(crate) fn is_straight(&self, kind: AccessKind) -> bool {
        if kind == AccessKind::Read { self.reads_straight } else { self.writes_straight }
    }

    #[inline]
    pub(crate) fn pass_to(&mut self, now: u64) {
        self.now = now;
        self.flash.pass_to(Time(now));
    }

    #[inline]
    fn has_room(&self) -> bool {
        self.buffer.as_ref().is_none_or(Buffer::has_room)
    }

    /// Lets a request into the device.
    #[inline(always)]
    fn admit(&mut self, since: u64, request: &HostRequest) {
        let (shift, page_bytes) = (self.shape.page_shift, u64::from(self.shape.page_bytes));
        let logical = (request.offset_bytes >> shift) as u32;
        let cut = |at: u64| at & (page_bytes - 1) != 0;
        // Most requests are for one whole page.
        if request.bytes == page_bytes && !cut(request.offset_bytes) {
            return self.admit_pages(since, request, (logical, 1), [false; 2]);
        }
        let end_bytes = request.offset_bytes + request.bytes;
        let pages = ((end_bytes + page_bytes - 1) >> shift) as u32 - logical;
        let partial = [cut(request.offset_bytes) || (pages == 1 && cut(end_bytes)), cut(end_bytes)];
        self.admit_pages(since, request, (logical, pages), partial);
    }

    /// Lets a request in for so many pages from a logical one on, of which the first and the last
    /// may be covered in part.
    #[inline(always)]
    fn admit_pages(
        &mut self,
        since: u64,
        request: &HostRequest,
        (logical, pages): (u32, u32),
        partial: [bool; 2],
    ) {
        let place = self.pages.add_request(since, request, (logical, pages));
        match request.kind {
            AccessKind::Read => self.counters.host_pages_read += u64::from(pages),
            AccessKind::Write => self.counters.host_pages_written += u64::from(pages),
            AccessKind::Trim => return self.trim(place, request),
        }
        if self.is_straight(request.kind) {
            for page in 0..pages {
                let die = self.page_arrived(PageJob {
                    request: place,
                    logical: logical + page,
                    kind: request.kind,
                    partial: (page == 0 && partial[0]) || (page + 1 == pages && partial[1]),
                });
                if let Some(die) = die {
                    self.feed(die, self.flash.accepts(die));
                }
            }
        } else {
            let what = ((logical, pages), (request.bytes, partial));
            self.front.enter(self.now, place, request.kind, what.0, what.1);
            self.front_changed();
        }
    }

    /// Forgets the pages that the request covers whole.
    #[cold]
    fn trim(&mut self, place: u32, request: &HostRequest) {
        let page_bytes = u64::from(self.shape.page_bytes);
        let first = request.offset_bytes.div_ceil(page_bytes) as u32;
        let end = ((request.offset_bytes + request.bytes) / page_bytes) as u32;
        for logical in first..end {
            let old = self.map.forget(logical);
            self.invalidate(old);
        }
        self.end_request(place, AccessKind::Trim, self.now);
    }

    /// A page has ended, and is at the host at `through`.
    #[inline(always)]
    fn end_page(&mut self, page: u32, kind: AccessKind, through: u64) {
        if let Some(request) = self.pages.end_page(page) {
            self.end_request(request, kind, through);
        }
    }

    /// A request has ended, and is at the host at `through`.
    #[inline(always)]
    fn end_request(&mut self, request: u32, kind: AccessKind, through: u64) {
        let at = through + self.front.complete_ns();
        if at == self.now {
            self.tell(at, request);
        } else {
            self.completions.push(kind, at, request);
        }
    }

    /// A page that was read leaves over the link, later than those before it.
    #[inline(always)]
    pub(crate) fn end_read(&mut self, page: u32) {
        let through = self.front.leave(self.now, self.shape.page_bytes.into());
        self.end_page(page, AccessKind::Read, through);
    }

    /// A page is where it is acknowledged: on flash, or in the buffer.
    #[inline(always)]
    pub(crate) fn end_write(&mut self, page: u32) {
        self.end_page(page, AccessKind::Write, self.now);
    }

    /// A page has come through the front; returns the die that has something to do then.
    #[inline(always)]
    fn page_arrived(&mut self, arrived: PageJob) -> Option<u32> {
        let PageJob { request, logical, kind, partial } = arrived;
        let page = self.pages.page_of(request, logical);
        if kind == AccessKind::Read {
            self.read_page(page, logical)
        } else if partial && self.map.physical_of(logical) != NONE {
            self.read_for_merge(page, logical)
        } else {
            self.write_page(page, logical)
        }
    }

    #[inline(always)]
    fn read_page(&mut self, page: u32, logical: u32) -> Option<u32> {
        let buffered = self.buffer.as_ref().is_some_and(|buffer| buffer.holds(logical));
        let physical = self.map.physical_of(logical);
        if buffered || physical == NONE {
            self.counters.read_without_flash += 1;
            self.end_read(page);
            return None;
        }
        self.counters.read_for_host += 1;
        Some(self.queue_read(page, logical, physical))
    }

    #[cold]
    fn read_for_merge(&mut self, page: u32, logical: u32) -> Option<u32> {
        let buffered = self.buffer.as_ref().is_some_and(|buffer| buffer.holds(logical));
        if buffered {
            return self.write_page(page, logical);
        }
        self.counters.read_for_partial_writes += 1;
        self.pages.get_mut(page).merges = true;
        Some(self.queue_read(page, logical, self.map.physical_of(logical)))
    }

    #[inline(always)]
    fn queue_read(&mut self, page: u32, logical: u32, physical: u32) -> u32 {
        let in_block = physical - self.shape.block_of(physical) * self.shape.pages_per_block;
        // A page never leaves its write frontier.
        let die = self.shape.die_of(self.shape.frontier_of(logical));
        self.order = self.order.wrapping_add(1);
        let read = self.pages.get_mut(page);
        (read.row, read.order) = (self.shape.row_of(in_block), self.order);
        let queue = &mut self.dies[die as usize];
        queue.reads.push(&mut self.pages, page);
        if queue.copies_back {
            self.flash.cut(die);
        }
        die
    }

    /// Queues a page that is complete, and acknowledges it if there is a buffer.
    #[inline(always)]
    pub(crate) fn write_page(&mut self, mut page: u32, logical: u32) -> Option<u32> {
        if let Some(buffer) = &mut self.buffer {
            let new = buffer.put(logical);
            self.end_write(page);
            if !new {
                self.counters.absorbed += 1;
                return None;
            }
            page = self.pages.add_page(NONE, logical);
        }
        let frontier = self.shape.frontier_of(logical);
        self.order = self.order.wrapping_add(1);
        self.pages.get_mut(page).order = self.order;
        self.frontiers[frontier as usize].writes.push(&mut self.pages, page);
        let die = self.shape.die_of(frontier);
        self.dies[die as usize].writes += 1;
        Some(die)
    }
}
