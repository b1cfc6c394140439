//! The meter of all engines: latencies and bytes of requests, in total and over time.

use super::drift::Marks;
use crate::cell::Limits;
use crate::outcome::{Outcome, SLOW_MS, Sample, shares};
use softflash_base::histogram::LatencyHistogram;
use softflash_base::{AccessKind, Time};

/// The completion of a request.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// The kind of the request.
    pub kind: AccessKind,
    /// When it completed.
    pub at: Time,
    /// From submission to completion.
    pub latency_ns: u64,
    /// Its length.
    pub bytes: u64,
}

/// Pages written and programmed so far, for write amplification over time.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageCounts {
    /// Pages that the host wrote.
    pub written: u64,
    /// Pages that were programmed with them.
    pub programmed_for_host: u64,
    /// Pages that were programmed for any cause.
    pub programmed: u64,
}

/// A source of [`PageCounts`].
pub trait CountsPages {
    /// The counts up to now.
    fn page_counts(&self) -> PageCounts;
}

/// No counts: write amplification over time is 0.
impl CountsPages for () {
    fn page_counts(&self) -> PageCounts {
        PageCounts::default()
    }
}

/// The intervals of a time series.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    every_ns: u64,
    every_requests: u64,
}

impl Cut {
    /// Intervals of equal length.
    pub fn every_ns(every_ns: u64) -> Cut {
        Cut { every_ns: every_ns.max(1), every_requests: u64::MAX }
    }

    /// The intervals of one of several flows: of equal duration if the run has one, else one.
    pub fn of_time(limits: &Limits) -> Cut {
        Cut { every_requests: u64::MAX, ..Cut::of(limits) }
    }

    /// The intervals of a run whose requests complete in time order: of equal duration if the run
    /// has one, else of equal numbers of requests. One interval if it has neither.
    pub fn of(limits: &Limits) -> Cut {
        let samples = u64::from(limits.samples.max(1));
        let cut = |all: u64| all.div_ceil(samples).max(1);
        let by_requests = limits.requests.filter(|_| limits.duration_ns.is_none());
        Cut {
            every_ns: limits.duration_ns.map_or(u64::MAX, cut),
            every_requests: by_requests.map_or(u64::MAX, cut),
        }
    }
}

/// Counts completions, in time order.
pub struct Meter {
    begin_ns: u64,
    last_ns: u64,
    completed: u64,
    bytes: [u64; 2],
    /// Sums of squares of latencies, for their standard deviation.
    squares: [f64; 2],
    total: [LatencyHistogram; 2],
    interval: Interval,
    cut: Cut,
    series: Vec<Sample>,
    marks: Marks,
}

#[derive(Default)]
struct Interval {
    ends_ns: u64,
    requests: u64,
    bytes: [u64; 2],
    latency: [LatencyHistogram; 2],
    pages: PageCounts,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Meter {
    /// A meter from `begin` on.
    pub fn new(begin: Time, cut: Cut) -> Meter {
        let ends_ns = begin.0.saturating_add(cut.every_ns);
        Meter {
            begin_ns: begin.0,
            last_ns: begin.0,
            completed: 0,
            bytes: [0; 2],
            squares: [0.0; 2],
            total: [LatencyHistogram::new(), LatencyHistogram::new()],
            interval: Interval { ends_ns, ..Interval::default() },
            cut,
            series: Vec::new(),
            marks: Marks::new(),
        }
    }

    /// The beginning of the measured part, in nanoseconds.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// The last completion, in nanoseconds.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Completed requests.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// Counts a completion. Trims count as writes of no bytes.
    #[inline(always)]
    pub fn add(&mut self, completion: Completion, pages: &impl CountsPages) {
        let Completion { kind, at, latency_ns, bytes } = completion;
        let interval = &self.interval;
        if at.0 > interval.ends_ns || interval.requests >= self.cut.every_requests {
            self.close(at.0, pages);
        }
        let way = if kind == AccessKind::Read { READ } else { WRITE };
        self.completed += 1;
        if self.completed == self.marks.due() {
            self.marks.note(pages.page_counts());
        }
        self.last_ns = at.0;
        // Signed, as processors convert signed integers in one instruction; latencies up to three
        // centuries fit.
        self.squares[way] += (latency_ns as i64 as f64).powi(2);
        self.interval.requests += 1;
        if kind != AccessKind::Trim {
            self.interval.bytes[way] += bytes;
        }
        self.interval.latency[way].record_ns(latency_ns);
    }

    /// Ends the interval, and all empty ones up to `now`.
    #[cold]
    fn close(&mut self, now: u64, pages: &impl CountsPages) {
        let counts = pages.page_counts();
        let interval = &mut self.interval;
        let mut latency = interval.latency[READ].clone();
        latency.merge(&interval.latency[WRITE]);
        let every_ns = self.cut.every_ns;
        let ends_ns = if every_ns == u64::MAX { self.last_ns } else { interval.ends_ns };
        let written = counts.written - interval.pages.written;
        let programmed = counts.programmed - interval.pages.programmed;
        self.series.push(Sample {
            at_ns: ends_ns - self.begin_ns,
            bytes_read: interval.bytes[READ],
            bytes_written: interval.bytes[WRITE],
            latency_ns: [50.0, 99.0, 99.9].map(|percent| latency.percentile_ns(percent)),
            read_latency: interval.latency[READ].summary(),
            write_latency: interval.latency[WRITE].summary(),
            waf: if written == 0 { 0.0 } else { programmed as f64 / written as f64 },
        });
        for way in [READ, WRITE] {
            self.bytes[way] += interval.bytes[way];
            self.total[way].merge(&interval.latency[way]);
            interval.latency[way].clear();
        }
        (interval.requests, interval.bytes, interval.pages) = (0, [0; 2], counts);
        if every_ns != u64::MAX {
            interval.ends_ns += every_ns;
            while interval.ends_ns < now {
                let at_ns = interval.ends_ns - self.begin_ns;
                self.series.push(Sample { at_ns, ..Sample::default() });
                interval.ends_ns += every_ns;
            }
        }
    }

    /// The figures of all completions.
    pub fn outcome(mut self, pages: &impl CountsPages) -> Outcome {
        self.close(self.last_ns, pages);
        let [of_reads, of_writes] = [READ, WRITE].map(|way| self.stddev_ns(way));
        Outcome {
            requests: self.completed,
            completed: self.completed,
            bytes_read: self.bytes[READ],
            bytes_written: self.bytes[WRITE],
            simulated_ns: self.last_ns - self.begin_ns,
            read_latency: self.total[READ].summary(),
            write_latency: self.total[WRITE].summary(),
            latency_stddev_ns: [of_reads, of_writes],
            slow: [READ, WRITE].map(|way| self.slow(way)),
            distribution_ns: [READ, WRITE].map(|way| self.distribution_ns(way)),
            drift: self.marks.drift(),
            series: self.series,
            ..Outcome::default()
        }
    }

    fn slow(&self, way: usize) -> Vec<u64> {
        SLOW_MS.map(|ms| self.total[way].count_above(ms * 1_000_000)).into()
    }

    fn distribution_ns(&self, way: usize) -> Vec<u64> {
        let latencies = &self.total[way];
        let points = shares().map(|share| latencies.percentile_ns(100.0 * share));
        if latencies.count() == 0 { Vec::new() } else { points.collect() }
    }

    fn stddev_ns(&self, way: usize) -> f64 {
        let count = self.total[way].count().max(1) as f64;
        let mean = self.total[way].mean_ns();
        (self.squares[way] / count - mean * mean).max(0.0).sqrt()
    }
}
