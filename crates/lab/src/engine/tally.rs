//! Completions that the concurrent clients of a run collect, and the outcome of the run.

use super::meter::{Completion, Cut, Meter};
use crate::outcome::Outcome;
use softflash_base::{AccessKind, Time};
use std::cell::{Cell, RefCell};

/// The requests of the measured part. Clients share it; the [`Meter`] counts the completions at the
/// end, when the length of the run, and so that of the intervals of its time series, is known.
pub struct Tally {
    begin: Time,
    /// The end of the measured part, if clients continue after it.
    end: Option<Time>,
    requests: Cell<u64>,
    completions: RefCell<Vec<Completion>>,
}

impl Tally {
    /// A tally of requests from `begin` on.
    pub fn new(begin: Time) -> Tally {
        Tally { begin, end: None, requests: Cell::new(0), completions: RefCell::default() }
    }

    /// A tally from `begin` to `end`, of clients that also run before and after. A request counts
    /// if it completes in this time. Its bytes are assumed to move evenly between submission and
    /// completion, so a request under way at `begin` or `end` counts with a share of its bytes.
    pub fn within(begin: Time, end: Time) -> Tally {
        Tally { end: Some(end), ..Tally::new(begin) }
    }

    /// Counts a submission.
    pub fn submitted(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Counts the completion of a request that was submitted at `submitted_at`.
    pub fn completed(&self, kind: AccessKind, submitted_at: Time, at: Time, bytes: u64) {
        let latency_ns = at.since_ns(submitted_at);
        self.completions.borrow_mut().push(Completion { kind, at, latency_ns, bytes });
    }

    /// The figures of all requests. Without an end, the run ends with its last completion.
    pub fn outcome(&self, samples: u32) -> Outcome {
        let all = self.completions.borrow();
        let counts = |completion: &&Completion| {
            self.end.is_none_or(|end| completion.at >= self.begin && completion.at < end)
        };
        let inside: Vec<&Completion> = all.iter().filter(counts).collect();
        let last = || inside.iter().map(|completion| completion.at).max().unwrap_or(self.begin);
        let simulated_ns = self.end.unwrap_or_else(last).since_ns(self.begin);
        let cut = Cut::every_ns(simulated_ns.div_ceil(u64::from(samples.max(1))));
        let mut meter = Meter::new(self.begin, cut);
        inside.iter().for_each(|completion| meter.add(**completion, &()));
        let measured = meter.outcome(&());
        let bytes = |kind| -> u64 {
            let of_kind = all.iter().filter(|completion| completion.kind == kind);
            of_kind.map(|completion| self.bytes_inside(completion)).sum::<f64>().round() as u64
        };
        let means_ns = [measured.read_latency.mean_ns, measured.write_latency.mean_ns];
        let kinds = [AccessKind::Read, AccessKind::Write];
        Outcome {
            // In a window, only the requests that complete in it count.
            requests: self.end.map_or(self.requests.get(), |_| measured.completed),
            bytes_read: bytes(AccessKind::Read),
            bytes_written: bytes(AccessKind::Write),
            simulated_ns,
            // All latencies are known, so this sums the squared deviations, which is more precise
            // than sums of squares.
            latency_stddev_ns: [0, 1].map(|way| stddev_ns(&inside, kinds[way], means_ns[way])),
            ..measured
        }
    }

    /// The share of a request's bytes that moved in the measured part.
    fn bytes_inside(&self, completion: &Completion) -> f64 {
        let Completion { at, latency_ns, bytes, .. } = *completion;
        let Some(end) = self.end else { return bytes as f64 };
        let submitted_at = Time(at.0 - latency_ns);
        let inside_ns = at.min(end).since_ns(submitted_at.max(self.begin));
        match latency_ns {
            0 if at >= self.begin && at < end => bytes as f64,
            0 => 0.0,
            latency_ns => bytes as f64 * inside_ns as f64 / latency_ns as f64,
        }
    }
}

/// The standard deviation of the latencies of a kind, which have this mean.
fn stddev_ns(completions: &[&Completion], kind: AccessKind, mean_ns: f64) -> f64 {
    let latencies = || completions.iter().filter(|c| c.kind == kind).map(|c| c.latency_ns);
    let squares: f64 = latencies().map(|ns| (ns as f64 - mean_ns).powi(2)).sum();
    (squares / latencies().count().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completions_are_summed_and_cut_into_samples() {
        let tally = Tally::new(Time(1000));
        for (kind, made_at, at) in [
            (AccessKind::Read, 1000, 1100),
            (AccessKind::Read, 1000, 1300),
            (AccessKind::Write, 1100, 1400),
        ] {
            tally.submitted();
            tally.completed(kind, Time(made_at), Time(at), 10);
        }
        let outcome = tally.outcome(4);
        assert_eq!((outcome.requests, outcome.completed), (3, 3));
        assert_eq!(
            (outcome.bytes_read, outcome.bytes_written, outcome.simulated_ns),
            (20, 10, 400)
        );
        assert_eq!(outcome.read_latency.mean_ns, 200.0);
        assert_eq!(outcome.latency_stddev_ns, [100.0, 0.0]);
        let series: Vec<_> =
            outcome.series.iter().map(|s| (s.at_ns, s.bytes_read, s.bytes_written)).collect();
        assert_eq!(series, [(100, 10, 0), (200, 0, 0), (300, 10, 0), (400, 0, 10)]);
        let longest: Vec<_> = outcome
            .series
            .iter()
            .map(|s| [s.read_latency, s.write_latency].map(|of| of.max_ns))
            .collect();
        assert_eq!(longest, [[100, 0], [0, 0], [300, 0], [0, 300]]);
    }

    #[test]
    fn a_window_counts_what_ends_in_it_and_the_bytes_that_move_in_it() {
        let tally = Tally::within(Time(1000), Time(2000));
        for (made_at, at) in [(500, 999), (900, 1100), (1500, 1900), (1800, 2600), (2000, 2100)] {
            tally.submitted();
            tally.completed(AccessKind::Read, Time(made_at), Time(at), 8);
        }
        let outcome = tally.outcome(2);
        assert_eq!((outcome.requests, outcome.completed), (2, 2));
        assert_eq!(outcome.bytes_read, 4 + 8 + 2);
        assert_eq!((outcome.simulated_ns, outcome.read_latency.max_ns), (1000, 400));
    }
}
