//! The state machine of a drive: takes requests, plays events, returns completions.

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
    pub(crate) blocks: Blocks,
    pub(crate) dies: Vec<DieQueue>,
    pub(crate) pages: Pages,
    pub(crate) front: Front,
    pub(crate) buffer: Option<Buffer>,
    pub(crate) counters: DriveCounters,
    pub(crate) completions: Completions,
    pub(crate) host: HostQueue,
    shortcuts: Shortcuts,
    /// Pages are moved one by one inside their die.
    pub(crate) copies_back: bool,
    pub(crate) order: u32,
    pub(crate) now: u64,
}

/// The blocks of the drive: which are open, erased, or can be collected.
pub(crate) struct Blocks {
    pub(crate) frontiers: Vec<WriteFrontier>,
    /// Erased blocks of each write frontier, the first to be used first.
    pub(crate) free: Vec<VecDeque<u32>>,
    /// Valid pages of each block; [`NOT_CLOSED`] is added unless it can be collected.
    pub(crate) valid: Vec<u16>,
    /// When each block was closed; see [`crate::policy`].
    pub(crate) closed: Vec<u32>,
}

/// The host's side of the drive.
pub(crate) struct HostQueue {
    /// Time of the next event of the front; `u64::MAX` while it is idle.
    front_at: u64,
    /// Completed requests that have not been returned.
    pub(crate) completed: Vec<Done>,
    /// Requests beyond the queue depth.
    waiting: VecDeque<(u64, HostRequest)>,
    queue_depth: usize,
}

/// Whether requests of a kind never wait in the front.
struct Shortcuts {
    reads_straight: bool,
    writes_straight: bool,
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
    /// Whether it is copying back; a read cuts that short.
    pub(crate) copies_back: bool,
}

impl DieQueue {
    fn new() -> DieQueue {
        DieQueue { reads: Queue::EMPTY, writes: 0, collecting: 0, turn: 0, copies_back: false }
    }
}

impl Drive {
    /// An empty drive. `op_percent` is spare / logical; if that leaves too little space for
    /// collection, the drive reserves two blocks for each write frontier and
    /// [`op_percent`](Drive::op_percent) returns the result.
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
            blocks: Blocks {
                frontiers: first_blocks().map(WriteFrontier::new).collect(),
                free: first_blocks()
                    .map(|first| (first + 1..first + per_frontier).collect())
                    .collect(),
                valid: vec![NOT_CLOSED; shape.blocks_end() as usize],
                closed: vec![0; shape.blocks_end() as usize],
            },
            dies: (0..device.geometry.dies()).map(|_| DieQueue::new()).collect(),
            pages: Pages::default(),
            shortcuts: Shortcuts {
                reads_straight: front.is_free_for_reads(),
                writes_straight: front.is_free_for_writes() && buffer.is_none(),
            },
            front,
            buffer,
            counters: DriveCounters::default(),
            completions: Completions::new(),
            host: HostQueue {
                front_at: u64::MAX,
                completed: Vec::new(),
                waiting: VecDeque::new(),
                queue_depth: match device.controller.queue_depth {
                    0 => usize::MAX,
                    depth => depth as usize,
                },
            },
            copies_back: layout.copyback && shape.row_pages == 1 && shape.parity_period == 0,
            order: 0,
            now: 0,
            layout: layout.clone(),
            flash,
            shape,
        })
    }

    /// The current virtual time.
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

    /// Requests that have not completed.
    pub fn in_flight(&self) -> usize {
        self.pages.requests() + self.host.waiting.len()
    }

    /// Prefetches the map entry of a later request.
    #[inline]
    pub fn expect(&self, offset_bytes: u64) {
        self.map.expect((offset_bytes >> self.shape.page_shift) as u32);
    }

    /// Prefetches the state of the page that a later write replaces. [`expect`](Drive::expect)
    /// comes first.
    #[inline]
    pub fn expect_write(&self, offset_bytes: u64) {
        let logical = (offset_bytes >> self.shape.page_shift) as u32;
        if logical < self.shape.logical_pages {
            self.expect_old_page(logical);
        }
    }

    /// Submits a request at `now`, which must not be before the current time nor after
    /// [`next_at`](Drive::next_at).
    #[inline(always)]
    pub fn submit(&mut self, now: Time, request: HostRequest) -> Result<(), DriveError> {
        let end_bytes = request.offset_bytes.saturating_add(request.bytes);
        if request.bytes == 0 || end_bytes > self.capacity_bytes() {
            return Err(self.refuse(&request));
        }
        self.pass_to(now.0);
        self.counters.submitted += 1;
        if self.pages.requests() < self.host.queue_depth {
            self.admit(now.0, &request);
        } else {
            self.host.waiting.push_back((now.0, request));
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

    /// The time of the next event, unless a request is submitted before.
    #[inline]
    pub fn next_at(&self) -> Option<Time> {
        let flash_at = self.flash.next_at().map_or(u64::MAX, |at| at.0);
        let next = flash_at.min(self.completions.next_at()).min(self.host.front_at);
        (next != u64::MAX).then_some(Time(next))
    }

    /// Plays the next event and appends the completed requests. False when nothing is under way.
    #[inline]
    pub fn step(&mut self, done: &mut Vec<Done>) -> bool {
        let played = self.play_event(u64::MAX);
        // A request without flash operations completes on submission.
        let completed = !self.host.completed.is_empty();
        self.move_completions(done);
        played || completed
    }

    /// Plays the events before `end` until requests complete, and appends those. False if none
    /// completes before `end`.
    #[inline]
    pub fn play_to_next_completion(&mut self, end: Time, done: &mut Vec<Done>) -> bool {
        while self.host.completed.is_empty() {
            if !self.play_event(end.0) {
                return false;
            }
        }
        self.move_completions(done);
        true
    }

    #[inline]
    fn move_completions(&mut self, done: &mut Vec<Done>) {
        if done.is_empty() {
            std::mem::swap(done, &mut self.host.completed);
        } else {
            done.append(&mut self.host.completed);
        }
    }

    /// Plays the next event of flash, front or completions, if it is before `end`.
    #[inline(always)]
    pub(crate) fn play_event(&mut self, end: u64) -> bool {
        let (completes_at, front_at) = (self.completions.next_at(), self.host.front_at);
        let other_at = completes_at.min(front_at);
        let fed = match self.flash.step_before(other_at.min(end)) {
            Some(step) => self.on_flash_step(step),
            None if other_at >= end => return false,
            None if completes_at <= front_at => {
                self.complete_first();
                None
            }
            None => self.play_front(),
        };
        if let Some((die, accepts)) = fed {
            self.feed(die, accepts);
        }
        true
    }

    /// Handles a step of the flash; returns its die with the kinds of work that it accepts.
    #[inline(always)]
    fn on_flash_step(&mut self, step: Step) -> Option<(u32, Accepted)> {
        self.now = step.at;
        if let Some(work) = step.ended {
            self.work_completed(step.die, work);
            // The completion may have admitted a request that has work for this die.
            return Some((step.die, self.flash.accepts(step.die)));
        }
        Some((step.die, step.accepts))
    }

    /// Plays the next event of the front; returns the die that has new work.
    #[inline(always)]
    fn play_front(&mut self) -> Option<(u32, Accepted)> {
        self.pass_to(self.host.front_at);
        let room = self.has_room();
        let die = self.front.play(self.now, room).and_then(|page| self.page_arrived(page));
        self.front_changed();
        die.map(|die| (die, self.flash.accepts(die)))
    }

    /// Updates the time of the front's next event, after a change of the front or of the room in
    /// the buffer. A page that waited for room may have been ready long ago.
    #[inline]
    pub(crate) fn front_changed(&mut self) {
        self.host.front_at = self.front.next_at(self.has_room()).max(self.now);
    }

    /// Completes the request with the next pending completion.
    #[inline(always)]
    fn complete_first(&mut self) {
        let (at, request) = self.completions.pop();
        self.pass_to(at);
        self.complete(at, request);
    }

    /// A request completes for the host.
    #[inline(always)]
    fn complete(&mut self, at: u64, request: u32) {
        self.host.completed.push(self.pages.complete_request(request, at));
        self.counters.completed += 1;
        if !self.host.waiting.is_empty() {
            self.admit_next();
        }
    }

    #[cold]
    fn admit_next(&mut self) {
        if let Some((since, request)) = self.host.waiting.pop_front() {
            self.admit(since, &request);
        }
    }

    /// Whether requests of a kind never wait in the front.
    #[inline]
    pub(crate) fn is_straight(&self, kind: AccessKind) -> bool {
        if kind == AccessKind::Read {
            self.shortcuts.reads_straight
        } else {
            self.shortcuts.writes_straight
        }
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

    /// Admits a request to the device.
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

    /// Unmaps the pages that the request covers as a whole.
    #[cold]
    fn trim(&mut self, place: u32, request: &HostRequest) {
        let page_bytes = u64::from(self.shape.page_bytes);
        let first = request.offset_bytes.div_ceil(page_bytes) as u32;
        let end = ((request.offset_bytes + request.bytes) / page_bytes) as u32;
        for logical in first..end {
            let old = self.map.forget(logical);
            self.invalidate(old);
        }
        self.complete_request(place, AccessKind::Trim, self.now);
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
        let at = through + self.front.complete_ns();
        if at == self.now {
            self.complete(at, request);
        } else {
            self.completions.push(kind, at, request);
        }
    }

    /// Transfers a page that was read to the host, after those before it.
    #[inline(always)]
    pub(crate) fn complete_read(&mut self, page: u32) {
        let through = self.front.leave(self.now, self.shape.page_bytes.into());
        self.complete_page(page, AccessKind::Read, through);
    }

    /// Acknowledges a written page, which is on flash or in the buffer.
    #[inline(always)]
    pub(crate) fn complete_write(&mut self, page: u32) {
        self.complete_page(page, AccessKind::Write, self.now);
    }

    /// Handles a page that has passed the front; returns the die that has new work.
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
            self.complete_read(page);
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
            self.complete_write(page);
            if !new {
                self.counters.absorbed += 1;
                return None;
            }
            page = self.pages.add_page(NONE, logical);
        }
        let frontier = self.shape.frontier_of(logical);
        self.order = self.order.wrapping_add(1);
        self.pages.get_mut(page).order = self.order;
        self.blocks.frontiers[frontier as usize].writes.push(&mut self.pages, page);
        let die = self.shape.die_of(frontier);
        self.dies[die as usize].writes += 1;
        Some(die)
    }
}
