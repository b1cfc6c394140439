//! Runs block workloads and traces on a conventional drive.

mod ahead;
mod closed;
mod course;
mod flows;
#[cfg(test)]
mod flows_tests;
pub(super) mod foresight;
mod host;
mod log;
mod random_writes;
pub(super) mod seeds;
mod sets;
mod settle;
mod standstill;
pub(super) mod state;
mod stream;
#[cfg(test)]
mod tests;
pub(super) mod writing;

use crate::cell::{Cell, Control, Limits};
use crate::engine::limits::{add_limits, add_programmed_bytes, add_programmed_share};
use crate::engine::meter::{Completion, CountsPages, PageCounts};
use crate::engine::progress::share_of_preparation;
use crate::error::LabError;
use crate::layout::Sets;
use crate::outcome::{ASKED_OP_PERCENT, Outcome, Programs, Settled, Span};
use crate::trace_workload::TraceWorkload;
use ahead::Ahead;
use course::{BusyTimes, Course};
use foresight::{Foresight, check_one_source};
use host::Host;
use log::{Log, client_of};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::spec::{DeviceSpec, PageMapped};
use softflash_drive::{Done, Drive, DriveCounters, DriveError, HostRequest, MapCounters};
use softflash_nand::timeline::Interval;
use softflash_trace::{Request, TraceError};
use softflash_workload::{BlockWorkload, FlowWorkload, Precondition, WorkloadError};
use standstill::Standstill;
use state::Hardware;
use std::collections::BTreeMap;
use writing::Writing;

/// A drive with more over-provisioning than was asked for by these has been given more: whole
/// blocks of small drives round it.
const ROUNDED_OP: f64 = 1.02;
const ROUNDED_OP_PERCENT: f64 = 0.02;

/// The virtual time that the chart of operations covers.
const CHART_NS: u64 = 10_000_000;

/// The maximum number of operations in the chart.
pub(super) const CHARTED: usize = 4000;

/// Requests between two checks for a stop.
const CHECK_EVERY: u64 = 1 << 16;

/// Marks requests of the measured part.
const MEASURED: u64 = 1 << 63;

/// The workload.
pub enum Asked<'a> {
    /// Accesses of a workload.
    Workload(&'a BlockWorkload),
    /// Accesses of several flows at once.
    Flows(&'a FlowWorkload),
    /// Requests of a trace that begins again after its end.
    Repeated(&'a TraceWorkload),
    /// Requests of a trace, at its times.
    Trace(&'a mut dyn Iterator<Item = Result<Request, TraceError>>),
}

impl Asked<'_> {
    /// Whether the order of the requests does not depend on the drive.
    fn is_one_source(&self) -> bool {
        match self {
            Asked::Workload(workload) => workload.writers == 0,
            Asked::Flows(_) => false,
            Asked::Repeated(_) | Asked::Trace(_) => true,
        }
    }
}

/// A drive and how it is used.
pub struct Setting<'a> {
    /// The hardware.
    pub device: &'a DeviceSpec,
    /// The layout.
    pub layout: &'a PageMapped,
    /// Its sets.
    pub sets: Sets,
    /// Spare / logical, in percent.
    pub op_percent: f64,
    /// The drive's initial state.
    pub precondition: Precondition,
    /// The limits of the run; a trace ends by itself.
    pub limits: Limits,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Setting<'_> {
    /// Bytes that the host can address.
    pub fn capacity_bytes(&self) -> Result<u64, LabError> {
        if self.sets.are_used() {
            return sets::capacity_bytes(self);
        }
        Ok(Drive::capacity_of(self.device, self.layout, self.op_percent)?)
    }
}

/// Runs a block workload, or several flows.
pub fn run(
    cell: &Cell,
    layout: &PageMapped,
    asked: Asked<'_>,
    control: &Control,
) -> Result<Outcome, LabError> {
    let setting = Setting {
        device: &cell.device,
        layout,
        sets: cell.layout.sets,
        op_percent: cell.op_percent(),
        precondition: cell.parameters.precondition,
        limits: cell.limits(),
        seed: cell.seed,
    };
    simulate(&setting, asked, control)
}

/// Runs a workload or a trace on a drive.
pub fn simulate(
    setting: &Setting<'_>,
    asked: Asked<'_>,
    control: &Control,
) -> Result<Outcome, LabError> {
    let mut outcome = match setting.sets.are_used() {
        true => sets::play(setting, asked, control)?,
        false => Play::prepare(setting, asked, control)?.play()?,
    };
    add_limits(setting.device, outcome.bytes_per_second(), &mut outcome.figures);
    add_programmed_bytes(setting.layout.unit_bytes(setting.device), &mut outcome);
    add_programmed_share(setting.device, &mut outcome);
    Ok(outcome)
}

/// A run.
struct Play<'a, 'c> {
    drive: Drive,
    host: Host<'a>,
    /// The flows, if the workload has several.
    flows: Option<&'a FlowWorkload>,
    limits: Limits,
    /// Whether it runs a trace, which is played completely and without a warm-up.
    trace: bool,
    /// How the initial state was settled, if it was.
    settled: Option<Settled>,
    /// The share of the run's progress that the initial state has had.
    prepared: f64,
    /// The over-provisioning that was asked for.
    asked_op_percent: f64,
    queue_depth: u32,
    /// The log of requests, if there is one.
    log: Option<Log<'c>>,
    control: &'c Control<'c>,
}

impl<'a, 'c> Play<'a, 'c> {
    /// Creates a drive in its initial state, and the source of requests.
    fn prepare(
        setting: &Setting<'_>,
        asked: Asked<'a>,
        control: &'c Control<'c>,
    ) -> Result<Play<'a, 'c>, LabError> {
        let mut drive = Drive::new(setting.device, setting.layout, setting.op_percent)?;
        let rng = Rng::seeded(setting.seed);
        let repeated = match &asked {
            Asked::Repeated(workload) => Some(workload.requests(drive.capacity_bytes())?),
            Asked::Workload(_) | Asked::Flows(_) | Asked::Trace(_) => None,
        };
        let (writing, flows) = match &asked {
            Asked::Workload(workload) => (Some(Writing::Workload(workload)), None),
            Asked::Flows(workload) => (Some(Writing::Flows(workload)), Some(*workload)),
            Asked::Repeated(_) => (repeated.as_ref().map(Writing::Repeated), None),
            Asked::Trace(_) => (None, None),
        };
        let trace = writing.is_none();
        let Setting { device, layout, op_percent, precondition, .. } = *setting;
        check_one_source(layout, asked.is_one_source())?;
        let hardware = Hardware { device, layout, op_percent };
        let settled = state::prepare(&mut drive, &hardware, precondition, writing, &rng, control)?;
        let (begin, capacity_bytes) = (drive.now(), drive.capacity_bytes());
        let mut host = match asked {
            Asked::Workload(workload) => Host::of_workload(workload, capacity_bytes, &rng, begin)?,
            Asked::Flows(workload) => Host::of_flows(workload, capacity_bytes, &rng, begin)?,
            Asked::Repeated(workload) => {
                Host::of_repeated(repeated, workload.load.as_ref(), &rng, begin)?
            }
            Asked::Trace(requests) => Host::of_trace(Ahead::of_trace(requests), begin),
        };
        if let Some(foresight) = Foresight::of(&drive, layout) {
            host.foretell(foresight);
        }
        let prepared = match precondition {
            Precondition::Steady { .. } if settled.is_none() => 0.0,
            state => share_of_preparation(state),
        };
        Ok(Play {
            drive,
            host,
            flows,
            limits: setting.limits,
            trace,
            settled,
            prepared,
            asked_op_percent: op_percent,
            queue_depth: setting.device.controller.queue_depth,
            log: None,
            control,
        })
    }
}

impl Play<'_, '_> {
    fn play(mut self) -> Result<Outcome, LabError> {
        let mut done: Vec<Done> = Vec::new();
        if !self.trace {
            self.warm_up(&mut done)?;
        }
        self.drive.clear_counters();
        self.drive.record(CHARTED);
        (self.control.on_measuring)();
        let mut course = self.course();
        if let Some(workload) = self.flows {
            let capacity_bytes = self.drive.capacity_bytes();
            self.host.limit(&workload.flows, capacity_bytes, course.meter.begin_ns())?;
        }
        self.log = self.control.on_request.map(|on_request| {
            let in_flight = self.drive.in_flight();
            Log::new(on_request, course.meter.begin_ns(), self.queue_depth, in_flight)
        });
        let answers_at_once = self.host.answers_at_once() && self.log.is_none();
        loop {
            while let Some(at) = self.due()
                && course.goes_on(at)
            {
                if let Some(request) = self.make(at, MEASURED)? {
                    course.arrived(at)?;
                    if !course.flows.is_empty() {
                        course.flows.arrived(self.host.flow_of(request.tag), at);
                    }
                }
            }
            if answers_at_once {
                self.answer_all(&mut course, &mut done)?;
            }
            let next = self.host.next_at().filter(|&at| course.goes_on(at));
            // Collection in the idle time after the last request is not its cost.
            if next.is_none()
                && self.drive.in_flight() == 0
                && course.meter.completed() == course.made
            {
                self.drive.play_until_written();
                break;
            }
            if !self.drive.play_to_next_completion(Time(next.unwrap_or(u64::MAX)), &mut done) {
                if self.due().is_none_or(|at| !course.goes_on(at)) {
                    break;
                }
                continue;
            }
            self.measure(&done, &mut course)?;
            for done in &done {
                if let Some(log) = &mut self.log {
                    log.ended(done);
                }
                self.host.ended(client_of(done.tag & !MEASURED), done.at.0);
            }
            done.clear();
        }
        (self.control.on_measured)();
        // No page may be lost or mapped twice.
        self.drive.check().map_err(LabError::Simulation)?;
        let (now, busy) = (self.drive.now(), busy(&self.drive));
        let mut outcome = course.outcome(&self.host, &self.drive, now, &busy);
        outcome.settled = self.settled;
        self.describe(&mut outcome);
        Ok(outcome)
    }

    /// The measured part, before its first request.
    fn course(&self) -> Course {
        let Play { drive, host, flows, limits, trace, .. } = self;
        Course::new(drive.now(), (limits, *trace), busy(drive), (host, *flows))
    }

    /// Runs clients whose next request follows each completion at once, so that requests need no
    /// sorting by time.
    #[inline(never)]
    fn answer_all(&mut self, course: &mut Course, done: &mut Vec<Done>) -> Result<(), LabError> {
        while course.made < course.requests
            && self.drive.play_to_next_completion(Time(course.until), done)
        {
            self.measure(done, course)?;
            for done in done.iter() {
                let client = done.tag & !MEASURED;
                if course.goes_on(done.at.0)
                    && let Some(request) = self.host.answer(&self.drive)
                {
                    course.made += 1;
                    let request = HostRequest { tag: client | MEASURED, ..request };
                    self.drive.submit(done.at, request)?;
                } else {
                    self.host.ended(client, done.at.0);
                }
            }
            done.clear();
        }
        Ok(())
    }

    /// Records the completions of the measured part.
    #[inline(always)]
    fn measure(&self, done: &[Done], course: &mut Course) -> Result<(), LabError> {
        for done in done {
            if done.tag & MEASURED != 0 {
                let completion = Completion {
                    kind: done.kind,
                    at: done.at,
                    latency_ns: done.latency_ns(),
                    bytes: done.bytes,
                };
                course.meter.add(completion, &self.drive);
                if !course.flows.is_empty() {
                    course.flows.completed(self.host.flow_of(done.tag), completion);
                }
            }
        }
        if course.meter.completed().is_multiple_of(CHECK_EVERY) {
            self.report(course)?;
        }
        Ok(())
    }

    /// Runs the warm-up: a time that is not measured.
    fn warm_up(&mut self, done: &mut Vec<Done>) -> Result<(), LabError> {
        let until = (self.drive.now() + self.limits.warm_up_ns).0;
        let (mut standstill, mut made) = (Standstill::default(), 0);
        while self.drive.now().0 < until {
            if self.control.stopped() {
                return Err(LabError::Stopped);
            }
            while let Some(at) = self.due()
                && at < until
            {
                self.make(at, 0)?;
                made += 1;
                standstill.note(at, made)?;
            }
            // If nothing is under way, the next request is after the warm-up.
            if !self.drive.step(done) {
                break;
            }
            for done in done.drain(..) {
                self.host.ended(done.tag, done.at.0);
            }
        }
        Ok(())
    }

    /// The time of the next request, if it is not after the drive's next event.
    #[inline]
    fn due(&mut self) -> Option<u64> {
        let at = self.host.next_at()?;
        let now = self.drive.now().0;
        let due = at <= now || self.drive.next_at().is_none_or(|next| at <= next.0);
        due.then_some(at.max(now))
    }

    /// Submits the next request, and returns it; `None` if a cap holds the request back.
    #[inline]
    fn make(&mut self, at: u64, mark: u64) -> Result<Option<HostRequest>, LabError> {
        let Some(request) = self.host.take(at, Some(&self.drive)) else {
            return self.host.broken().map_or(Ok(None), Err);
        };
        let tag = match &mut self.log {
            Some(log) => log.arrives(at, &request),
            None => request.tag,
        };
        let request = HostRequest { tag: tag | mark, ..request };
        self.drive.submit(Time(at), request)?;
        Ok(Some(request))
    }

    #[cold]
    fn report(&self, course: &mut Course) -> Result<(), LabError> {
        if self.control.stopped() {
            return Err(LabError::Stopped);
        }
        let measured = course.progress(self.drive.now().0)?;
        (self.control.on_progress)(self.prepared + (1.0 - self.prepared) * measured);
        Ok(())
    }

    /// Adds the figures of the drive at the end of a run.
    fn describe(&self, outcome: &mut Outcome) {
        let counters = self.drive.counters();
        outcome.programs = programs_of(&counters);
        outcome.erases = counters.erases;
        let flash_bytes = self.drive.flash_pages() * u64::from(self.drive.page_bytes());
        outcome.bytes_per_page = self.drive.memory_bytes() as f64 / self.drive.flash_pages() as f64;
        outcome.gantt = chart(self.drive.recorded());
        let mut figure = |name: &str, value: f64| outcome.figures.insert(name.to_owned(), value);
        figure("op_percent", self.drive.op_percent());
        if self.drive.op_percent() > self.asked_op_percent * ROUNDED_OP + ROUNDED_OP_PERCENT {
            figure(ASKED_OP_PERCENT, self.asked_op_percent);
        }
        figure("capacity_bytes", self.drive.capacity_bytes() as f64);
        figure("capacity_share", self.drive.capacity_bytes() as f64 / flash_bytes as f64);
        figure("waf", counters.waf());
        if counters.partial_page_programs > 0 {
            figure("partial_page_programs", counters.partial_page_programs as f64);
        }
        figure("pages_read_from_flash", counters.read_for_host as f64);
        if self.drive.has_slc_cache() {
            let (in_slc_mode, all) =
                (counters.programmed_in_slc_mode, counters.programmed_for_host.max(1));
            figure("slc_share", in_slc_mode as f64 / all as f64);
        }
        for (name, count) in
            [("scrub_reads", counters.scrub_reads), ("read_reclaims", counters.read_reclaims)]
        {
            if count > 0 {
                figure(name, count as f64);
            }
        }
        if let Some(map) = self.drive.map_counters() {
            add_map_figures(&map, counters.host_pages_written, &mut outcome.figures);
        }
    }
}

/// The programs of a drive, by cause.
fn programs_of(counters: &DriveCounters) -> Programs {
    Programs {
        host: counters.programmed_for_host,
        collection: counters.programmed_for_collection,
        folding: counters.programmed_for_folding,
        parity: counters.programmed_for_parity,
        metadata: counters.programmed_for_map,
        padding: counters.programmed_for_padding,
        ..Programs::default()
    }
}

/// Adds the figures of a map that lies on flash.
pub(super) fn add_map_figures(
    map: &MapCounters,
    host_pages_written: u64,
    figures: &mut BTreeMap<String, f64>,
) {
    let per_write = map.programs as f64 / host_pages_written.max(1) as f64;
    let named = [
        ("map_hit_ratio", map.hit_ratio()),
        ("map_hits", map.hits as f64),
        ("map_misses", map.misses as f64),
        ("map_reads", map.reads as f64),
        ("map_programs", map.programs as f64),
        ("map_waf", per_write),
    ];
    figures.extend(named.map(|(name, value)| (name.to_owned(), value)));
}

/// The operations of a short window from the first one on.
pub(super) fn chart(recorded: &[Interval]) -> Vec<Span> {
    let from = recorded.first().map_or(0, |interval| interval.begin_ns);
    let charted = recorded.iter().filter(|interval| interval.begin_ns < from + CHART_NS);
    charted
        .map(|interval| Span {
            die: interval.die,
            what: interval.activity,
            begin_ns: interval.begin_ns - from,
            end_ns: interval.end_ns - from,
        })
        .collect()
}

impl CountsPages for Drive {
    fn page_counts(&self) -> PageCounts {
        let counters = self.counters();
        PageCounts {
            written: counters.host_pages_written,
            programmed_for_host: counters.programmed_for_host,
            programmed: counters.programmed(),
        }
    }
}

/// The busy times of channels and dies.
pub(super) fn busy(drive: &Drive) -> BusyTimes {
    let channels = (0..drive.channels()).map(|channel| drive.channel_busy_ns(channel)).collect();
    let dies = (0..drive.dies()).map(|die| drive.die_busy_ns(die)).collect();
    (channels, dies)
}

impl From<DriveError> for LabError {
    fn from(error: DriveError) -> LabError {
        LabError::Parameter(error.to_string())
    }
}

impl From<WorkloadError> for LabError {
    fn from(error: WorkloadError) -> LabError {
        LabError::Parameter(error.to_string())
    }
}
