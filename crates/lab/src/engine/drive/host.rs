//! The requests of all streams of a run in the order of their times: a workload with its threads
//! that only write, several flows, or a trace.

use super::ahead::{Ahead, Next};
use super::foresight::Foresight;
use super::seeds::{ACCESSES, WRITERS};
use super::stream::{Belongs, Stream};
use crate::engine::caps::Caps;
use crate::error::LabError;
use crate::trace_workload::Repeated;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::{Drive, HostRequest};
use softflash_workload::{BlockWorkload, Flow, FlowWorkload, Load};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Bits of a tag for the number of a stream, above those of the client and of the log. The first
/// stream has the number 0.
const STREAM_SHIFT: u32 = 50;
const STREAM_BITS: u64 = ((1 << 12) - 1) << STREAM_SHIFT;

/// The source of requests.
pub(super) struct Host<'a> {
    first: Stream<'a>,
    /// The threads that only write, and further flows.
    others: Vec<Stream<'a>>,
    /// The bandwidth caps of each copy of a flow, if any has one.
    caps: Vec<Caps>,
    /// The limits of each flow, of its requests and of its duration in nanoseconds.
    limits: Vec<(Option<u64>, Option<u64>)>,
    /// The phase whose flows make requests, and the last one.
    phase: usize,
    last_phase: usize,
    /// Requests that a cap holds back, by their earliest time and their order of arrival.
    held: BinaryHeap<Reverse<(u64, u64)>>,
    held_requests: BTreeMap<u64, HostRequest>,
    held_so_far: u64,
}

impl<'a> Host<'a> {
    /// The requests of a workload from `begin` on.
    pub(super) fn of_workload(
        workload: &BlockWorkload,
        capacity_bytes: u64,
        rng: &Rng,
        begin: Time,
    ) -> Result<Host<'a>, LabError> {
        let mut streams = Vec::new();
        let belongs = Belongs::default();
        add_streams(&mut streams, workload, capacity_bytes, rng, begin.0, belongs)?;
        Host::of_streams(streams, vec![Caps::new(&workload.rate_caps)])
    }

    /// The requests of several flows from `begin` on.
    pub(super) fn of_flows(
        workload: &FlowWorkload,
        capacity_bytes: u64,
        rng: &Rng,
        begin: Time,
    ) -> Result<Host<'a>, LabError> {
        workload.validate()?;
        let (mut streams, mut caps) = (Vec::new(), Vec::new());
        for (number, (flow, phase)) in workload.flows.iter().zip(workload.phases()).enumerate() {
            // That of a later phase counts from the beginning of the phase.
            let begin = if phase == 0 { begin.0 } else { 0 };
            let begin_ns = begin.saturating_add(flow.start_ns);
            for copy in 0..flow.copies {
                let (own, rng) = (flow.copy(copy, capacity_bytes)?, flow.rng(rng, copy));
                let belongs = Belongs { flow: number, phase, copy: caps.len() };
                add_streams(&mut streams, &own, capacity_bytes, &rng, begin_ns, belongs)?;
                caps.push(Caps::new(&own.rate_caps));
            }
        }
        let last_phase = workload.phases().last().unwrap_or(0);
        Ok(Host { last_phase, ..Host::of_streams(streams, caps)? })
    }

    /// The requests of a trace, again and again, at the times of a load, else at its own.
    pub(super) fn of_repeated(
        requests: Option<Repeated>,
        load: Option<&Load>,
        rng: &Rng,
        begin: Time,
    ) -> Result<Host<'a>, LabError> {
        let stream = |requests| {
            let requests = Ahead::of_repeated(requests);
            match load {
                Some(load) => {
                    let arrivals = rng.fork("arrivals");
                    Stream::of_load(requests, load, arrivals, begin.0, Belongs::default())
                }
                None => Stream::of_trace(requests, begin.0),
            }
        };
        Host::of_streams(requests.map(stream).into_iter().collect(), Vec::new())
    }

    /// The requests of a trace whose time 0 is `begin`.
    pub(super) fn of_trace(requests: Ahead<'a>, begin: Time) -> Host<'a> {
        Host::new(Stream::of_trace(requests, begin.0), Vec::new(), Vec::new())
    }

    fn of_streams(mut streams: Vec<Stream<'a>>, caps: Vec<Caps>) -> Result<Host<'a>, LabError> {
        if streams.is_empty() {
            return Err(LabError::Simulation("a run without requests".to_owned()));
        }
        let first = streams.remove(0);
        let caps = if caps.iter().any(Caps::any) { caps } else { Vec::new() };
        Ok(Host::new(first, streams, caps))
    }

    fn new(first: Stream<'a>, others: Vec<Stream<'a>>, caps: Vec<Caps>) -> Host<'a> {
        Host {
            first,
            others,
            caps,
            limits: Vec::new(),
            phase: 0,
            last_phase: 0,
            held: BinaryHeap::new(),
            held_requests: BTreeMap::new(),
            held_so_far: 0,
        }
    }

    /// Foretells the lifetimes of what the only stream writes.
    pub(super) fn foretell(&mut self, foresight: Foresight<Next>) {
        assert!(self.others.is_empty(), "of several streams the drive decides the order");
        self.first.foretell(foresight);
    }

    /// Limits each flow, from `begin_ns` on, to its own number of requests and duration.
    pub(super) fn limit(
        &mut self,
        flows: &[Flow],
        capacity_bytes: u64,
        begin_ns: u64,
    ) -> Result<(), LabError> {
        let limits = flows
            .iter()
            .map(|flow| Ok((flow.most_requests(capacity_bytes)?, flow.workload.duration_ns)));
        self.limits = limits.collect::<Result<_, LabError>>()?;
        self.limit_phase(begin_ns);
        Ok(())
    }

    /// Limits the streams of the present phase.
    fn limit_phase(&mut self, begin_ns: u64) {
        let Host { first, others, limits, phase, .. } = self;
        let all = std::iter::once(first).chain(others);
        for stream in all.filter(|stream| stream.phase() == *phase) {
            if let Some((requests, duration_ns)) = limits.get(stream.flow()) {
                let until_ns = duration_ns.map(|ns| begin_ns.saturating_add(ns));
                stream.limit(*requests, until_ns);
            }
        }
    }

    /// Begins the next phase if the present one is done at a time. Without limits it never is.
    fn next_phase(&mut self, at: u64) {
        let phase = self.phase;
        let done = self.streams().filter(|stream| stream.phase() == phase).all(Stream::is_done);
        if phase == self.last_phase || self.limits.is_empty() || !done {
            return;
        }
        self.phase += 1;
        let Host { first, others, phase, .. } = self;
        let all = std::iter::once(first).chain(others);
        all.filter(|stream| stream.phase() == *phase).for_each(|stream| stream.begin(at));
        self.limit_phase(at);
    }

    fn streams(&self) -> impl Iterator<Item = &Stream<'a>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// When the requests of each flow began, in nanoseconds; `None` of those that did not.
    pub(super) fn begin_of_flows(&self, flows: usize) -> Vec<Option<u64>> {
        let of = |flow| self.streams().find(|stream| stream.flow() == flow)?.begin_ns();
        (0..flows).map(of).collect()
    }

    /// The time of the next request; `None` while all clients wait, and at the end.
    #[inline]
    pub(super) fn next_at(&self) -> Option<u64> {
        let next = match self.others.is_empty() {
            true => self.first.next_at(),
            false => self.next_of_streams().map(|(at, _)| at),
        };
        earliest(next, self.held.peek().map(|&Reverse((held, _))| held))
    }

    /// The time and the stream of the next request of several streams: of those at the same time
    /// the first stream.
    fn next_of_streams(&self) -> Option<(u64, usize)> {
        let all = self.streams().enumerate();
        all.filter_map(|(number, stream)| Some((stream.next_at()?, number))).min()
    }

    /// The stream of a number.
    fn stream(&mut self, number: usize) -> &mut Stream<'a> {
        match number.checked_sub(1).and_then(|other| self.others.get_mut(other)) {
            Some(other) => other,
            None => &mut self.first,
        }
    }

    /// The stream of a request, by its tag.
    #[inline]
    fn stream_of(&self, tag: u64) -> &Stream<'a> {
        let other = number_of(tag).checked_sub(1).and_then(|other| self.others.get(other));
        other.unwrap_or(&self.first)
    }

    /// The flow that a request belongs to, by its tag.
    #[inline]
    pub(super) fn flow_of(&self, tag: u64) -> usize {
        self.stream_of(tag).flow()
    }

    /// Whether the first stream's requests come at their own times, however long the drive takes.
    pub(super) fn is_open(&self) -> bool {
        self.first.is_open()
    }

    /// Whether each flow has reached its own limits at a time.
    pub(super) fn ended_flows(&self, flows: usize, at: u64) -> Vec<bool> {
        let of = |flow| {
            self.streams().filter(|stream| stream.flow() == flow).all(|stream| stream.has_ended(at))
        };
        (0..flows).map(of).collect()
    }

    /// Whether each flow's requests come at their own times.
    pub(super) fn open_flows(&self, flows: usize) -> Vec<bool> {
        // The threads that only write follow the stream of their flow.
        let of =
            |flow| self.streams().find(|stream| stream.flow() == flow).is_some_and(Stream::is_open);
        (0..flows).map(of).collect()
    }

    /// Whether a client submits its next request at each completion, independent of the others.
    /// Then [`answer`](Host::answer) returns it at once, without sorting by time.
    pub(super) fn answers_at_once(&self) -> bool {
        let alone = self.others.is_empty() && self.caps.is_empty() && self.limits.is_empty();
        alone && self.first.answers_at_once()
    }

    /// The next request of a client whose request has completed.
    #[inline(always)]
    pub(super) fn answer(&mut self, drive: &Drive) -> Option<HostRequest> {
        self.first.answer(drive)
    }

    /// The request to submit now; `None` if a cap holds it back, or after [an error](Host::broken).
    #[inline]
    pub(super) fn take(&mut self, now: u64, drive: Option<&Drive>) -> Option<HostRequest> {
        if !self.held.is_empty()
            && let Some(request) = self.take_held(now)
        {
            return Some(request);
        }
        let request = match self.others.is_empty() {
            true => self.first.take(drive)?,
            false => self.take_of_streams(drive)?,
        };
        if !self.caps.is_empty() {
            return self.take_unless_held(now, request);
        }
        Some(request)
    }

    fn take_of_streams(&mut self, drive: Option<&Drive>) -> Option<HostRequest> {
        let (_, number) = self.next_of_streams()?;
        let request = self.stream(number).take(drive)?;
        Some(HostRequest { tag: request.tag | (number as u64) << STREAM_SHIFT, ..request })
    }

    /// The error that ended the requests, if there is one.
    pub(super) fn broken(&mut self) -> Option<LabError> {
        self.first.broken()
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
        let copy = self.stream_of(request.tag).copy();
        let at = self.caps.get_mut(copy)?.hold(request.kind, request.bytes, Time(now))?;
        Some(at.0)
    }

    /// Handles the completion of a client's request.
    #[inline]
    pub(super) fn ended(&mut self, client: u64, at: u64) {
        match self.others.is_empty() {
            true => self.first.ended(client, at),
            false => {
                self.stream(number_of(client)).ended(client & !STREAM_BITS, at);
                if self.last_phase > 0 {
                    self.next_phase(at);
                }
            }
        }
    }
}

/// Adds the streams of a workload: that of its load, and that of the threads that only write.
fn add_streams(
    streams: &mut Vec<Stream<'_>>,
    workload: &BlockWorkload,
    capacity_bytes: u64,
    rng: &Rng,
    begin_ns: u64,
    belongs: Belongs,
) -> Result<(), LabError> {
    let arrivals = || rng.fork("arrivals");
    let source = workload.source(capacity_bytes, rng.fork(ACCESSES))?;
    streams.push(Stream::of_load(
        Ahead::of_workload(source),
        &workload.load,
        arrivals(),
        begin_ns,
        belongs,
    ));
    if let Some(writes) = workload.of_writers() {
        let source = writes.source(capacity_bytes, rng.fork(WRITERS))?;
        streams.push(Stream::of_load(
            Ahead::of_workload(source),
            &writes.load,
            arrivals(),
            begin_ns,
            belongs,
        ));
    }
    Ok(())
}

/// The number of the stream of a tag.
#[inline]
fn number_of(tag: u64) -> usize {
    ((tag & STREAM_BITS) >> STREAM_SHIFT) as usize
}

#[inline]
fn earliest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
