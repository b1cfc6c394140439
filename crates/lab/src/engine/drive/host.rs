//! The times of requests: closed loops of clients, open arrivals, or a trace.

use super::ahead::Ahead;
use crate::engine::caps::Caps;
use crate::error::LabError;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::{Drive, HostRequest};
use softflash_workload::{Arrivals, BlockWorkload, Load};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// The source of requests.
pub(super) struct Host<'a> {
    requests: Ahead<'a>,
    pace: Pace,
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

/// Clients in a closed loop.
struct Closed {
    /// The times at which clients submit their next request; in time order, as all clients have the
    /// same think time.
    ready: VecDeque<(u64, u64)>,
    think_ns: u64,
    /// With a barrier: the requests of a batch, and those of each batch that have not completed.
    barrier: Option<(u32, Vec<u32>)>,
}

impl<'a> Host<'a> {
    pub(super) fn of_workload(
        requests: Ahead<'a>,
        workload: &BlockWorkload,
        rng: &Rng,
    ) -> Host<'a> {
        let pace = match (&workload.load, workload.load.arrivals(rng.fork("arrivals"))) {
            (_, Some(mut arrivals)) => {
                let next_at = arrivals.next_at().0;
                Pace::Open { arrivals, next_at }
            }
            (load, None) => Pace::Closed(Closed::new(load)),
        };
        let caps = Some(Caps::new(&workload.rate_caps)).filter(Caps::any);
        Host { caps, ..Host::new(requests, pace) }
    }

    pub(super) fn of_trace(requests: Ahead<'a>) -> Host<'a> {
        Host::new(requests, Pace::Trace)
    }

    fn new(requests: Ahead<'a>, pace: Pace) -> Host<'a> {
        Host {
            requests,
            pace,
            caps: None,
            held: BinaryHeap::new(),
            held_requests: BTreeMap::new(),
            held_so_far: 0,
        }
    }

    /// The time of the next request; `None` while all clients wait, and at the end of a trace.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = match &self.pace {
            Pace::Closed(closed) => closed.ready.front().map(|&(at, _)| at),
            Pace::Open { next_at, .. } => Some(*next_at),
            Pace::Trace => self.requests.at_ns(),
        };
        match self.held.peek() {
            None => next,
            Some(&Reverse((held, _))) => Some(next.map_or(held, |next| next.min(held))),
        }
    }

    /// Whether a client submits its next request at each completion, independent of the others.
    /// Then [`answer`](Host::answer) returns it at once, without sorting by time.
    pub(super) fn answers_at_once(&self) -> bool {
        let at_once = |closed: &Closed| closed.think_ns == 0 && closed.barrier.is_none();
        matches!(&self.pace, Pace::Closed(closed) if at_once(closed)) && self.caps.is_none()
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
        let client = match &mut self.pace {
            Pace::Closed(closed) => closed.ready.pop_front().map_or(0, |(_, client)| client),
            Pace::Open { arrivals, next_at } => {
                *next_at = arrivals.next_at().0;
                0
            }
            Pace::Trace => 0,
        };
        let mut request = self.requests.take(drive)?;
        request.tag = client;
        if self.caps.is_some() {
            return self.take_unless_held(now, request);
        }
        Some(request)
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
        if let Pace::Closed(closed) = &mut self.pace {
            closed.ended(client, at);
        }
    }
}

impl Closed {
    fn new(load: &Load) -> Closed {
        let outstanding = load.outstanding().unwrap_or(1);
        let (think_ns, barrier) = match *load {
            Load::Closed { think_ns, batch: Some(batch), barrier: true, .. } => {
                let batches = outstanding / u64::from(batch);
                (think_ns, Some((batch, vec![batch; batches as usize])))
            }
            Load::Closed { think_ns, .. } => (think_ns, None),
            Load::Open { .. } => (0, None),
        };
        Closed { ready: (0..outstanding).map(|client| (0, client)).collect(), think_ns, barrier }
    }

    #[inline]
    fn ended(&mut self, client: u64, at: u64) {
        let at = at + self.think_ns;
        let Some((batch, left)) = &mut self.barrier else {
            self.ready.push_back((at, client));
            return;
        };
        let first = client - client % u64::from(*batch);
        let Some(left) = left.get_mut((client / u64::from(*batch)) as usize) else { return };
        *left -= 1;
        if *left == 0 {
            *left = *batch;
            self.ready.extend((first..first + u64::from(*batch)).map(|client| (at, client)));
        }
    }
}
