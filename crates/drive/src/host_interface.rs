//! The host interface: requests pass the link and the firmware, page by page. Link and firmware are
//! servers that process one job at a time, in the order in which the jobs are ready.

use crate::spec::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec};
use crate::thermal::Heat;
use softflash_base::AccessKind;
use std::collections::VecDeque;

const SECOND_NS: u128 = 1_000_000_000;

/// The pages of a request that the firmware has not processed.
#[derive(Debug, Clone, Copy)]
struct Job {
    request: u32,
    logical: u32,
    left: u32,
    /// Whether its first and its last page are covered in part only.
    partial: [bool; 2],
    /// Whether the firmware time of the request itself is still to be spent.
    fresh: bool,
    /// When the next page is ready for the firmware.
    ready_at: u64,
    /// The interval between further pages.
    gap_ns: u64,
}

impl Job {
    fn next_page(&mut self) {
        self.partial[0] = false;
        self.fresh = false;
        self.logical += 1;
        self.left -= 1;
        self.ready_at += self.gap_ns;
    }
}

/// A FIFO queue of the requests of a kind.
#[derive(Debug)]
struct Queue {
    jobs: VecDeque<Job>,
    /// When the first page of the first job is ready; `u64::MAX` if there is none.
    first_at: u64,
}

impl Queue {
    fn new() -> Queue {
        Queue { jobs: VecDeque::new(), first_at: u64::MAX }
    }

    #[inline]
    fn push(&mut self, job: Job) {
        if self.jobs.is_empty() {
            self.first_at = job.ready_at;
        }
        self.jobs.push_back(job);
    }

    /// Removes the first page; returns its job before the removal.
    #[inline(always)]
    fn take(&mut self) -> Option<Job> {
        let first = self.jobs.front_mut()?;
        let job = *first;
        if job.left > 1 {
            first.next_page();
        } else {
            self.jobs.pop_front();
        }
        self.first_at = self.jobs.front().map_or(u64::MAX, |job| job.ready_at);
        Some(job)
    }
}

/// A page that the firmware has processed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageJob {
    pub(crate) request: u32,
    pub(crate) logical: u32,
    pub(crate) kind: AccessKind,
    /// A write that covers a part of the page.
    pub(crate) partial: bool,
    /// Whether pages of the request follow.
    pub(crate) more: bool,
}

/// The link in both directions, and the firmware.
#[derive(Debug)]
pub(crate) struct HostInterface {
    link: LinkSpec,
    controller: ControllerSpec,
    host: HostSpec,
    /// If the device has a thermal limit.
    heat: Option<Heat>,
    /// When the link is free in each direction: out of the device and into it.
    link_free: [u64; 2],
    reads: Queue,
    writes: Queue,
    in_service: Option<(u64, PageJob)>,
    /// Time of the next event; `u64::MAX` while there is none.
    event_at: u64,
    /// Whether requests in each direction never wait here.
    straight: [bool; 2],
    /// Caches the length and duration of the last transfer in each direction; most transfers have
    /// the same length.
    known: [(u64, u64); 2],
    /// Pages of reads, and of writes, that have entered the host interface.
    entered: [u64; 2],
    /// Pages of these that have passed the firmware.
    passed: [u64; 2],
}

const OUT: usize = 0;
const IN: usize = 1;

/// The direction of the data of a request.
fn direction_of(kind: AccessKind) -> usize {
    match kind {
        AccessKind::Read => OUT,
        _ => IN,
    }
}

impl HostInterface {
    /// The host interface of a device, with a write buffer behind it or without.
    pub(crate) fn new(device: &DeviceSpec, buffered: bool) -> HostInterface {
        let ControllerSpec { request_ns, read_page_ns, write_page_ns, .. } = device.controller;
        let fixed_ns = request_ns + device.host.submit_ns;
        let reads_take = fixed_ns + read_page_ns;
        let writes_take = fixed_ns + write_page_ns;
        let crosses_at_once = device.link.write_bytes_per_second == 0 && device.thermal.is_none();
        let writes_are_straight = writes_take == 0 && crosses_at_once && !buffered;
        HostInterface {
            link: device.link,
            controller: device.controller,
            host: device.host,
            heat: Heat::new(device.thermal),
            link_free: [0; 2],
            reads: Queue::new(),
            writes: Queue::new(),
            in_service: None,
            event_at: u64::MAX,
            straight: [reads_take == 0, writes_are_straight],
            known: [(0, 0); 2],
            entered: [0; 2],
            passed: [0; 2],
        }
    }

    /// Whether requests of a kind never wait in the host interface.
    #[inline]
    pub(crate) fn is_straight(&self, kind: AccessKind) -> bool {
        self.straight[direction_of(kind)]
    }

    /// The time that the host's software adds to a completion.
    #[inline]
    pub(crate) fn complete_ns(&self) -> u64 {
        self.host.complete_ns
    }

    /// Adds a request that reads or writes `pages` pages from `logical` on, `bytes` in all.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        now: u64,
        request: u32,
        kind: AccessKind,
        (logical, pages): (u32, u32),
        (bytes, partial): (u64, [bool; 2]),
    ) {
        let arrives_at = now + self.host.submit_ns;
        self.entered[direction_of(kind)] += u64::from(pages);
        let mut job = Job {
            request,
            logical,
            left: pages,
            partial,
            fresh: true,
            ready_at: arrives_at,
            gap_ns: 0,
        };
        if kind == AccessKind::Write {
            let (ends, takes_ns) = self.cross(IN, arrives_at, bytes);
            if pages > 1 {
                job.gap_ns = takes_ns / u64::from(pages);
            }
            job.ready_at = ends - job.gap_ns * u64::from(pages - 1);
            self.writes.push(job);
        } else {
            self.reads.push(job);
        }
    }

    /// Pages of a kind that have entered so far.
    pub(crate) fn entered(&self, kind: AccessKind) -> u64 {
        self.entered[direction_of(kind)]
    }

    /// A lower bound of the time at which page number `number` of its kind passes the firmware,
    /// which processes every page before it.
    pub(crate) fn passes_not_before(&self, now: u64, kind: AccessKind, number: u64) -> u64 {
        let page_ns = match kind {
            AccessKind::Read => self.controller.read_page_ns,
            _ => self.controller.write_page_ns,
        };
        let left = number.saturating_sub(self.passed[direction_of(kind)]);
        // One may be in service, and complete at any time.
        now + left.saturating_sub(1) * page_ns
    }

    /// Transfers bytes to the host; returns the end of the transfer.
    #[inline]
    pub(crate) fn leave(&mut self, now: u64, bytes: u64) -> u64 {
        let is_free = self.link.read_bytes_per_second == 0 && self.heat.is_none();
        if is_free { now } else { self.cross(OUT, now, bytes).0 }
    }

    /// Transfers bytes over the link; returns the end of the transfer, and its duration.
    #[inline]
    fn cross(&mut self, direction: usize, from: u64, bytes: u64) -> (u64, u64) {
        let rate = match direction {
            OUT => self.link.read_bytes_per_second,
            _ => self.link.write_bytes_per_second,
        };
        let medium = if self.link.half_duplex { OUT } else { direction };
        if self.known[direction].0 != bytes {
            self.known[direction] = (bytes, crossing_ns(bytes, rate));
        }
        let takes_ns = self.known[direction].1;
        let begins = self.link_free[medium].max(from);
        let ends = match &mut self.heat {
            Some(heat) => heat.add(begins, bytes).max(begins + takes_ns),
            None => begins + takes_ns,
        };
        self.link_free[medium] = ends;
        (ends, takes_ns)
    }

    /// When the next page leaves or enters service; `u64::MAX` if none does.
    #[inline]
    pub(crate) fn event_at(&self) -> u64 {
        self.event_at
    }

    /// Updates the time of the next event, after a change of the host interface or of the room in
    /// the buffer. `room`: whether the buffer has room for a written page. A page that waited for
    /// room may have been ready long ago.
    #[inline]
    pub(crate) fn update(&mut self, now: u64, room: bool) {
        let event_at = match self.in_service {
            Some((ends, _)) => ends,
            None => self.reads.first_at.min(self.writes_at(room)),
        };
        self.event_at = event_at.max(now);
    }

    #[inline]
    fn writes_at(&self, room: bool) -> u64 {
        if room { self.writes.first_at } else { u64::MAX }
    }

    /// Plays the event at [`event_at`](HostInterface::event_at): returns the page that has passed
    /// the firmware, if there is one. [`update`](HostInterface::update) follows.
    #[inline(always)]
    pub(crate) fn pass_page(&mut self, now: u64, room: bool) -> Option<PageJob> {
        let page = match self.in_service {
            Some((_, page)) => {
                self.in_service = None;
                page
            }
            None => {
                let (page, cost_ns) = self.take_next(room)?;
                if cost_ns > 0 {
                    self.in_service = Some((now + cost_ns, page));
                    return None;
                }
                page
            }
        };
        self.passed[direction_of(page.kind)] += 1;
        Some(page)
    }

    /// Removes the page that was ready first; returns it with its firmware time.
    #[inline(always)]
    fn take_next(&mut self, room: bool) -> Option<(PageJob, u64)> {
        let (queue, kind, page_ns) = if self.reads.first_at <= self.writes_at(room) {
            (&mut self.reads, AccessKind::Read, self.controller.read_page_ns)
        } else {
            (&mut self.writes, AccessKind::Write, self.controller.write_page_ns)
        };
        let Job { request, logical, left, partial, fresh, .. } = queue.take()?;
        let partial = partial[0] || (left == 1 && partial[1]);
        let request_ns = if fresh { self.controller.request_ns } else { 0 };
        let page = PageJob { request, logical, kind, partial, more: left > 1 };
        Some((page, request_ns + page_ns))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        ((self.reads.jobs.capacity() + self.writes.jobs.capacity()) * size_of::<Job>()) as u64
    }
}

/// The transfer time of bytes at a rate; a rate of 0 is no limit.
fn crossing_ns(bytes: u64, rate: u64) -> u64 {
    match rate {
        0 => 0,
        rate => (u128::from(bytes) * SECOND_NS).div_ceil(u128::from(rate)) as u64,
    }
}
