//! A sequence of requests and its times: clients in a closed loop, open arrivals, or a trace.

use super::ahead::{Ahead, Next};
use super::closed::Closed;
use super::foresight::Foresight;
use crate::error::LabError;
use softflash_base::random::Rng;
use softflash_drive::{Drive, HostRequest};
use softflash_workload::{Arrivals, Load};

/// The source of the requests of one stream.
pub(super) struct Stream<'a> {
    requests: Ahead<'a>,
    pace: Pace,
    belongs: Belongs,
    /// The time at which its requests begin: arrivals and traces count from it.
    begin_ns: u64,
    /// Requests that it still makes, and the time from which on it makes none.
    left: u64,
    until_ns: u64,
    /// Requests that it has made and that have not completed.
    under_way: u64,
    /// Whether it makes requests: not before its phase begins.
    begun: bool,
}

/// What a stream belongs to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Belongs {
    /// The number of its flow.
    pub(super) flow: usize,
    /// The phase of the run in which it makes requests.
    pub(super) phase: usize,
    /// The number of the copy of a flow, of all flows: its streams share their rate caps.
    pub(super) copy: usize,
}

enum Pace {
    Closed(Closed),
    Open { arrivals: Arrivals, next_at: u64 },
    Trace,
}

impl<'a> Stream<'a> {
    /// Requests at the times of `load`, from `begin_ns` on.
    pub(super) fn of_load(
        requests: Ahead<'a>,
        load: &Load,
        arrivals: Rng,
        begin_ns: u64,
        belongs: Belongs,
    ) -> Stream<'a> {
        let pace = match load.arrivals(arrivals) {
            Some(mut arrivals) => {
                let next_at = arrivals.next_at().0;
                Pace::Open { arrivals, next_at }
            }
            None => Pace::Closed(Closed::new(load, begin_ns)),
        };
        Stream::new(requests, pace, begin_ns, belongs)
    }

    /// The requests of a trace whose time 0 is `begin_ns`.
    pub(super) fn of_trace(requests: Ahead<'a>, begin_ns: u64) -> Stream<'a> {
        Stream::new(requests, Pace::Trace, begin_ns, Belongs::default())
    }

    fn new(requests: Ahead<'a>, pace: Pace, begin_ns: u64, belongs: Belongs) -> Stream<'a> {
        Stream {
            requests,
            pace,
            begun: belongs.phase == 0,
            belongs,
            begin_ns,
            left: u64::MAX,
            until_ns: u64::MAX,
            under_way: 0,
        }
    }

    /// Foretells the lifetimes of what it writes.
    pub(super) fn foretell(&mut self, foresight: Foresight<Next>) {
        self.requests.foretell(foresight);
    }

    /// The flow that it belongs to.
    pub(super) fn flow(&self) -> usize {
        self.belongs.flow
    }

    /// The phase in which it makes requests.
    pub(super) fn phase(&self) -> usize {
        self.belongs.phase
    }

    /// When its requests begin, in nanoseconds; `None` before its phase.
    pub(super) fn begin_ns(&self) -> Option<u64> {
        self.begun.then_some(self.begin_ns)
    }

    /// Begins its phase at a time: its `begin_ns` counted from 0 so far.
    pub(super) fn begin(&mut self, at: u64) {
        self.begun = true;
        self.begin_ns = self.begin_ns.saturating_add(at);
        if let Pace::Closed(closed) = &mut self.pace {
            closed.begin(self.begin_ns);
        }
    }

    /// Whether it makes no more requests, and all have completed.
    pub(super) fn is_done(&self) -> bool {
        self.under_way == 0 && self.next_at().is_none()
    }

    /// The copy of a flow that it belongs to.
    pub(super) fn copy(&self) -> usize {
        self.belongs.copy
    }

    /// Limits the requests from now on.
    pub(super) fn limit(&mut self, requests: Option<u64>, until_ns: Option<u64>) {
        self.left = requests.unwrap_or(u64::MAX);
        self.until_ns = until_ns.unwrap_or(u64::MAX);
    }

    /// Whether it has reached its limits at a time.
    pub(super) fn has_ended(&self, at: u64) -> bool {
        self.left == 0 || self.until_ns <= at
    }

    /// The time of the next request; `None` while all clients wait, and at the end.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        let next_at = match &self.pace {
            Pace::Closed(closed) => closed.next_at(),
            Pace::Open { next_at, .. } => Some(self.begin_ns.saturating_add(*next_at)),
            Pace::Trace => self.requests.at_ns().map(|at| self.begin_ns + at),
        };
        next_at.filter(|&at| self.begun && self.left > 0 && at < self.until_ns)
    }

    /// Whether requests come at their own times, however long the drive takes.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.pace, Pace::Closed(_))
    }

    /// Whether a client submits its next request at each completion, independent of the others.
    pub(super) fn answers_at_once(&self) -> bool {
        matches!(&self.pace, Pace::Closed(closed) if closed.answers_at_once())
    }

    /// The next request, without a look at clients and times.
    #[inline(always)]
    pub(super) fn answer(&mut self, drive: &Drive) -> Option<HostRequest> {
        self.requests.take(Some(drive))
    }

    /// The request to submit now, with its client as tag; `None` at the end, or after
    /// [an error](Stream::broken).
    #[inline]
    pub(super) fn take(&mut self, drive: Option<&Drive>) -> Option<HostRequest> {
        let client = match &mut self.pace {
            Pace::Closed(closed) => closed.take(),
            Pace::Open { arrivals, next_at } => {
                *next_at = arrivals.next_at().0;
                0
            }
            Pace::Trace => 0,
        };
        self.left = self.left.saturating_sub(1);
        self.under_way += 1;
        Some(HostRequest { tag: client, ..self.requests.take(drive)? })
    }

    /// The error that ended the requests, if there is one.
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.requests.broken()
    }

    /// Handles the completion of a client's request.
    #[inline]
    pub(super) fn ended(&mut self, client: u64, at: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Pace::Closed(closed) = &mut self.pace {
            closed.ended(client, at);
        }
    }
}
