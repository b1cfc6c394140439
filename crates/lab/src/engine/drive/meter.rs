//! What a run measures.

use crate::cell::Limits;
use crate::outcome::{Outcome, Sample};
use softflash_base::histogram::LatencyHistogram;
use softflash_drive::{AccessKind, Done, Drive, DriveCounters};

/// Takes down ends of requests.
pub(super) struct Meter {
    begin_ns: u64,
    last_ns: u64,
    completed: u64,
    bytes: [u64; 2],
    /// Sums of squares of latencies, for their spread.
    squares: [f64; 2],
    total: [LatencyHistogram; 2],
    interval: Interval,
    /// When, or after how many requests, an interval ends.
    interval_ns: u64,
    interval_requests: u64,
    series: Vec<Sample>,
    busy_before: (Vec<u64>, Vec<u64>),
}

#[derive(Default)]
struct Interval {
    ends_ns: u64,
    requests: u64,
    bytes: [u64; 2],
    latency: [LatencyHistogram; 2],
    counters: DriveCounters,
}

const READ: usize = 0;
const WRITE: usize = 1;

impl Meter {
    pub(super) fn new(drive: &Drive, limits: &Limits) -> Meter {
        let samples = u64::from(limits.samples.max(1));
        let begin_ns = drive.now().0;
        let interval_ns = limits.duration_ns.map_or(u64::MAX, |ns| ns.div_ceil(samples).max(1));
        let by_requests = limits.requests.filter(|_| limits.duration_ns.is_none());
        Meter {
            begin_ns,
            last_ns: begin_ns,
            completed: 0,
            bytes: [0; 2],
            squares: [0.0; 2],
            total: [LatencyHistogram::new(), LatencyHistogram::new()],
            interval: Interval {
                ends_ns: begin_ns.saturating_add(interval_ns),
                ..Interval::default()
            },
            interval_ns,
            interval_requests: by_requests.map_or(u64::MAX, |all| all.div_ceil(samples).max(1)),
            series: Vec::new(),
            busy_before: busy(drive),
        }
    }

    pub(super) fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    pub(super) fn completed(&self) -> u64 {
        self.completed
    }

    /// A request has ended.
    #[inline(always)]
    pub(super) fn ended(&mut self, done: &Done, drive: &Drive) {
        if done.at.0 > self.interval.ends_ns || self.interval.requests >= self.interval_requests {
            self.close(done.at.0, drive);
        }
        let way = if done.kind == AccessKind::Read { READ } else { WRITE };
        let latency_ns = done.latency_ns();
        self.completed += 1;
        self.last_ns = done.at.0;
        // Signed, as processors have an instruction for that; three centuries fit.
        self.squares[way] += (latency_ns as i64 as f64).powi(2);
        self.interval.requests += 1;
        if done.kind != AccessKind::Trim {
            self.interval.bytes[way] += done.bytes;
        }
        self.interval.latency[way].record_ns(latency_ns);
    }

    /// Ends the interval, and all empty ones up to `now`.
    #[cold]
    fn close(&mut self, now: u64, drive: &Drive) {
        let counters = drive.counters();
        let interval = &mut self.interval;
        let mut latency = interval.latency[READ].clone();
        latency.merge(&interval.latency[WRITE]);
        let ends_ns = if self.interval_ns == u64::MAX { self.last_ns } else { interval.ends_ns };
        let written = counters.host_pages_written - interval.counters.host_pages_written;
        let programmed = programs(&counters) - programs(&interval.counters);
        self.series.push(Sample {
            at_ns: ends_ns - self.begin_ns,
            bytes_read: interval.bytes[READ],
            bytes_written: interval.bytes[WRITE],
            latency_ns: [50.0, 99.0, 99.9].map(|percent| latency.percentile_ns(percent)),
            waf: if written == 0 { 0.0 } else { programmed as f64 / written as f64 },
        });
        for way in [READ, WRITE] {
            self.bytes[way] += interval.bytes[way];
            self.total[way].merge(&interval.latency[way]);
            interval.latency[way].clear();
        }
        (interval.requests, interval.bytes, interval.counters) = (0, [0; 2], counters);
        if self.interval_ns != u64::MAX {
            interval.ends_ns += self.interval_ns;
            while interval.ends_ns < now {
                let at_ns = interval.ends_ns - self.begin_ns;
                self.series.push(Sample { at_ns, ..Sample::default() });
                interval.ends_ns += self.interval_ns;
            }
        }
    }

    /// Adds it all up.
    pub(super) fn outcome(mut self, drive: &Drive) -> Outcome {
        self.close(self.last_ns, drive);
        let simulated_ns = self.last_ns - self.begin_ns;
        // Work that was begun counts whole, and may end after the last request.
        let until_ns = (drive.now().0 - self.begin_ns).max(1) as f64;
        let share = |(now, before): (&u64, &u64)| (now - before) as f64 / until_ns;
        let (channels, dies) = busy(drive);
        let [of_reads, of_writes] = [READ, WRITE].map(|way| self.stddev_ns(way));
        Outcome {
            requests: self.completed,
            completed: self.completed,
            bytes_read: self.bytes[READ],
            bytes_written: self.bytes[WRITE],
            simulated_ns,
            read_latency: self.total[READ].summary(),
            write_latency: self.total[WRITE].summary(),
            latency_stddev_ns: [of_reads, of_writes],
            series: self.series,
            channel_utilisation: channels.iter().zip(&self.busy_before.0).map(share).collect(),
            die_utilisation: dies.iter().zip(&self.busy_before.1).map(share).collect(),
            ..Outcome::default()
        }
    }

    fn stddev_ns(&self, way: usize) -> f64 {
        let count = self.total[way].count().max(1) as f64;
        let mean = self.total[way].mean_ns();
        (self.squares[way] / count - mean * mean).max(0.0).sqrt()
    }
}

fn programs(counters: &DriveCounters) -> u64 {
    counters.programmed_for_host
        + counters.programmed_for_collection
        + counters.programmed_for_parity
}

/// How long channels and dies have been busy.
pub(in crate::engine) fn busy(drive: &Drive) -> (Vec<u64>, Vec<u64>) {
    let channels = (0..drive.channels()).map(|channel| drive.channel_busy_ns(channel)).collect();
    let dies = (0..drive.dies()).map(|die| drive.die_busy_ns(die)).collect();
    (channels, dies)
}
