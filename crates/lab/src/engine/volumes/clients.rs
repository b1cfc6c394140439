//! The clients of a volume: closed loops, open arrivals, threads that only write, and traces.

use super::disk::{Counts, Disk};
use crate::cell::{Control, Limits, LoggedRequest};
use crate::engine::caps::Caps;
use crate::engine::client_loop::{self, Pace};
use crate::engine::drive::seeds::{ACCESSES, WRITERS};
use crate::engine::meter::{Completion, CountsPages, Meter, PageCounts};
use crate::engine::progress::Progress;
use crate::engine::quota::Quota;
use crate::error::LabError;
use crate::outcome::{Backlog, Outcome};
use futures_util::future::{try_join, try_join_all};
use softflash_base::random::Rng;
use softflash_base::{AccessKind, Durability, Time};
use softflash_trace::{Request, TraceError};
use softflash_workload::{Access, BlockSource, BlockWorkload, Load};
use std::cell::{Cell, RefCell};

/// The most requests that wait for a volume, which take about a gigabyte.
const MOST_WAITING: u64 = 1 << 20;

/// The clients of a run. All that are alike draw from one sequence of requests, which is that of
/// the same run on a drive of the same capacity.
pub(super) struct Clients<'a> {
    disk: &'a Disk,
    control: &'a Control<'a>,
    workload: Option<Workload<'a>>,
}

/// The requests of a workload.
struct Workload<'a> {
    of: &'a BlockWorkload,
    requests: RefCell<BlockSource>,
    /// Of the threads that only write, and how many they are.
    writes: Option<(RefCell<BlockSource>, u32)>,
    caps: RefCell<Caps>,
    rng: Rng,
}

/// The requests of a phase, as they are made and as they complete.
pub(super) struct Measured<'a> {
    disk: &'a Disk,
    control: &'a Control<'a>,
    limits: Limits,
    /// Counts at the beginning.
    base: Counts,
    meter: RefCell<Meter>,
    made: Cell<u64>,
    /// The last arrival, and the requests that had not completed then.
    last_arrival: Cell<(u64, u64)>,
    progress: Progress<'a>,
}

/// The part of a run: the warm-up until some time, or the measured part.
#[derive(Clone, Copy)]
enum Phase<'m> {
    WarmUp(Time),
    Measured(&'m Measured<'m>),
}

impl<'a> Measured<'a> {
    /// The measured part that begins now, with these counts.
    pub(super) fn new(
        disk: &'a Disk,
        meter: Meter,
        base: Counts,
        limits: Limits,
        control: &'a Control<'a>,
    ) -> Measured<'a> {
        Measured {
            disk,
            control,
            limits,
            base,
            meter: RefCell::new(meter),
            made: Cell::new(0),
            last_arrival: Cell::new((0, 0)),
            progress: Progress::new(control),
        }
    }

    /// The figures of all requests; of an open load also what had not completed at the last
    /// arrival.
    pub(super) fn outcome(self, is_open: bool) -> Outcome {
        let (meter, pages) = (self.meter.into_inner(), Pages { disk: self.disk, base: self.base });
        let ((at, waiting), made) = (self.last_arrival.get(), self.made.get());
        let backlog = (is_open && made > 0).then(|| Backlog {
            arrivals_ns: at - meter.begin_ns(),
            waiting,
            lag_ns: meter.last_ns().saturating_sub(at),
        });
        Outcome { requests: made, backlog, ..meter.outcome(&pages) }
    }

    /// The requests and the time that are left.
    fn quota(&self) -> Quota {
        let begin = Time(self.meter.borrow().begin_ns());
        Quota::share(&self.limits, begin, 0, 1)
    }

    fn arrives(&self, now: Time) -> Result<(), LabError> {
        self.made.set(self.made.get() + 1);
        let waiting = self.made.get() - self.meter.borrow().completed();
        self.last_arrival.set((now.0, waiting));
        if waiting <= MOST_WAITING {
            return Ok(());
        }
        Err(LabError::Parameter(format!(
            "{waiting} requests wait for the volume, as they arrive faster than it serves them: use \
             a lower rate (or --speed), fewer copies, or a faster device"
        )))
    }

    fn completed(&self, kind: AccessKind, (offset_bytes, bytes): (u64, u64), made_at: Time) {
        let now = self.disk.now();
        let completion = Completion { kind, at: now, latency_ns: now.since_ns(made_at), bytes };
        let pages = Pages { disk: self.disk, base: self.base };
        let begin_ns = self.meter.borrow().begin_ns();
        self.meter.borrow_mut().add(completion, &pages);
        self.progress.measured(&self.limits, Time(begin_ns), now);
        if let Some(on_request) = self.control.on_request {
            let arrival_ns = made_at.0 - begin_ns;
            on_request(&LoggedRequest {
                arrival_ns,
                start_ns: arrival_ns,
                end_ns: now.0 - begin_ns,
                kind,
                offset_bytes,
                bytes,
            });
        }
    }
}

/// The mapping units that were programmed since the beginning.
struct Pages<'a> {
    disk: &'a Disk,
    base: Counts,
}

impl CountsPages for Pages<'_> {
    fn page_counts(&self) -> PageCounts {
        let risen = self.disk.counts().since(&self.base);
        let written = risen.written;
        PageCounts { written, programmed_for_host: written, programmed: risen.programmed() }
    }
}

impl<'a> Clients<'a> {
    /// The clients of a workload; none of a trace.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the workload does not fit the volume.
    pub(super) fn new(
        disk: &'a Disk,
        workload: Option<&'a BlockWorkload>,
        rng: &Rng,
        control: &'a Control<'a>,
    ) -> Result<Clients<'a>, LabError> {
        let capacity_bytes = disk.capacity_bytes;
        let of = |workload: &'a BlockWorkload| -> Result<Workload<'a>, LabError> {
            let writes = match workload.of_writers() {
                Some(writers) => {
                    let source = writers.source(capacity_bytes, rng.fork(WRITERS))?;
                    Some((RefCell::new(source), workload.writers))
                }
                None => None,
            };
            Ok(Workload {
                of: workload,
                requests: RefCell::new(workload.source(capacity_bytes, rng.fork(ACCESSES))?),
                writes,
                caps: RefCell::new(Caps::new(&workload.rate_caps)),
                rng: rng.fork("arrivals"),
            })
        };
        Ok(Clients { disk, control, workload: workload.map(of).transpose()? })
    }

    /// Makes requests until some time, which are not measured.
    pub(super) async fn warm_up(&mut self, until: Time) -> Result<(), LabError> {
        self.work(Phase::WarmUp(until)).await
    }

    /// Makes the requests of the measured part.
    pub(super) async fn measure(&mut self, measured: &Measured<'_>) -> Result<(), LabError> {
        self.work(Phase::Measured(measured)).await
    }

    async fn work(&self, phase: Phase<'_>) -> Result<(), LabError> {
        let Some(workload) = &self.workload else { return Ok(()) };
        let quota = Cell::new(match phase {
            Phase::WarmUp(until) => Quota::until(until),
            Phase::Measured(measured) => measured.quota(),
        });
        let others = self.loads(workload, phase, &quota);
        let Some((writes, threads)) = &workload.writes else { return others.await };
        let load = Load::closed(*threads, 1);
        let writers = self.closed(&load, workload, writes, phase, &quota);
        try_join(others, writers).await.map(drop)
    }

    /// The clients of the workload's load.
    async fn loads(
        &self,
        workload: &Workload<'_>,
        phase: Phase<'_>,
        quota: &Cell<Quota>,
    ) -> Result<(), LabError> {
        let name = if matches!(phase, Phase::WarmUp(_)) { "warm-up" } else { "measured" };
        let Some(arrivals) = workload.of.load.arrivals(workload.rng.fork(name)) else {
            return self
                .closed(&workload.of.load, workload, &workload.requests, phase, quota)
                .await;
        };
        let (pace, all) = (self.pace(0), quota.get());
        let request = |_: Option<()>| {
            let access = workload.requests.borrow_mut().next();
            Ok(self.request(workload, access, phase, all.until))
        };
        client_loop::open(&pace, arrivals, all, &mut Vec::new(), request).await
    }

    /// Clients in a closed loop, which share a quota.
    async fn closed(
        &self,
        load: &Load,
        workload: &Workload<'_>,
        source: &RefCell<BlockSource>,
        phase: Phase<'_>,
        quota: &Cell<Quota>,
    ) -> Result<(), LabError> {
        let outstanding = load.outstanding().unwrap_or(1);
        let (batch, think_ns) = match *load {
            Load::Closed { batch: Some(batch), barrier: true, think_ns, .. } => (batch, think_ns),
            Load::Closed { think_ns, .. } => (1, think_ns),
            Load::Open { .. } => (1, 0),
        };
        let pace = self.pace(think_ns);
        let until = quota.get().until;
        let next = |_: usize| {
            let mut left = quota.get();
            let takes = left.take(self.disk.now());
            quota.set(left);
            takes.then(|| {
                let access = source.borrow_mut().next();
                self.request(workload, access, phase, until)
            })
        };
        let clients = outstanding / u64::from(batch.max(1));
        let work = (0..clients).map(|_| client_loop::closed(&pace, batch as usize, next));
        try_join_all(work).await.map(drop)
    }

    /// Makes a request and waits for its completion. One that a cap holds back to the end of the
    /// phase or later is not made.
    async fn request(
        &self,
        workload: &Workload<'_>,
        access: Access,
        phase: Phase<'_>,
        until: Option<Time>,
    ) -> Result<(), LabError> {
        let runtime = &self.disk.runtime;
        let held = workload.caps.borrow_mut().hold(access.kind, access.bytes.into(), runtime.now());
        if let Some(at) = held {
            runtime.sleep_until(until.map_or(at, |until| at.min(until))).await;
            if until.is_some_and(|until| at >= until) {
                return Ok(());
            }
        }
        let place = (access.offset_bytes, access.bytes.into());
        self.carry_out((access.kind, access.durability), place, phase).await
    }

    async fn carry_out(
        &self,
        (kind, durability): (AccessKind, Durability),
        (offset_bytes, bytes): (u64, u64),
        phase: Phase<'_>,
    ) -> Result<(), LabError> {
        let made_at = self.disk.now();
        if let Phase::Measured(measured) = phase {
            measured.arrives(made_at)?;
        }
        self.disk.request(kind, offset_bytes, bytes).await?;
        // A volume makes single writes durable by a flush too.
        if durability != Durability::Accepted {
            self.disk.flush().await?;
        }
        if let Phase::Measured(measured) = phase {
            measured.completed(kind, (offset_bytes, bytes), made_at);
        }
        Ok(())
    }

    /// Makes the requests of a trace at its times, and its flushes, which are not measured.
    pub(super) async fn replay(
        &self,
        measured: &Measured<'_>,
        requests: &mut dyn Iterator<Item = Result<Request, TraceError>>,
    ) -> Result<(), LabError> {
        let (begin, phase) = (self.disk.now(), Phase::Measured(measured));
        let request = || {
            let Request { at_ns, kind, offset_bytes, bytes, .. } = match requests.next()? {
                Ok(request) => request,
                Err(error) => return Some(Err(error.into())),
            };
            let carry_out = async move {
                match kind.access() {
                    Some(_) if bytes == 0 => Ok(()),
                    Some(kind) => {
                        let access = (kind, Durability::Accepted);
                        self.carry_out(access, (offset_bytes, bytes), phase).await
                    }
                    None => self.disk.flush().await,
                }
            };
            Some(Ok((begin + at_ns, carry_out)))
        };
        client_loop::timed(&self.pace(0), request).await
    }

    fn pace(&self, think_ns: u64) -> Pace<'_> {
        Pace { runtime: &self.disk.runtime, control: self.control, think_ns }
    }
}
