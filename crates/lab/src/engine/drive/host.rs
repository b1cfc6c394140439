//! The times of requests: closed loops of clients, open arrivals, or a trace; and threads that only
//! write, beside them.

use super::ahead::Ahead;
use super::closed::Closed;
use super::seeds::{ACCESSES, WRITERS};
use crate::engine::caps::Caps;
use crate::error::LabError;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::{Drive, HostRequest};
use softflash_workload::{Arrivals, BlockWorkload};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Marks requests of the threads that only write.
const OF_WRITER: u64 = 1 << 62;

/// The source of requests.
pub(super) struct Host<'a> {
    requests: Ahead<'a>,
    pace: Pace,
    writers: Option<Writers<'a>>,
    /// The time at which requests begin: arrivals and traces count from it.
    begin_ns: u64,
    /// The bandwidth caps, if there are any.
    caps: Option<Caps>,
    /// Requests that a cap holds back, by their earliest time and their order of arrival.
    held: BinaryHeap<Reverse<(u64, u64)>>,
    held_requests: BTreeMap<u64, HostRequest>,
    held_so_far: u64,
}

enum Pace {
    Closed(Closed),
    Open { arrivals: Arrivals, next_at: u64 },
    Trace,
}

/// Threads that only write, beside the others.
struct Writers<'a> {
    requests: Ahead<'a>,
    threads: Closed,
}

impl<'a> Host<'a> {
    /// The requests of a workload from `begin` on.
    pub(super) fn of_workload(
        workload: &BlockWorkload,
        capacity_bytes: u64,
        rng: &Rng,
        begin: Time,
    ) -> Result<Host<'a>, LabError> {
        let source = workload.source(capacity_bytes, rng.fork(ACCESSES))?;
        let pace = match workload.load.arrivals(rng.fork("arrivals")) {
            Some(mut arrivals) => {
                let next_at = arrivals.next_at().0;
                Pace::Open { arrivals, next_at }
            }
            None => Pace::Closed(Closed::new(&workload.load)),
        };
        let writers = match workload.of_writers() {
            Some(writes) => {
                let source = writes.source(capacity_bytes, rng.fork(WRITERS))?;
                let requests = Ahead::of_workload(source);
                Some(Writers { requests, threads: Closed::new(&writes.load) })
            }
            None => None,
        };
        let caps = Some(Caps::new(&workload.rate_caps)).filter(Caps::any);
        Ok(Host { caps, writers, ..Host::new(Ahead::of_workload(source), pace, begin) })
    }

    /// The requests of a trace whose time 0 is `begin`.
    pub(super) fn of_trace(requests: Ahead<'a>, begin: Time) -> Host<'a> {
        Host::new(requests, Pace::Trace, begin)
    }

    fn new(requests: Ahead<'a>, pace: Pace, begin: Time) -> Host<'a> {
        Host {
            requests,
            pace,
            writers: None,
            begin_ns: begin.0,
            caps: None,
            held: BinaryHeap::new(),
            held_requests: BTreeMap::new(),
            held_so_far: 0,
        }
    }

    /// The time of the next request; `None` while all clients wait, and at the end of a trace.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = earliest(self.of_pace_at(), self.of_writers_at());
        earliest(next, self.held.peek().map(|&Reverse((held, _))| held))
    }

    #[inline]
    fn of_pace_at(&self) -> Option<u64> {
        match &self.pace {
            Pace::Closed(closed) => closed.next_at(),
            Pace::Open { next_at, .. } => Some(self.begin_ns + next_at),
            Pace::Trace => self.requests.at_ns().map(|at| self.begin_ns + at),
        }
    }

    #[inline]
    fn of_writers_at(&self) -> Option<u64> {
        self.writers.as_ref().and_then(|writers| writers.threads.next_at())
    }

    /// Whether requests come at their own times, however long the drive takes.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.pace, Pace::Closed(_))
    }

    /// Whether a client submits its next request at each completion, independent of the others.
    /// Then [`answer`](Host::answer) returns it at once, without sorting by time.
    pub(super) fn answers_at_once(&self) -> bool {
        matches!(&self.pace, Pace::Closed(closed) if closed.answers_at_once())
            && self.caps.is_none()
            && self.writers.is_none()
    }

    /// The next request of a client whose request has completed.
    #[inline(always)]
    pub(super) fn answer(&mut self, drive: &Drive) -> Option<HostRequest> {
        self.requests.take(drive)
    }

    /// The request to submit now; `None` if a cap holds it back, or after [an error](Host::broken).
    #[inline]
    pub(super) fn take(&mut self, now: u64, drive: &Drive) -> Option<HostRequest> {
        if !self.held.is_empty()
            && let Some(request) = self.take_held(now)
        {
            return Some(request);
        }
        let request = match self.take_of_writers(drive) {
            Some(request) => request,
            None => self.take_of_pace(drive)?,
        };
        if self.caps.is_some() {
            return self.take_unless_held(now, request);
        }
        Some(request)
    }

    #[inline]
    fn take_of_pace(&mut self, drive: &Drive) -> Option<HostRequest> {
        let client = match &mut self.pace {
            Pace::Closed(closed) => closed.take(),
            Pace::Open { arrivals, next_at } => {
                *next_at = arrivals.next_at().0;
                0
            }
            Pace::Trace => 0,
        };
        Some(HostRequest { tag: client, ..self.requests.take(drive)? })
    }

    /// The next request of the threads that only write, if it is theirs.
    #[inline]
    fn take_of_writers(&mut self, drive: &Drive) -> Option<HostRequest> {
        let at = self.of_writers_at()?;
        if self.of_pace_at().is_some_and(|of_pace| of_pace <= at) {
            return None;
        }
        let Writers { requests, threads } = self.writers.as_mut()?;
        Some(HostRequest { tag: threads.take() | OF_WRITER, ..requests.take(drive)? })
    }

    /// The error that ended the requests, if there is one.
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.requests.broken()
    }

    /// A held request that may be submitted now.
    fn take_held(&mut self, now: u64) -> Option<HostRequest> {
        let &Reverse((at, place)) = self.held.peek()?;
        if at > now {
            return None;
        }
        self.held.pop();
        self.held_requests.remove(&place)
    }

    /// Returns a request, unless a cap holds it back.
    fn take_unless_held(&mut self, now: u64, request: HostRequest) -> Option<HostRequest> {
        let Some(at) = self.hold(now, &request) else { return Some(request) };
        self.held.push(Reverse((at, self.held_so_far)));
        self.held_requests.insert(self.held_so_far, request);
        self.held_so_far += 1;
        None
    }

    /// The time until which a request is held back, if it is.
    #[inline]
    fn hold(&mut self, now: u64, request: &HostRequest) -> Option<u64> {
        let at = self.caps.as_mut()?.hold(request.kind, request.bytes, Time(now))?;
        Some(at.0)
    }

    /// Handles the completion of a client's request.
    #[inline]
    pub(super) fn ended(&mut self, client: u64, at: u64) {
        match (&mut self.writers, &mut self.pace) {
            (Some(writers), _) if client & OF_WRITER != 0 => {
                writers.threads.ended(client & !OF_WRITER, at);
            }
            (_, Pace::Closed(closed)) => closed.ended(client, at),
            _ => {}
        }
    }
}

#[inline]
fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
