//! The log of the requests of the measured part.

use crate::cell::{LoggedRequest, OnRequest};
use softflash_drive::{AccessKind, Done, HostRequest};
use std::collections::VecDeque;

/// Bits of a tag for the place of a request in the log, above those of the client. No run has so
/// many requests at once.
const PLACE_SHIFT: u32 = 24;
const PLACE_BITS: u64 = ((1 << 26) - 1) << PLACE_SHIFT;

/// Requests that have not completed. Their times are known only when they have.
pub(super) struct Log<'c> {
    on_request: OnRequest<'c>,
    begin_ns: u64,
    /// Requests that the drive takes at once, and those that it has taken.
    queue_depth: u64,
    taken: u64,
    /// Places of the requests that the drive has not taken; 0 for one before the measured part.
    waiting: VecDeque<u32>,
    open: Vec<Open>,
    free: Vec<u32>,
}

/// A request that has not completed.
#[derive(Clone, Copy)]
struct Open {
    arrival_ns: u64,
    start_ns: u64,
    kind: AccessKind,
    offset_bytes: u64,
    bytes: u64,
}

impl<'c> Log<'c> {
    /// The log of a run that begins with so many requests in flight, on a drive that takes
    /// `queue_depth` requests at once, any number if it is 0.
    pub(super) fn new(
        on_request: OnRequest<'c>,
        begin_ns: u64,
        queue_depth: u32,
        in_flight: usize,
    ) -> Log<'c> {
        let queue_depth = if queue_depth == 0 { u64::MAX } else { queue_depth.into() };
        let taken = (in_flight as u64).min(queue_depth);
        let waiting = (taken..in_flight as u64).map(|_| 0).collect();
        Log {
            on_request,
            begin_ns,
            queue_depth,
            taken,
            waiting,
            open: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Notes a request; returns its tag, which names its place too.
    pub(super) fn arrives(&mut self, at: u64, request: &HostRequest) -> u64 {
        let &HostRequest { kind, offset_bytes, bytes, .. } = request;
        let open = Open { arrival_ns: at, start_ns: at, kind, offset_bytes, bytes };
        let place = self.free.pop().unwrap_or_else(|| {
            self.open.push(open);
            self.open.len() as u32
        });
        if let Some(kept) = self.at(place) {
            *kept = open;
        }
        if self.taken < self.queue_depth {
            self.taken += 1;
        } else {
            self.waiting.push_back(place);
        }
        request.tag | (u64::from(place) << PLACE_SHIFT)
    }

    /// Reports a completed request. The drive takes the next one that waits.
    pub(super) fn ended(&mut self, done: &Done) {
        let at = done.at.0;
        match self.waiting.pop_front() {
            Some(next) => self.at(next).into_iter().for_each(|open| open.start_ns = at),
            None => self.taken -= 1,
        }
        let place = ((done.tag & PLACE_BITS) >> PLACE_SHIFT) as u32;
        let begin_ns = self.begin_ns;
        let Some(&mut Open { arrival_ns, start_ns, kind, offset_bytes, bytes }) = self.at(place)
        else {
            return;
        };
        self.free.push(place);
        (self.on_request)(&LoggedRequest {
            arrival_ns: arrival_ns - begin_ns,
            start_ns: start_ns - begin_ns,
            end_ns: at - begin_ns,
            kind,
            offset_bytes,
            bytes,
        });
    }

    /// Places count from 1.
    fn at(&mut self, place: u32) -> Option<&mut Open> {
        self.open.get_mut(place.checked_sub(1)? as usize)
    }
}

/// A tag without the place in the log.
#[inline]
pub(super) fn client_of(tag: u64) -> u64 {
    tag & !PLACE_BITS
}
