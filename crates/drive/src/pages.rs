//! Requests under way and their pages, in a slab, and the FIFO queues of pages.
//!
//! A page waits in one FIFO queue after the other: for its die, and in its program. The queues are
//! linked through the slab: a page is stored once, and only its number moves. Most requests have
//! one page, and share an entry with it.

use crate::request::{Done, HostRequest};
use softflash_base::{AccessKind, Time};
use softflash_mapping::NONE;

/// A request, a page of a request, or both: one cache line.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Page {
    tag: u64,
    bytes: u64,
    submitted_at: u64,
    /// Pages of the request that have not completed.
    pages_left: u32,
    kind: AccessKind,
    /// The request of the page; [`NONE`] if no request waits for it, as it is in the write buffer.
    request: u32,
    logical: u32,
    /// The next page in its queue.
    next: u32,
    /// Its order of arrival at the die: a counter that wraps.
    order: u32,
    /// The block to read from.
    block: u32,
    /// The row to read in its block.
    row: u16,
    /// The flash page to read; the stream of a page that is held back from a band.
    flash_page: u32,
    /// The class of the request's data.
    hint: u32,
    /// Why it is read.
    purpose: Purpose,
    /// What is done with it after its translation page has been read.
    then: Then,
    /// Whether its request is wide, where the shape of requests decides on their bands.
    is_wide: bool,
}

/// Why a page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// For the host.
    Host,
    /// Because a write covers a part of it.
    Merge,
    /// Because it is a page of the map.
    Map,
    /// By the scrub, with its whole flash page.
    Scrub,
    /// To be moved to another band.
    Move,
}

/// What is done with a page when its place is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Then {
    /// It is read for the host.
    Read,
    /// It is read because a write covers a part of it.
    Merge,
    /// It is written.
    Write,
}

impl Page {
    const NOTHING: Page = Page {
        tag: 0,
        bytes: 0,
        submitted_at: 0,
        pages_left: 0,
        kind: AccessKind::Read,
        request: NONE,
        logical: NONE,
        next: NONE,
        order: 0,
        block: NONE,
        row: 0,
        flash_page: NONE,
        hint: 0,
        purpose: Purpose::Host,
        then: Then::Read,
        is_wide: false,
    };
}

/// The slab of requests and pages.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    places: Vec<Page>,
    free: Vec<u32>,
    requests: usize,
    /// Pages that have arrived at a die so far: a counter that wraps.
    arrived: u32,
}

impl Pages {
    /// Adds a request for so many pages from a logical one on.
    #[inline]
    pub(crate) fn add_request(
        &mut self,
        now: u64,
        request: &HostRequest,
        (logical, pages): (u32, u32),
    ) -> u32 {
        self.requests += 1;
        let place = self.free_place();
        self.places[place as usize] = Page {
            tag: request.tag,
            bytes: request.bytes,
            submitted_at: now,
            pages_left: pages,
            kind: request.kind,
            request: if pages == 1 { place } else { NONE },
            logical,
            hint: request.hint,
            ..Page::NOTHING
        };
        place
    }

    /// The entry of a page of a request: the request's own if it is the only page.
    #[inline]
    pub(crate) fn page_of(&mut self, request: u32, logical: u32) -> u32 {
        if self.entry(request).request == request {
            return request;
        }
        let page = self.add_page(request, logical, self.hint(request));
        self.entry_mut(page).is_wide = self.is_wide(request);
        page
    }

    /// Adds a page of a request, or of none.
    pub(crate) fn add_page(&mut self, request: u32, logical: u32, hint: u32) -> u32 {
        let place = self.free_place();
        self.places[place as usize] = Page { request, logical, hint, ..Page::NOTHING };
        place
    }

    /// Adds a page of the map, which no request waits for.
    pub(crate) fn add_map_page(&mut self, logical: u32) -> u32 {
        let place = self.add_page(NONE, logical, 0);
        self.entry_mut(place).purpose = Purpose::Map;
        place
    }

    #[inline]
    fn free_place(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| self.new_place())
    }

    #[cold]
    fn new_place(&mut self) -> u32 {
        self.places.push(Page::NOTHING);
        (self.places.len() - 1) as u32
    }

    #[inline]
    fn entry(&self, page: u32) -> &Page {
        &self.places[page as usize]
    }

    #[inline]
    fn entry_mut(&mut self, page: u32) -> &mut Page {
        &mut self.places[page as usize]
    }

    /// The request of a page; [`NONE`] if none waits for it.
    pub(crate) fn request(&self, page: u32) -> u32 {
        self.entry(page).request
    }

    #[inline]
    pub(crate) fn logical(&self, page: u32) -> u32 {
        self.entry(page).logical
    }

    /// The class of a page's data.
    #[inline]
    pub(crate) fn hint(&self, page: u32) -> u32 {
        self.entry(page).hint
    }

    /// The row to read in the block of a page.
    #[inline]
    pub(crate) fn row(&self, page: u32) -> u16 {
        self.entry(page).row
    }

    /// The block to read a page from.
    #[inline]
    pub(crate) fn block(&self, page: u32) -> u32 {
        self.entry(page).block
    }

    /// Whether the request of a page is wide.
    #[inline]
    pub(crate) fn is_wide(&self, page: u32) -> bool {
        self.entry(page).is_wide
    }

    /// Sets whether the request of a page is wide.
    pub(crate) fn set_wide(&mut self, page: u32, is_wide: bool) {
        self.entry_mut(page).is_wide = is_wide;
    }

    /// Sets the stream of a page that is held back from a band.
    pub(crate) fn set_stream(&mut self, page: u32, stream: u32) {
        self.entry_mut(page).flash_page = stream;
    }

    /// The stream of a page that is held back from a band.
    pub(crate) fn stream(&self, page: u32) -> u32 {
        self.entry(page).flash_page
    }

    /// Sets the flash page to read a page from.
    pub(crate) fn set_flash_page(&mut self, page: u32, flash_page: u32) {
        self.entry_mut(page).flash_page = flash_page;
    }

    /// The flash page to read a page from.
    #[inline]
    pub(crate) fn flash_page(&self, page: u32) -> u32 {
        self.entry(page).flash_page
    }

    /// A page to program arrives at its die.
    #[inline]
    pub(crate) fn arrive(&mut self, page: u32) {
        self.arrived = self.arrived.wrapping_add(1);
        let order = self.arrived;
        self.entry_mut(page).order = order;
    }

    /// A page to read from this block arrives at its die.
    #[inline]
    pub(crate) fn arrive_to_read(&mut self, page: u32, (block, row): (u32, u16), purpose: Purpose) {
        self.arrive(page);
        let entry = self.entry_mut(page);
        (entry.block, entry.row, entry.purpose) = (block, row, purpose);
    }

    /// The order of arrival of a page at its die: a counter that wraps.
    #[inline]
    pub(crate) fn order(&self, page: u32) -> u32 {
        self.entry(page).order
    }

    /// Why a page is read.
    #[inline]
    pub(crate) fn purpose(&self, page: u32) -> Purpose {
        self.entry(page).purpose
    }

    /// Sets what is done with a page when its place is known.
    pub(crate) fn set_then(&mut self, page: u32, then: Then) {
        self.entry_mut(page).then = then;
    }

    /// What is done with a page when its place is known.
    pub(crate) fn then(&self, page: u32) -> Then {
        self.entry(page).then
    }

    /// The page behind a page in its queue; [`NONE`] behind the last.
    #[inline]
    pub(crate) fn behind(&self, page: u32) -> u32 {
        self.entry(page).next
    }

    /// Makes a page the last of its queue.
    #[inline]
    pub(crate) fn end_queue(&mut self, last: u32) {
        self.entry_mut(last).next = NONE;
    }

    /// Completes a page; returns its request if no other page of it is left.
    #[inline]
    pub(crate) fn complete_page(&mut self, page: u32) -> Option<u32> {
        let request = self.entry(page).request;
        if request != page {
            self.free.push(page);
        }
        if request == NONE {
            return None;
        }
        let left = &mut self.entry_mut(request).pages_left;
        assert!(*left > 0, "a page of request {request} ends after its last one");
        *left -= 1;
        (*left == 0).then_some(request)
    }

    /// Removes a completed request.
    #[inline]
    pub(crate) fn complete_request(&mut self, request: u32, at: u64) -> Done {
        assert!(self.requests > 0, "request {request} ends twice");
        self.requests -= 1;
        self.free.push(request);
        let &Page { tag, kind, bytes, submitted_at, .. } = self.entry(request);
        Done { tag, kind, bytes, submitted_at: Time(submitted_at), at: Time(at) }
    }

    /// Requests in the drive.
    #[inline]
    pub(crate) fn requests(&self) -> usize {
        self.requests
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.places.capacity() * size_of::<Page>() + self.free.capacity() * 4) as u64
    }
}

/// A FIFO queue of pages. A page is in one at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
}

impl Queue {
    pub(crate) const EMPTY: Queue = Queue { first: NONE, last: NONE };

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.first == NONE
    }

    /// The first page; [`NONE`] if there is none.
    #[inline]
    pub(crate) fn first(self) -> u32 {
        self.first
    }

    /// The first page; if there is none, the former last one. There must have been one.
    #[inline]
    pub(crate) fn first_or_last(self) -> u32 {
        if self.first == NONE { self.last } else { self.first }
    }

    #[inline]
    pub(crate) fn push(&mut self, pages: &mut Pages, page: u32) {
        // Whether a page waits is unpredictable, so no branch depends on it: in an empty queue, the
        // page is linked to itself for a moment.
        let alone = self.first == NONE;
        let before = if alone { page } else { self.last };
        pages.entry_mut(before).next = page;
        pages.entry_mut(page).next = NONE;
        self.first = if alone { page } else { self.first };
        self.last = page;
    }

    /// Takes the first page.
    #[inline]
    pub(crate) fn pop(&mut self, pages: &Pages) -> Option<u32> {
        let first = self.first;
        (first != NONE).then(|| {
            self.first = pages.behind(first);
            first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_base::random::Rng;
    use std::collections::VecDeque;

    fn write(tag: u64) -> HostRequest {
        HostRequest::new(tag, AccessKind::Write, 0, 4096)
    }

    #[test]
    fn lines_are_queues_of_pages_that_share_places() {
        for seed in 0..100 {
            let mut rng = Rng::seeded(seed).fork("pages");
            let mut pages = Pages::default();
            let mut queues = [Queue::EMPTY; 3];
            let mut model: [VecDeque<(u32, u64)>; 3] = Default::default();
            for tag in 0..300 {
                let at = rng.below(3) as usize;
                match rng.below(5) {
                    0 | 1 => {
                        let page = pages.add_request(tag, &write(tag), (7, 1));
                        queues[at].push(&mut pages, page);
                        model[at].push_back((page, tag));
                    }
                    // From queue to queue.
                    2 => {
                        let page = queues[at].pop(&pages);
                        let moved = model[at].pop_front();
                        assert_eq!(page, moved.map(|(page, _)| page), "seed {seed}");
                        if let Some((page, _)) = moved {
                            queues[(at + 1) % 3].push(&mut pages, page);
                        }
                        model[(at + 1) % 3].extend(moved);
                    }
                    _ => {
                        let ended =
                            queues[at].pop(&pages).and_then(|page| pages.complete_page(page));
                        let done = ended.map(|request| pages.complete_request(request, 1000).tag);
                        assert_eq!(done, model[at].pop_front().map(|(_, tag)| tag), "seed {seed}");
                    }
                }
                assert_eq!(
                    pages.requests(),
                    model.iter().map(VecDeque::len).sum::<usize>(),
                    "seed {seed}"
                );
                for (queue, model) in queues.iter().zip(&model) {
                    assert_eq!(queue.is_empty(), model.is_empty(), "seed {seed}");
                    let first = model.front().map_or(NONE, |&(page, _)| page);
                    assert_eq!(queue.first(), first, "seed {seed}");
                }
            }
        }
    }

    #[test]
    fn a_request_ends_with_the_last_of_its_pages_and_what_is_buffered_ends_none() {
        let mut pages = Pages::default();
        let request = pages.add_request(5, &write(9), (70, 2));
        let [first, second] = [70, 71].map(|logical| pages.page_of(request, logical));
        let buffered = pages.add_page(NONE, 70, 0);
        assert_eq!(pages.logical(second), 71);
        assert_eq!((pages.complete_page(second), pages.complete_page(buffered)), (None, None));
        assert_eq!(pages.complete_page(first), Some(request));
        let done = pages.complete_request(request, 25);
        assert_eq!((done.tag, done.bytes, done.latency_ns()), (9, 4096, 20));
        assert_eq!(pages.requests(), 0);
        // A single page shares the entry of its request, and entries are reused.
        let single = pages.add_request(6, &write(1), (3, 1));
        assert_eq!(pages.page_of(single, 3), single);
        assert_eq!((pages.places.len(), pages.free.len()), (4, 3));
    }
}
