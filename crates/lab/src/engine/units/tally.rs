//! What clients of a run take down, and the outcome that it comes to.

use crate::cell::Limits;
use crate::outcome::{Outcome, Sample};
use softflash_base::Time;
use softflash_base::histogram::LatencyHistogram;
use std::cell::{Cell, RefCell};

/// Which way data went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Read by the client.
    Read,
    /// Written by the client.
    Write,
}

/// A request that has ended.
struct Ended {
    at: Time,
    latency_ns: u64,
    bytes: u64,
    way: Way,
}

/// The requests of the measured part.
pub struct Tally {
    begin: Time,
    /// Where the measured part is cut out of the work of clients that go on: its end.
    end: Option<Time>,
    requests: Cell<u64>,
    ended: RefCell<Vec<Ended>>,
}

impl Tally {
    /// A tally of what begins at `begin` or later.
    pub fn new(begin: Time) -> Tally {
        Tally { begin, end: None, requests: Cell::new(0), ended: RefCell::default() }
    }

    /// A tally of what happens from `begin` to `end`, of clients that are at work before and after. Requests count where they
    /// end; their bytes are taken to move evenly from beginning to end, so that what is under way at one of the two times
    /// counts with its share.
    pub fn within(begin: Time, end: Time) -> Tally {
        Tally { end: Some(end), ..Tally::new(begin) }
    }

    /// A request is made.
    pub fn made(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// A request that was made at `made_at` has ended.
    pub fn ended(&self, way: Way, made_at: Time, at: Time, bytes: u64) {
        let latency_ns = at.since_ns(made_at);
        self.ended.borrow_mut().push(Ended { at, latency_ns, bytes, way });
    }

    /// Adds it all up. Without an end, the run is over when its last request has ended.
    pub fn outcome(&self, samples: u32) -> Outcome {
        let all = self.ended.borrow();
        let counts =
            |ended: &&Ended| self.end.is_none_or(|end| ended.at >= self.begin && ended.at < end);
        let ended: Vec<&Ended> = all.iter().filter(counts).collect();
        let last = || ended.iter().map(|ended| ended.at).max().unwrap_or(self.begin);
        let simulated_ns = self.end.unwrap_or_else(last).since_ns(self.begin);
        // Of those that begin or end outside nothing is told.
        let requests = self.end.map_or(self.requests.get(), |_| ended.len() as u64);
        let bytes = |way| -> u64 {
            let of_way = all.iter().filter(|ended| ended.way == way);
            of_way.map(|ended| self.bytes_inside(ended)).sum::<f64>().round() as u64
        };
        let [reads, writes] = [Way::Read, Way::Write].map(|way| Latencies::of(&ended, way));
        Outcome {
            requests,
            completed: ended.len() as u64,
            bytes_read: bytes(Way::Read),
            bytes_written: bytes(Way::Write),
            simulated_ns,
            read_latency: reads.histogram.summary(),
            write_latency: writes.histogram.summary(),
            latency_stddev_ns: [reads.stddev_ns, writes.stddev_ns],
            series: self.series(&ended, simulated_ns, samples),
            ..Outcome::default()
        }
    }

    /// The bytes of a request that moved in the measured part.
    fn bytes_inside(&self, ended: &Ended) -> f64 {
        let Some(end) = self.end else { return ended.bytes as f64 };
        let made_at = Time(ended.at.0 - ended.latency_ns);
        let inside_ns = ended.at.min(end).since_ns(made_at.max(self.begin));
        match ended.latency_ns {
            0 if ended.at >= self.begin && ended.at < end => ended.bytes as f64,
            0 => 0.0,
            latency_ns => ended.bytes as f64 * inside_ns as f64 / latency_ns as f64,
        }
    }

    fn series(&self, ended: &[&Ended], simulated_ns: u64, samples: u32) -> Vec<Sample> {
        let step_ns = simulated_ns.div_ceil(u64::from(samples.max(1))).max(1);
        let mut series = Vec::new();
        let mut histogram = LatencyHistogram::new();
        let mut sample = Sample::default();
        let mut close = |sample: Sample, histogram: &mut LatencyHistogram| {
            let latency_ns = [50.0, 99.0, 99.9].map(|percent| histogram.percentile_ns(percent));
            series.push(Sample { latency_ns, ..sample });
            histogram.clear();
        };
        sample.at_ns = step_ns;
        // Requests are taken down as they end, so they are in order.
        for request in ended {
            while request.at.since_ns(self.begin) > sample.at_ns {
                close(sample, &mut histogram);
                sample = Sample { at_ns: sample.at_ns + step_ns, ..Sample::default() };
            }
            match request.way {
                Way::Read => sample.bytes_read += request.bytes,
                Way::Write => sample.bytes_written += request.bytes,
            }
            histogram.record_ns(request.latency_ns);
        }
        close(sample, &mut histogram);
        series
    }
}

/// The latencies of one way.
struct Latencies {
    histogram: LatencyHistogram,
    stddev_ns: f64,
}

impl Latencies {
    fn of(ended: &[&Ended], way: Way) -> Latencies {
        let mut histogram = LatencyHistogram::new();
        let latencies = || ended.iter().filter(|e| e.way == way).map(|ended| ended.latency_ns);
        latencies().for_each(|latency_ns| histogram.record_ns(latency_ns));
        let mean_ns = histogram.mean_ns();
        let squares: f64 = latencies().map(|ns| (ns as f64 - mean_ns).powi(2)).sum();
        let stddev_ns = (squares / (histogram.count().max(1)) as f64).sqrt();
        Latencies { histogram, stddev_ns }
    }
}

/// How many requests a client may still make, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Requests.
    pub requests: Option<u64>,
    /// No request is made from then on.
    pub until: Option<Time>,
}

impl Quota {
    /// The share of client number `client` out of `clients` in the limits of a run that begins at `begin`.
    pub fn share(limits: &Limits, begin: Time, client: u64, clients: u64) -> Quota {
        let share = |all: u64| all / clients + u64::from(client < all % clients);
        Quota {
            requests: limits.requests.map(share),
            until: limits.duration_ns.map(|ns| begin + ns),
        }
    }

    /// A quota of time alone.
    pub fn until(time: Time) -> Quota {
        Quota { requests: None, until: Some(time) }
    }

    /// Takes one request, if there is one left.
    pub fn take(&mut self, now: Time) -> bool {
        let in_time = self.until.is_none_or(|until| now < until);
        match &mut self.requests {
            Some(0) => false,
            Some(left) if in_time => {
                *left -= 1;
                true
            }
            _ => in_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_is_added_up_and_told_over_time() {
        let tally = Tally::new(Time(1000));
        for (way, made_at, at) in
            [(Way::Read, 1000, 1100), (Way::Read, 1000, 1300), (Way::Write, 1100, 1400)]
        {
            tally.made();
            tally.ended(way, Time(made_at), Time(at), 10);
        }
        let outcome = tally.outcome(4);
        assert_eq!((outcome.requests, outcome.completed), (3, 3));
        assert_eq!(
            (outcome.bytes_read, outcome.bytes_written, outcome.simulated_ns),
            (20, 10, 400)
        );
        assert_eq!(outcome.read_latency.mean_ns, 200.0);
        assert_eq!(outcome.latency_stddev_ns, [100.0, 0.0]);
        let told: Vec<_> =
            outcome.series.iter().map(|s| (s.at_ns, s.bytes_read, s.bytes_written)).collect();
        assert_eq!(told, [(100, 10, 0), (200, 0, 0), (300, 10, 0), (400, 0, 10)]);
    }

    #[test]
    fn a_window_counts_what_ends_in_it_and_the_bytes_that_move_in_it() {
        let tally = Tally::within(Time(1000), Time(2000));
        for (made_at, at) in [(500, 999), (900, 1100), (1500, 1900), (1800, 2600), (2000, 2100)] {
            tally.made();
            tally.ended(Way::Read, Time(made_at), Time(at), 8);
        }
        let outcome = tally.outcome(2);
        assert_eq!((outcome.requests, outcome.completed), (2, 2));
        assert_eq!(outcome.bytes_read, 4 + 8 + 2);
        assert_eq!((outcome.simulated_ns, outcome.read_latency.max_ns), (1000, 400));
    }

    #[test]
    fn quotas_share_out_every_request() {
        let limits = Limits { requests: Some(10), duration_ns: None, warm_up_ns: 0, samples: 1 };
        let mut made = 0;
        for client in 0..4 {
            let mut quota = Quota::share(&limits, Time::ZERO, client, 4);
            while quota.take(Time(7)) {
                made += 1;
            }
        }
        assert_eq!(made, 10);
        assert!(Quota::until(Time(8)).take(Time(7)) && !Quota::until(Time(8)).take(Time(8)));
    }
}
