//! The figures of each of several flows.

use crate::engine::meter::{Completion, Cut, Meter};
use crate::outcome::{Backlog, FlowOutcome};
use softflash_base::Time;

/// The meters of all flows, by their numbers; none in a run without flows.
#[derive(Default)]
pub(super) struct FlowMeters {
    flows: Vec<FlowMeter>,
}

struct FlowMeter {
    name: String,
    meter: Meter,
    /// Whether its requests come at their own times.
    open: bool,
    made: u64,
    /// The last arrival, and the requests of the flow that had not completed then.
    last_arrival: (u64, u64),
}

impl FlowMeters {
    /// The meters of flows with these names, and whether each one's requests come at their own
    /// times, from `begin` on.
    pub(super) fn new<'a>(
        flows: impl Iterator<Item = (&'a str, bool)>,
        begin: Time,
        cut: Cut,
    ) -> FlowMeters {
        let flows = flows.map(|(name, open)| FlowMeter {
            name: name.to_owned(),
            meter: Meter::new(begin, cut),
            open,
            made: 0,
            last_arrival: (begin.0, 0),
        });
        FlowMeters { flows: flows.collect() }
    }

    /// The number of flows.
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether the run has no flows.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Counts the submission of a request of a flow.
    pub(super) fn arrived(&mut self, flow: usize, at: u64) {
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.made += 1;
            flow.last_arrival = (at, flow.made - flow.meter.completed());
        }
    }

    /// Counts the completion of a request of a flow.
    pub(super) fn completed(&mut self, flow: usize, completion: Completion) {
        if let Some(flow) = self.flows.get_mut(flow) {
            // Write amplification is that of the drive, not of a flow.
            flow.meter.add(completion, &());
        }
    }

    /// The figures of the flows of a run whose last request completed at `end_ns`.
    /// `begins` and `ended` say of each flow when it began, and whether it reached its limits.
    pub(super) fn outcomes(
        self,
        end_ns: u64,
        begins: &[Option<u64>],
        ended: &[bool],
    ) -> Vec<FlowOutcome> {
        let outcome = |(number, flow): (usize, FlowMeter)| {
            let begin_ns = begins.get(number).copied().flatten();
            flow.outcome(begin_ns, end_ns, ended.get(number) == Some(&true))
        };
        self.flows.into_iter().enumerate().map(outcome).collect()
    }
}

impl FlowMeter {
    fn outcome(self, began_ns: Option<u64>, end_ns: u64, ended: bool) -> FlowOutcome {
        let FlowMeter { name, meter, open, made, last_arrival: (at, waiting) } = self;
        let begin_ns = meter.begin_ns();
        let backlog = (open && made > 0).then(|| Backlog {
            arrivals_ns: at - begin_ns,
            waiting,
            lag_ns: meter.last_ns().saturating_sub(at),
        });
        let end_ns = if ended && made > 0 { meter.last_ns() } else { end_ns };
        let measured = meter.outcome(&());
        FlowOutcome {
            name,
            requests: made,
            completed: measured.completed,
            bytes_read: measured.bytes_read,
            bytes_written: measured.bytes_written,
            active_ns: began_ns.map_or(0, |began| end_ns.saturating_sub(began.max(begin_ns))),
            read_latency: measured.read_latency,
            write_latency: measured.write_latency,
            latency_stddev_ns: measured.latency_stddev_ns,
            slow: measured.slow,
            distribution_ns: measured.distribution_ns,
            backlog,
            series: measured.series,
        }
    }
}
