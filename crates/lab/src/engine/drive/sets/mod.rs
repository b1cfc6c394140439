//! Runs block workloads and traces on the sets of a device (NVM Sets): a drive for each, on
//! channels of its own, and the host that keeps copies on several of them.
//!
//! A request is of one group of sets, those with copies of its addresses, or of several groups if
//! it crosses their bounds. [`group`] has the rules; this is the play.

mod group;
mod groups;
mod hardware;
mod parts;
mod staged;
#[cfg(test)]
mod tests;

use super::ahead::Ahead;
use super::course::Course;
use super::host::Host;
use super::state::{self, Hardware};
use super::{Asked, Setting};
use crate::cell::{Control, Limits};
use crate::engine::meter::{Completion, CountsPages};
use crate::engine::progress::share_of_preparation;
use crate::error::LabError;
use crate::outcome::Outcome;
use group::{Group, Set};
use groups::Groups;
use hardware::{check, hardware_of_set};
use parts::{Parts, UnderWay};
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_drive::{AccessKind, Drive, HostRequest};
use softflash_workload::FlowWorkload;

/// Writes under way for each die of a set with windows, unless the layout limits them further: so
/// many keep it busy, and more would lengthen the time until it is at rest.
const WRITES_OF_DIE: f64 = 2.0;

/// Requests between two reports of progress.
const REPORT_EVERY: u64 = 1 << 12;

/// Bytes that the host can address.
pub(super) fn capacity_bytes(setting: &Setting<'_>) -> Result<u64, LabError> {
    let of_set = hardware_of_set(setting.device, &setting.sets)?;
    let bytes = Drive::capacity_of(&of_set, setting.layout, setting.op_percent)?;
    Ok(bytes * u64::from(setting.sets.sets / setting.sets.copies.max(1)))
}

/// Plays a workload or a trace on the sets of a device.
pub(super) fn play(
    setting: &Setting<'_>,
    asked: Asked<'_>,
    control: &Control,
) -> Result<Outcome, LabError> {
    if control.on_request.is_some() {
        return Err(LabError::Parameter(
            "a log of requests is of one drive, this layout has `sets`".to_owned(),
        ));
    }
    Play::prepare(setting, asked, control)?.play()
}

/// A run.
struct Play<'a, 'c> {
    groups: Groups,
    host: Host<'a>,
    flows: Option<&'a FlowWorkload>,
    parts: Parts,
    limits: Limits,
    /// Whether it runs a trace, which is played completely.
    trace: bool,
    prepared: f64,
    now: Time,
    control: &'c Control<'c>,
}

impl<'a, 'c> Play<'a, 'c> {
    /// Creates the sets in their initial state, and the source of requests.
    fn prepare(
        setting: &Setting<'_>,
        asked: Asked<'a>,
        control: &'c Control<'c>,
    ) -> Result<Play<'a, 'c>, LabError> {
        let Setting { layout, sets, op_percent, precondition, limits, seed, .. } = *setting;
        check(layout, &sets, precondition)?;
        super::check_one_source(layout, false)?;
        let device = hardware_of_set(setting.device, &sets)?;
        let rng = Rng::seeded(seed);
        let share = match (sets.pressure, sets.window_ms) {
            (0.0, 0) => f64::INFINITY,
            (0.0, _) => WRITES_OF_DIE,
            (share, _) => share,
        };
        let hardware = Hardware { device: &device, layout, op_percent };
        let set = |number: u16| {
            let mut drive = Drive::new(&device, layout, op_percent)?;
            let rng = rng.fork(number.to_le_bytes());
            // The state of uniform writes: which set programs which write is up to the run.
            state::prepare(&mut drive, &hardware, precondition, None, &rng, control)?;
            let most = (f64::from(drive.dies()) * share).max(1.0);
            Ok(Set::new(drive, most as u32, sets.pressure > 0.0))
        };
        let window_ns = (sets.window_ms > 0).then_some(u64::from(sets.window_ms) * 1_000_000);
        let memory_ns = device.host.submit_ns + device.host.complete_ns;
        let groups = (0..sets.sets / sets.copies).map(|group| {
            let first = group * sets.copies;
            let of_group: Result<Vec<Set>, LabError> =
                (first..first + sets.copies).map(set).collect();
            Ok(Group::new(of_group?, window_ns, memory_ns))
        });
        let groups = Groups(groups.collect::<Result<_, LabError>>()?);
        let capacity_bytes = groups.capacity_bytes();
        let (now, trace) = (Time(0), matches!(asked, Asked::Trace(_)));
        let (host, flows) = match asked {
            Asked::Workload(it) => (Host::of_workload(it, capacity_bytes, &rng, now)?, None),
            Asked::Flows(it) => (Host::of_flows(it, capacity_bytes, &rng, now)?, Some(it)),
            Asked::Repeated(it) => {
                let requests = it.requests(capacity_bytes)?;
                (Host::of_repeated(Some(requests), it.load.as_ref(), &rng, now)?, None)
            }
            Asked::Trace(requests) => (Host::of_trace(Ahead::of_trace(requests), now), None),
        };
        Ok(Play {
            groups,
            host,
            flows,
            parts: Parts::default(),
            limits,
            trace,
            prepared: share_of_preparation(precondition),
            now,
            control,
        })
    }

    fn play(mut self) -> Result<Outcome, LabError> {
        if !self.trace {
            self.warm_up()?;
        }
        self.groups.begin_measured();
        (self.control.on_measuring)();
        let mut course = self.course();
        if let Some(workload) = self.flows {
            self.host.limit(&workload.flows, self.groups.capacity_bytes(), self.now.0)?;
        }
        let mut ended = Vec::new();
        while self.step(&mut course, &mut ended)? {
            for tag in ended.drain(..) {
                if let Some(part) = self.parts.end(tag) {
                    self.completed(&mut course, part)?;
                }
            }
        }
        (self.control.on_measured)();
        self.groups.drives().try_for_each(Drive::check).map_err(LabError::Simulation)?;
        let busy = self.groups.busy();
        let mut outcome = course.outcome(&self.host, &self.groups, self.now, &busy);
        self.describe(&mut outcome);
        Ok(outcome)
    }

    /// Submits the next request, or plays the next event. False if there is neither.
    fn step(&mut self, course: &mut Course, ended: &mut Vec<u64>) -> Result<bool, LabError> {
        let arrives = self.host.next_at().map(|at| at.max(self.now.0));
        let arrives = arrives.filter(|&at| course.goes_on(at));
        // Windows follow each other also without requests.
        if arrives.is_none() && self.parts.len() == 0 {
            return Ok(false);
        }
        let events = self.groups.0.iter_mut().filter_map(|group| Some((group.next_at()?, group)));
        let next = events.min_by_key(|&(at, _)| at);
        match (arrives, next) {
            (Some(at), next) if next.as_ref().is_none_or(|&(event, _)| at <= event.0) => {
                self.now = Time(at);
                self.submit(course)?;
            }
            (_, Some((at, group))) => {
                self.now = at;
                group.step(ended)?;
            }
            (_, None) => {
                return Err(LabError::Simulation(format!(
                    "{} requests never end",
                    self.parts.len()
                )));
            }
        }
        Ok(true)
    }

    /// Submits the next request, unless a cap holds it back.
    fn submit(&mut self, course: &mut Course) -> Result<(), LabError> {
        let Some(request) = self.host.take(self.now.0, None) else {
            return self.host.broken().map_or(Ok(()), Err);
        };
        course.arrived(self.now.0)?;
        if !course.flows.is_empty() {
            course.flows.arrived(self.host.flow_of(request.tag), self.now.0);
        }
        let group_bytes = self.groups.group_bytes();
        let (begin, end) = (request.offset_bytes, request.offset_bytes + request.bytes);
        let in_groups = begin / group_bytes..end.div_ceil(group_bytes);
        let Groups(groups) = &mut self.groups;
        let of_group = groups.get(in_groups.start as usize).map_or(1, |group| match request.kind {
            AccessKind::Read => 1,
            _ => group.copies_of_write(),
        });
        let parts = of_group * (in_groups.end - in_groups.start) as u32;
        let tag = self.parts.begin(request, self.now.0, parts);
        for number in in_groups {
            let first = begin.max(number * group_bytes);
            let last = end.min((number + 1) * group_bytes);
            let piece = HostRequest {
                tag,
                offset_bytes: first - number * group_bytes,
                bytes: last - first,
                ..request
            };
            let group = groups.get_mut(number as usize).ok_or_else(|| {
                LabError::Parameter(format!("a request at {begin} is beyond the device"))
            })?;
            group.take(self.now, piece)?;
        }
        Ok(())
    }

    /// Counts a request that has ended.
    fn completed(&mut self, course: &mut Course, part: UnderWay) -> Result<(), LabError> {
        let UnderWay { request, at_ns, .. } = part;
        self.host.ended(request.tag, self.now.0);
        if at_ns < course.meter.begin_ns() {
            return Ok(());
        }
        let completion = Completion {
            kind: request.kind,
            at: self.now,
            latency_ns: self.now.0 - at_ns,
            bytes: request.bytes,
        };
        course.meter.add(completion, &self.groups);
        if !course.flows.is_empty() {
            course.flows.completed(self.host.flow_of(request.tag), completion);
        }
        if course.meter.completed().is_multiple_of(REPORT_EVERY) {
            self.report(course)?;
        }
        Ok(())
    }

    fn report(&self, course: &mut Course) -> Result<(), LabError> {
        if self.control.stopped() {
            return Err(LabError::Stopped);
        }
        let measured = course.progress(self.now.0)?;
        (self.control.on_progress)(self.prepared + (1.0 - self.prepared) * measured);
        Ok(())
    }

    /// Runs the warm-up: a time that is not measured.
    fn warm_up(&mut self) -> Result<(), LabError> {
        let until = self.now.0 + self.limits.warm_up_ns;
        let mut course = self.course();
        (course.requests, course.until) = (u64::MAX, until);
        let mut ended = Vec::new();
        while self.now.0 < until && self.step(&mut course, &mut ended)? {
            if self.control.stopped() {
                return Err(LabError::Stopped);
            }
            for tag in ended.drain(..) {
                if let Some(part) = self.parts.end(tag) {
                    self.completed(&mut course, part)?;
                }
            }
        }
        Ok(())
    }

    /// The run from now on.
    fn course(&self) -> Course {
        let Play { groups, host, flows, limits, trace, now, .. } = self;
        Course::new(*now, (limits, *trace), groups.busy(), (host, *flows))
    }

    /// Adds the figures of the sets at the end of a run.
    fn describe(&self, outcome: &mut Outcome) {
        outcome.programs = self.groups.programs();
        outcome.erases = self.groups.drives().map(|drive| drive.counters().erases).sum();
        let drives = || self.groups.drives();
        let flash_pages: u64 = drives().map(Drive::flash_pages).sum();
        let memory_bytes: u64 = drives().map(Drive::memory_bytes).sum();
        outcome.bytes_per_page = memory_bytes as f64 / flash_pages as f64;
        let page_bytes = drives().next().map_or(0, Drive::page_bytes);
        let flash_bytes = flash_pages as f64 * f64::from(page_bytes);
        let capacity_bytes = self.groups.capacity_bytes() as f64;
        let mut figure = |name: &str, value: f64| outcome.figures.insert(name.to_owned(), value);
        figure("op_percent", drives().next().map_or(0.0, Drive::op_percent));
        figure("capacity_bytes", capacity_bytes);
        figure("capacity_share", capacity_bytes / flash_bytes);
        let counts = self.groups.page_counts();
        figure("waf", counts.programmed as f64 / counts.written.max(1) as f64);
        let windows = || self.groups.0.iter().filter_map(Group::windows);
        if windows().next().is_some() {
            let drains = windows().map(|windows| windows.longest_drain_ns());
            let staged = self.groups.sets().map(Set::most_staged_bytes);
            figure("windows", windows().map(|windows| windows.ended()).sum::<u64>() as f64);
            figure("drain_max_us", drains.max().unwrap_or(0) as f64 / 1e3);
            figure("staged_max_bytes", staged.max().unwrap_or(0) as f64);
        }
    }
}
