//! The measured part of a run, on one drive or on the sets of a device.

use super::flows::FlowMeters;
use super::host::Host;
use super::standstill::Standstill;
use crate::cell::Limits;
use crate::engine::meter::{CountsPages, Cut, Meter};
use crate::error::LabError;
use crate::outcome::{Backlog, Outcome};
use softflash_base::Time;
use softflash_workload::FlowWorkload;

/// The maximum number of waiting requests, which take about two gigabytes.
const MOST_WAITING: u64 = 1 << 24;

/// Busy times of channels, and of dies, in nanoseconds.
pub(super) type BusyTimes = (Vec<u64>, Vec<u64>);

/// The measured part of a run.
pub(super) struct Course {
    pub(super) meter: Meter,
    /// Busy times of channels and dies at its beginning.
    busy_before: BusyTimes,
    /// Requests submitted so far.
    pub(super) made: u64,
    /// Requests in all.
    pub(super) requests: u64,
    /// No request is submitted from then on.
    pub(super) until: u64,
    /// The last arrival, and the requests that had not completed then.
    last_arrival: (u64, u64),
    /// Detects a standstill of time in a run with a time limit.
    standstill: Standstill,
    /// The figures of each flow, if there are several.
    pub(super) flows: FlowMeters,
}

impl Course {
    /// A course from `now` on, within limits of requests, of which a trace has none, and of time.
    pub(super) fn new(
        now: Time,
        (limits, is_trace): (&Limits, bool),
        busy_before: BusyTimes,
        (host, flows): (&Host<'_>, Option<&FlowWorkload>),
    ) -> Course {
        let flows = flows.map_or_else(FlowMeters::default, |workload| {
            let open = host.open_flows(workload.flows.len());
            let names = workload.flows.iter().map(|flow| flow.name());
            FlowMeters::new(names.zip(open), now, Cut::of_time(limits))
        });
        Course {
            meter: Meter::new(now, Cut::of(limits)),
            busy_before,
            made: 0,
            requests: limits.requests.filter(|_| !is_trace).unwrap_or(u64::MAX),
            until: limits.duration_ns.map_or(u64::MAX, |ns| now.0 + ns),
            last_arrival: (0, 0),
            standstill: Standstill::default(),
            flows,
        }
    }

    /// Whether the run still submits requests at this time.
    #[inline]
    pub(super) fn goes_on(&self, at: u64) -> bool {
        self.made < self.requests && at < self.until
    }

    /// Counts an arrival. Ends a run whose requests arrive so much faster than they are served that
    /// memory would not suffice.
    #[inline]
    pub(super) fn arrived(&mut self, at: u64) -> Result<(), LabError> {
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

    /// The share of the run that is over.
    ///
    /// # Errors
    /// A run without a limit of requests that comes to a standstill.
    pub(super) fn progress(&mut self, now: u64) -> Result<f64, LabError> {
        if self.requests == u64::MAX {
            self.standstill.note(now, self.meter.completed())?;
        }
        let begin = self.meter.begin_ns();
        let of_requests = match self.requests {
            u64::MAX => 0.0,
            requests => self.made as f64 / requests as f64,
        };
        let of_time = match self.until {
            u64::MAX => 0.0,
            until => (now - begin) as f64 / (until - begin) as f64,
        };
        Ok(of_requests.max(of_time).min(1.0))
    }

    /// The figures of the run, which is over at `now`, with busy times up to then.
    pub(super) fn outcome(
        self,
        host: &Host<'_>,
        pages: &impl CountsPages,
        now: Time,
        busy: &BusyTimes,
    ) -> Outcome {
        let Course { meter, busy_before, made, last_arrival: (last_at, waiting), flows, .. } = self;
        let (begin_ns, end_ns, count) = (meter.begin_ns(), meter.last_ns(), flows.len());
        let backlog = (made > 0 && count == 0 && host.is_open()).then(|| Backlog {
            arrivals_ns: last_at - begin_ns,
            waiting,
            lag_ns: end_ns.saturating_sub(last_at),
        });
        // Started work counts completely, and may complete after the last request.
        let until_ns = (now.0 - begin_ns).max(1) as f64;
        let share = |(now, before): (&u64, &u64)| (now - before) as f64 / until_ns;
        let (begins, ended) = (host.begin_of_flows(count), host.ended_flows(count, end_ns));
        Outcome {
            requests: made,
            flows: flows.outcomes(end_ns, &begins, &ended),
            backlog,
            channel_utilisation: busy.0.iter().zip(&busy_before.0).map(share).collect(),
            die_utilisation: busy.1.iter().zip(&busy_before.1).map(share).collect(),
            ..meter.outcome(pages)
        }
    }
}
