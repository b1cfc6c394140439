//! The measured part of a run, or its warm-up.

use super::Play;
use crate::engine::drive::flows::FlowMeters;
use crate::engine::drive::{BusyTimes, MOST_WAITING};
use crate::engine::meter::{Cut, Meter};
use crate::error::LabError;

/// The measured part of a run, or its warm-up.
pub(super) struct Course {
    /// Whether it is measured.
    pub(super) measures: bool,
    pub(super) meter: Meter,
    pub(super) flows: FlowMeters,
    pub(super) made: u64,
    pub(super) requests: u64,
    pub(super) until: u64,
    /// The last arrival, and the requests that had not completed then.
    pub(super) last_arrival: (u64, u64),
    pub(super) busy_before: BusyTimes,
}

impl Course {
    /// The run from now on.
    pub(super) fn new(play: &Play<'_, '_>) -> Course {
        let Play { limits, now, .. } = play;
        let flows = play.flows.map_or_else(FlowMeters::default, |workload| {
            let open = play.host.open_flows(workload.flows.len());
            let names = workload.flows.iter().map(|flow| flow.name());
            FlowMeters::new(names.zip(open), *now, Cut::of_time(limits))
        });
        Course {
            measures: true,
            meter: Meter::new(*now, Cut::of(limits)),
            flows,
            made: 0,
            requests: limits.requests.filter(|_| !play.trace).unwrap_or(u64::MAX),
            until: limits.duration_ns.map_or(u64::MAX, |ns| now.0 + ns),
            last_arrival: (now.0, 0),
            busy_before: play.groups.busy(),
        }
    }

    /// Whether the run still submits requests at this time.
    pub(super) fn goes_on(&self, at: u64) -> bool {
        self.made < self.requests && at < self.until
    }

    /// Counts an arrival, with which so many requests are under way.
    pub(super) fn arrived(&mut self, at: u64, under_way: u64) -> Result<(), LabError> {
        self.made += 1;
        self.last_arrival = (at, under_way);
        if under_way <= MOST_WAITING {
            return Ok(());
        }
        Err(LabError::Parameter(format!(
            "{under_way} requests wait for the sets, as they arrive faster than these serve them: use a lower rate"
        )))
    }

    /// The share of the run that is over.
    pub(super) fn share(&self, now: u64) -> f64 {
        let of = |part: u64, all: u64| if all == u64::MAX { 0.0 } else { part as f64 / all as f64 };
        let begin = self.meter.begin_ns();
        let until = if self.until == u64::MAX { u64::MAX } else { self.until - begin };
        of(self.made, self.requests).max(of(now - begin, until)).min(1.0)
    }
}
