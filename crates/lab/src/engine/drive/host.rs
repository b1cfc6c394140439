//! When requests are made: by clients that wait for theirs, or at times of their own.

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
    /// The caps on bytes a second, if there are any.
    caps: Option<Caps>,
    /// Requests that a cap holds back, by when they may be made and in the order they came.
    held: BinaryHeap<Reverse<(u64, u64)>>,
    held_requests: BTreeMap<u64, HostRequest>,
    held_so_far: u64,
}

enum Pace {
    Closed(Closed),
    Open { arrivals: Arrivals, next_at: u64 },
    Trace,
}

/// Clients that wait.
struct Closed {
    /// Clients that make a request, and when; in order of time, as all think for equally long.
    ready: VecDeque<(u64, u64)>,
    think_ns: u64,
    /// Requests of a batch that is waited for as a whole, and those of each batch that have not
    /// ended.
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

    /// When the next request is made; `None` while all clients wait, and at the end of a trace.
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

    /// Whether a client makes its next request as soon as one completes, whatever the others do:
    /// then it can be [asked](Host::answer) for it there and then, and need not be put into an
    /// order of time first.
    pub(super) fn answers_at_once(&self) -> bool {
        let at_once = |closed: &Closed| closed.think_ns == 0 && closed.barrier.is_none();
        matches!(&self.pace, Pace::Closed(closed) if at_once(closed)) && self.caps.is_none()
    }

    /// The next request of the client whose request has just completed.
    #[inline(always)]
    pub(super) fn answer(&mut self, drive: &Drive) -> Option<HostRequest> {
        self.requests.take(drive)
    }

    /// The request that is made now; none if a cap holds it back, or if there is none because of
    /// [an error](Host::broken).
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

    /// Why there was no request to take, if it is an error.
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.requests.broken()
    }

    /// A request that was held back and may be made now.
    fn take_held(&mut self, now: u64) -> Option<HostRequest> {
        let &Reverse((at, place)) = self.held.peek()?;
        if at > now {
            return None;
        }
        self.held.pop();
        self.held_requests.remove(&place)
    }

    /// A request, unless a cap holds it back.
    fn take_unless_held(&mut self, now: u64, request: HostRequest) -> Option<HostRequest> {
        let Some(at) = self.hold(now, &request) else { return Some(request) };
        self.held.push(Reverse((at, self.held_so_far)));
        self.held_requests.insert(self.held_so_far, request);
        self.held_so_far += 1;
        None
    }

    /// Until when a request is held back, if it is.
    #[inline]
    fn hold(&mut self, now: u64, request: &HostRequest) -> Option<u64> {
        let at = self.caps.as_mut()?.hold(request.kind, request.bytes, Time(now))?;
        Some(at.0)
    }

    /// A request of a client has ended.
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
