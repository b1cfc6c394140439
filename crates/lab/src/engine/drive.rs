//! Runs block workloads and traces on a conventional drive.

mod ahead;
mod closed;
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
use crate::engine::meter::{Completion, CountsPages, Cut, Meter, PageCounts};
use crate::engine::progress::share_of_preparation;
use crate::error::LabError;
use crate::layout::Sets;
use crate::outcome::{ASKED_OP_PERCENT, Backlog, Outcome, Programs, Settled, Span};
use ahead::Ahead;
use flows::FlowMeters;
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
/// The maximum number of waiting requests, which take about two gigabytes.
const MOST_WAITING: u64 = 1 << 24;

/// Marks requests of the measured part.
const MEASURED: u64 = 1 << 63;

/// The workload.
pub enum Asked<'a> {
    /// Accesses of a workload.
    Workload(&'a BlockWorkload),
    /// Accesses of several flows at once.
    Flows(&'a FlowWorkload),
    /// Requests of a trace, at its times.
    Trace(&'a mut dyn Iterator<Item = Result<Request, TraceError>>),
}

impl Asked<'_> {
    /// Whether the order of the requests does not depend on the drive.
    fn is_one_source(&self) -> bool {
        match self {
            Asked::Workload(workload) => workload.writers == 0,
            Asked::Flows(_) => false,
            Asked::Trace(_) => true,
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
    if setting.sets.are_used() {
        return sets::simulate(setting, asked, control);
    }
    let mut outcome = Play::prepare(setting, asked, control)?.play()?;
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
        let (writing, flows) = match &asked {
            Asked::Workload(workload) => (Some(Writing::Workload(workload)), None),
            Asked::Flows(workload) => (Some(Writing::Flows(workload)), Some(*workload)),
            Asked::Trace(_) => (None, None),
        };
        let Setting { device, layout, op_percent, precondition, .. } = *setting;
        check_one_source(layout, asked.is_one_source())?;
        let hardware = Hardware { device, layout, op_percent };
        let settled = state::prepare(&mut drive, &hardware, precondition, writing, &rng, control)?;
        let (begin, capacity_bytes) = (drive.now(), drive.capacity_bytes());
        let mut host = match asked {
            Asked::Workload(workload) => Host::of_workload(workload, capacity_bytes, &rng, begin)?,
            Asked::Flows(workload) => Host::of_flows(workload, capacity_bytes, &rng, begin)?,
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
            trace: writing.is_none(),
            settled,
            prepared,
            asked_op_percent: op_percent,
            queue_depth: setting.device.controller.queue_depth,
            log: None,
            control,
        })
    }
}

/// The measured part of a run.
struct Course {
    meter: Meter,
    /// Busy times of channels and dies at its beginning.
    busy_before: BusyTimes,
    /// Requests submitted so far.
    made: u64,
    /// Requests in all.
    requests: u64,
    /// No request is submitted from then on.
    until: u64,
    /// The last arrival, and the requests that had not completed then.
    last_arrival: (u64, u64),
    /// Detects a standstill of time in a run with a time limit.
    standstill: Standstill,
    /// The figures of each flow, if there are several.
    flows: FlowMeters,
}

impl Course {
    /// Whether the run still submits requests at this time.
    #[inline]
    fn goes_on(&self, at: u64) -> bool {
        self.made < self.requests && at < self.until
    }

    /// Counts an arrival. Ends a run whose requests arrive so much faster than the drive serves
    /// them that memory would not suffice.
    #[inline]
    fn arrived(&mut self, at: u64) -> Result<(), LabError> {
        self.made += 1;
        let waiting = self.made - self.meter.completed();
        self.last_arrival = (at, waiting);
        if waiting <= MOST_WAITING {
            return Ok(());
        }
        Err(LabError::Parameter(format!(
            "{waiting} requests wait for the drive, as they arrive faster than it serves them: use a lower rate \
             (or --speed), fewer copies, or a faster drive"
        )))
    }

    /// What had not completed at the last arrival; `None` if nothing arrived.
    fn backlog(&self) -> Option<Backlog> {
        let (at, waiting) = self.last_arrival;
        (self.made > 0).then(|| Backlog {
            arrivals_ns: at - self.meter.begin_ns(),
            waiting,
            lag_ns: self.meter.last_ns().saturating_sub(at),
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
        let begin_ns = course.meter.begin_ns();
        let is_open = self.flows.is_none() && self.host.is_open();
        let backlog = if is_open { course.backlog() } else { None };
        let end_ns = course.meter.last_ns();
        let mut outcome = course.meter.outcome(&self.drive);
        let ended = self.host.ended_flows(self.flow_count(), end_ns);
        let begins = self.host.begin_of_flows(self.flow_count());
        outcome.flows = course.flows.outcomes(end_ns, &begins, &ended);
        outcome.requests = course.made;
        outcome.backlog = backlog;
        outcome.settled = self.settled;
        // Started work counts completely, and may complete after the last request.
        let until_ns = (self.drive.now().0 - begin_ns).max(1) as f64;
        let share = |(now, before): (&u64, &u64)| (now - before) as f64 / until_ns;
        let (channels, dies) = busy(&self.drive);
        let (channels_before, dies_before) = &course.busy_before;
        outcome.channel_utilisation = channels.iter().zip(channels_before).map(share).collect();
        outcome.die_utilisation = dies.iter().zip(dies_before).map(share).collect();
        self.describe(&mut outcome);
        Ok(outcome)
    }

    /// The measured part, before its first request.
    fn course(&self) -> Course {
        let meter = Meter::new(self.drive.now(), Cut::of(&self.limits));
        let busy_before = busy(&self.drive);
        let until = self.limits.duration_ns.map_or(u64::MAX, |ns| meter.begin_ns() + ns);
        let requests = match self.limits.requests {
            Some(requests) if !self.trace => requests,
            _ => u64::MAX,
        };
        Course {
            meter,
            busy_before,
            made: 0,
            requests,
            until,
            last_arrival: (0, 0),
            standstill: Standstill::default(),
            flows: self.flow_meters(),
        }
    }

    fn flow_count(&self) -> usize {
        self.flows.map_or(0, |workload| workload.flows.len())
    }

    /// The meters of the flows; none without flows.
    fn flow_meters(&self) -> FlowMeters {
        let Some(workload) = self.flows else { return FlowMeters::default() };
        let open = self.host.open_flows(workload.flows.len());
        let names = workload.flows.iter().map(|flow| flow.name());
        FlowMeters::new(names.zip(open), self.drive.now(), Cut::of_time(&self.limits))
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
        let now = self.drive.now().0;
        let of_requests = match course.requests {
            u64::MAX => {
                course.standstill.note(now, course.meter.completed())?;
                0.0
            }
            requests => course.made as f64 / requests as f64,
        };
        let begin = course.meter.begin_ns();
        let of_time = match course.until {
            u64::MAX => 0.0,
            until => (now - begin) as f64 / (until - begin) as f64,
        };
        let measured = of_requests.max(of_time).min(1.0);
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

/// Busy times of channels, and of dies, in nanoseconds.
type BusyTimes = (Vec<u64>, Vec<u64>);

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
