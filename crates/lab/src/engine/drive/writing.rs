//! What a run writes, for the state before it: the writes and trims of a workload, or of several
//! flows together.

use super::host::Host;
use super::seeds::{ACCESSES, PRECONDITION, WRITERS};
use crate::error::LabError;
use crate::trace_workload::Repeated;
use serde::Serialize;
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Durability, Time};
use softflash_drive::{Done, Drive, HostRequest};
use softflash_trace::Request;
use softflash_workload::{
    Access, BlockSource, BlockWorkload, FlowWorkload, Mix, Scatter, WriteSeeds,
};

/// The workload of a run, of which the writes matter.
#[derive(Clone, Copy, Serialize)]
pub(in crate::engine) enum Writing<'a> {
    /// One workload.
    Workload(&'a BlockWorkload),
    /// Several flows.
    Flows(&'a FlowWorkload),
    /// A trace, again and again. Its drive settles by itself, so its state is kept by no key.
    Repeated(#[serde(skip)] &'a Repeated),
}

/// Writes and trims in their order.
#[derive(Clone)]
pub(super) enum Writes {
    Workload(BlockSource),
    Flows(Mix),
    Repeated(Repeated),
}

/// The names of a run's random numbers.
const SEEDS: WriteSeeds<'static> =
    WriteSeeds { accesses: ACCESSES, writers: WRITERS, settling: PRECONDITION };

/// Requests that are played to find out how much each flow writes.
const PROBED: u64 = 1 << 16;

/// The virtual time that they take at most.
const PROBED_NS: u64 = 10_000_000_000;

impl Writing<'_> {
    /// Whether anything is written.
    pub(super) fn writes(&self) -> bool {
        match self {
            Writing::Workload(workload) => workload.writes(),
            Writing::Flows(workload) => workload.writes(),
            Writing::Repeated(requests) => requests.writes(),
        }
    }
}

impl Writes {
    /// The same with their places in the order of popularity, and how these are scattered over the
    /// drive; `None` where that would change the state to which they lead.
    pub(super) fn by_rank(self) -> Option<(Writes, Scatter)> {
        match self {
            Writes::Workload(source) => {
                source.by_rank().map(|(by_rank, scatter)| (Writes::Workload(by_rank), scatter))
            }
            Writes::Flows(mix) => {
                mix.by_rank().map(|(by_rank, scatter)| (Writes::Flows(by_rank), scatter))
            }
            Writes::Repeated(_) => None,
        }
    }

    /// The same, drawn from another generator.
    pub(super) fn with_rng(self, rng: Rng) -> Writes {
        match self {
            Writes::Workload(source) => Writes::Workload(source.with_rng(rng)),
            Writes::Flows(mix) => Writes::Flows(mix.with_rng(&rng)),
            Writes::Repeated(requests) => Writes::Repeated(requests),
        }
    }

    /// The longest write, in bytes.
    pub(super) fn longest_write_bytes(&self) -> u64 {
        match self {
            Writes::Workload(source) => source.longest_write_bytes().into(),
            Writes::Flows(mix) => mix.longest_write_bytes().into(),
            Writes::Repeated(requests) => requests.longest_write_bytes(),
        }
    }

    /// The next write or trim.
    #[inline]
    pub(super) fn next(&mut self) -> Access {
        match self {
            Writes::Workload(source) => source.next(),
            Writes::Flows(mix) => mix.next(),
            Writes::Repeated(requests) => next_write(requests),
        }
    }
}

/// The next write or trim of a trace, which has writes.
fn next_write(requests: &mut Repeated) -> Access {
    loop {
        let Some(request) = requests.next() else { continue };
        if let Some(kind) = request.kind.access().filter(|kind| *kind != AccessKind::Read) {
            let bytes = u32::try_from(request.bytes).unwrap_or(u32::MAX);
            let Request { offset_bytes, device: hint, .. } = request;
            return Access { kind, offset_bytes, bytes, hint, durability: Durability::default() };
        }
    }
}

/// The writes and trims of a workload, to the places that the run writes.
pub(in crate::engine) fn writes_of(
    workload: &BlockWorkload,
    capacity_bytes: u64,
    run: &Rng,
) -> Result<BlockSource, LabError> {
    let writers = workload.of_writers().filter(|_| workload.read_fraction == 1.0);
    let (writing, name) = match &writers {
        Some(writers) => (writers, WRITERS),
        None => (workload, ACCESSES),
    };
    let source = writing.source(capacity_bytes, run.fork(name))?;
    Ok(source.without_reads(writing.trims_of_writes(), run.fork(PRECONDITION)))
}

/// The writes and trims of flows, to the places that a run with the random numbers `run` writes,
/// each flow as often as in a short run on this drive. Nothing may be under way.
pub(super) fn writes_of_flows(
    workload: &FlowWorkload,
    drive: &mut Drive,
    run: &Rng,
) -> Result<Writes, LabError> {
    let weights = count_writes(workload, drive, run)?;
    let mix = workload.writes_by_weight(&weights, drive.capacity_bytes(), run, &SEEDS)?;
    let none = || {
        let seconds = PROBED_NS / 1_000_000_000;
        LabError::Parameter(format!(
            "precondition steady: no flow writes within the first {seconds} s; use fill or overwrite:TIMES"
        ))
    };
    mix.map(Writes::Flows).ok_or_else(none)
}

/// The number of writes and trims of each flow, in a short run of all of them on the drive as it
/// is: how fast closed loops write is up to the drive.
fn count_writes(
    workload: &FlowWorkload,
    drive: &mut Drive,
    run: &Rng,
) -> Result<Vec<f64>, LabError> {
    let mut host = Host::of_flows(workload, drive.capacity_bytes(), run, drive.now())?;
    let mut writes = vec![0.0; workload.flows.len()];
    let until = drive.now().0.saturating_add(PROBED_NS);
    let (mut made, mut done) = (0, Vec::<Done>::new());
    loop {
        let next = host.next_at().filter(|&at| made < PROBED && at.max(drive.now().0) < until);
        let due = next.map(|at| at.max(drive.now().0));
        if let Some(at) = due.filter(|&at| drive.next_at().is_none_or(|event| at <= event.0)) {
            if let Some(request) = host.take(at, Some(drive)) {
                if request.kind != AccessKind::Read
                    && let Some(writes) = writes.get_mut(host.flow_of(request.tag))
                {
                    *writes += 1.0;
                }
                drive.submit(Time(at), HostRequest { ..request })?;
                made += 1;
            }
        } else if drive.step(&mut done) {
            done.drain(..).for_each(|done| host.ended(done.tag, done.at.0));
        } else {
            return Ok(writes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use softflash_workload::{Pattern, RequestSize};
    use std::collections::BTreeMap;

    const CAPACITY_BYTES: u64 = 1 << 30;

    /// The offset with the most of the next requests, none of which may be a read.
    fn most_popular(mut source: BlockSource, reads: bool) -> u64 {
        let mut requests: BTreeMap<u64, u32> = BTreeMap::new();
        for _ in 0..1000 {
            let access = source.next();
            assert!(reads || access.kind != AccessKind::Read);
            *requests.entry(access.offset_bytes).or_default() += 1;
        }
        requests.into_iter().max_by_key(|&(_, count)| count).unwrap().0
    }

    #[test]
    fn a_state_is_settled_with_the_popular_places_of_its_run() {
        let pattern = Pattern::Zipf { exponent: 2.0, scattered: true };
        let mut workload = BlockWorkload::new("w", RequestSize::Fixed(4096), pattern);
        workload.read_fraction = 0.5;
        let run = Rng::seeded(7);
        let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
        let played = workload.source(CAPACITY_BYTES, run.fork(ACCESSES)).unwrap();
        assert_eq!(most_popular(settled, false), most_popular(played, true));
        // The threads that only write have popular places of their own.
        (workload.read_fraction, workload.writers) = (1.0, 1);
        let settled = writes_of(&workload, CAPACITY_BYTES, &run).unwrap();
        let writers = workload.of_writers().unwrap();
        let played = writers.source(CAPACITY_BYTES, run.fork(WRITERS)).unwrap();
        assert_eq!(most_popular(settled, false), most_popular(played, false));
    }
}
