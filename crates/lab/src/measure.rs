//! Figures of an outcome, by name.

use crate::outcome::{Outcome, SLOW_MS};
use crate::toml_text::suggestion;
use softflash_base::histogram::LatencySummary;

/// A figure that a row shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Measure {
    /// Bandwidth, in bytes a second.
    Bandwidth {
        /// Reads, writes or both.
        of: Direction,
        /// The divisor and its unit.
        scale: Scale,
    },
    /// The bandwidth limit of flash and link, independent of the layout.
    Limit {
        /// Reads, writes or both.
        of: Direction,
        /// The divisor and its unit.
        scale: Scale,
    },
    /// Requests a second.
    Rate(Direction),
    /// A latency.
    Latency {
        /// Reads, writes or both.
        of: Direction,
        /// The figure of the distribution.
        what: LatencyFigure,
        /// The divisor and its unit.
        scale: Scale,
    },
    /// Standard deviation of latencies as a share of their mean.
    StddevShare(Direction),
    /// Percentage of the requests that took longer than one of [`SLOW_MS`], which has this index.
    SlowPercent {
        /// Reads, writes or both.
        of: Direction,
        /// The index.
        index: usize,
    },
    /// Pages programmed for each page of the application's.
    Waf,
    /// Bytes programmed for each byte that the application wrote.
    WafBytes,
    /// The relative change of write amplification over the measured part, in percent.
    Drift,
    /// Whether the device kept up with the arrivals of an open load: 1, or 0. A closed load waits
    /// for the device, so it always does.
    KeptUp,
    /// Whether write amplification still drifts: 1, or 0. 0 where the drift is unknown.
    Drifting,
    /// Blocks erased.
    Erases,
    /// Virtual seconds.
    Simulated,
    /// Mean over channels of the share of the time that they were busy.
    ChannelUtilisation,
    /// Mean over dies of the share of the time that they were busy.
    DieUtilisation,
    /// A figure of the engine, by name.
    Figure(String),
    /// A figure of one of several flows.
    OfFlow {
        /// The flow's name.
        flow: String,
        /// The figure.
        measure: Box<Measure>,
    },
}

/// Reads, writes or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Both together.
    Both,
}

/// Which latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyFigure {
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// 99.99th percentile.
    P9999,
    /// Longest.
    Max,
    /// Standard deviation.
    Stddev,
}

/// A unit, and its divisor for figures in base units (bytes a second, nanoseconds).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    suffix: &'static str,
    unit: &'static str,
    divisor: f64,
}

const fn scale(suffix: &'static str, unit: &'static str, divisor: f64) -> Scale {
    Scale { suffix, unit, divisor }
}

const BANDWIDTHS: [Scale; 2] = [scale("gb_s", "GB/s", 1e9), scale("mb_s", "MB/s", 1e6)];
const TIMES: [Scale; 4] =
    [scale("ns", "ns", 1.0), scale("us", "us", 1e3), scale("ms", "ms", 1e6), scale("s", "s", 1e9)];
const LATENCIES: [(&str, LatencyFigure); 9] = [
    ("mean", LatencyFigure::Mean),
    ("p50", LatencyFigure::P50),
    ("p90", LatencyFigure::P90),
    ("p95", LatencyFigure::P95),
    ("p99", LatencyFigure::P99),
    ("p999", LatencyFigure::P999),
    ("p9999", LatencyFigure::P9999),
    ("max", LatencyFigure::Max),
    ("stddev", LatencyFigure::Stddev),
];
const PLAIN: [(&str, Measure); 13] = [
    ("iops", Measure::Rate(Direction::Both)),
    ("read_iops", Measure::Rate(Direction::Read)),
    ("write_iops", Measure::Rate(Direction::Write)),
    ("read_stddev_share", Measure::StddevShare(Direction::Read)),
    ("write_stddev_share", Measure::StddevShare(Direction::Write)),
    ("waf", Measure::Waf),
    ("waf_bytes", Measure::WafBytes),
    ("drift_percent", Measure::Drift),
    ("kept_up", Measure::KeptUp),
    ("drifting", Measure::Drifting),
    ("erases", Measure::Erases),
    ("channel_utilisation", Measure::ChannelUtilisation),
    ("die_utilisation", Measure::DieUtilisation),
];

/// Every name with its measure, except `figures.NAME`.
fn all() -> Vec<(String, Measure)> {
    use Direction::{Both, Read, Write};
    let mut all: Vec<(String, Measure)> =
        PLAIN.iter().map(|(name, measure)| ((*name).to_owned(), measure.clone())).collect();
    all.push(("simulated_s".to_owned(), Measure::Simulated));
    for (name, of) in [("throughput", Both), ("read", Read), ("write", Write)] {
        for scale in BANDWIDTHS {
            let measure = Measure::Bandwidth { of, scale };
            all.push((format!("{name}_{}", scale.suffix), measure));
        }
    }
    for (name, of) in [("read", Read), ("write", Write)] {
        for scale in BANDWIDTHS {
            all.push((format!("{name}_limit_{}", scale.suffix), Measure::Limit { of, scale }));
        }
    }
    for (prefix, of) in [("read_", Read), ("write_", Write), ("", Both)] {
        for (figure, what) in LATENCIES {
            for scale in TIMES {
                let measure = Measure::Latency { of, what, scale };
                all.push((format!("{prefix}{figure}_{}", scale.suffix), measure));
            }
        }
        for (index, ms) in SLOW_MS.iter().enumerate() {
            let measure = Measure::SlowPercent { of, index };
            all.push((format!("{prefix}over_{ms}_ms_percent"), measure));
        }
    }
    all
}

/// The names of all measures, except `figures.NAME`.
pub fn names() -> Vec<String> {
    all().into_iter().map(|(name, _)| name).collect()
}

impl Measure {
    /// The measure of this name, as `read_gb_s`, `write_mean_ms` or `figures.capacity_share`.
    pub fn parse(name: &str) -> Result<Measure, String> {
        if let Some(figure) = name.strip_prefix("figures.") {
            return Ok(Measure::Figure(figure.to_owned()));
        }
        if let Some(of_flow) = name.strip_prefix("flow.") {
            return Measure::parse_of_flow(of_flow);
        }
        let all = all();
        if let Some((_, measure)) = all.iter().find(|(known, _)| known == name) {
            return Ok(measure.clone());
        }
        let known: Vec<&str> = all.iter().map(|(known, _)| known.as_str()).collect();
        Err(format!("unknown measure `{name}`; {}", suggestion(name, known)))
    }

    /// The measure of `FLOW.MEASURE`.
    fn parse_of_flow(name: &str) -> Result<Measure, String> {
        let form = || "write flow.NAME.MEASURE, as flow.reader.read_p99_us".to_owned();
        let (flow, measure) = name.rsplit_once('.').ok_or_else(form)?;
        let measure = Box::new(Measure::parse(measure)?);
        match *measure {
            Measure::Bandwidth { .. }
            | Measure::Rate(_)
            | Measure::Latency { .. }
            | Measure::StddevShare(_)
            | Measure::SlowPercent { .. }
            | Measure::Simulated => Ok(Measure::OfFlow { flow: flow.to_owned(), measure }),
            _ => Err(format!(
                "`{name}` is a figure of the device; a flow has throughput, requests a second and latencies"
            )),
        }
    }

    /// Whether it is true or false, as 1 or 0.
    pub fn is_flag(&self) -> bool {
        matches!(self, Measure::KeptUp | Measure::Drifting)
    }

    /// The unit of the figure.
    pub fn unit(&self) -> &'static str {
        match self {
            Measure::OfFlow { measure, .. } => measure.unit(),
            Measure::Bandwidth { scale, .. }
            | Measure::Limit { scale, .. }
            | Measure::Latency { scale, .. } => scale.unit,
            Measure::Rate(_) => "IOPS",
            Measure::Simulated => "s",
            Measure::Erases => "blocks",
            Measure::SlowPercent { .. } | Measure::Drift => "%",
            _ => "",
        }
    }

    /// Its name for readers, as `read latency, 99th percentile`.
    pub fn words(&self) -> String {
        match self {
            Measure::Bandwidth { of, .. } => format!("{} throughput", of.word()),
            Measure::Limit { of, .. } => format!("limit of {} throughput", of.word()),
            Measure::Rate(of) => format!("{} requests a second", of.word()),
            Measure::Latency { of, what, .. } => format!("{} latency, {}", of.word(), what.words()),
            Measure::StddevShare(of) => format!("{} latency, standard deviation / mean", of.word()),
            Measure::SlowPercent { of, index } => {
                let ms = SLOW_MS.get(*index).copied().unwrap_or_default();
                format!("{} requests over {ms} ms", of.word())
            }
            Measure::Waf => "write amplification in pages".to_owned(),
            Measure::WafBytes => "write amplification in bytes".to_owned(),
            Measure::Drift => "drift of write amplification".to_owned(),
            Measure::KeptUp => "kept up with the arrivals".to_owned(),
            Measure::Drifting => "write amplification drifts".to_owned(),
            Measure::Erases => "erases".to_owned(),
            Measure::Simulated => "virtual time".to_owned(),
            Measure::ChannelUtilisation => "utilisation of channels".to_owned(),
            Measure::DieUtilisation => "utilisation of dies".to_owned(),
            Measure::Figure(name) => name.replace('_', " "),
            Measure::OfFlow { flow, measure } => format!("{flow}: {}", measure.words()),
        }
    }

    /// The figure of an outcome; the error names the missing data.
    pub fn of(&self, outcome: &Outcome) -> Result<f64, String> {
        let [read, write] = outcome.bytes_per_second();
        Ok(match self {
            Measure::Bandwidth { of, scale } => {
                let bytes_per_second = match of {
                    Direction::Read => read,
                    Direction::Write => write,
                    Direction::Both => read + write,
                };
                bytes_per_second / scale.divisor
            }
            Measure::Rate(of) => {
                let ended = match of {
                    Direction::Read => outcome.read_latency.count,
                    Direction::Write => outcome.write_latency.count,
                    Direction::Both => outcome.completed,
                };
                ended as f64 / outcome.seconds()
            }
            Measure::Latency { of, what, scale } => latency(outcome, *of, *what)? / scale.divisor,
            Measure::StddevShare(of) => {
                let mean = latency(outcome, *of, LatencyFigure::Mean)?;
                latency(outcome, *of, LatencyFigure::Stddev)? / mean.max(f64::MIN_POSITIVE)
            }
            Measure::SlowPercent { of, index } => slow_percent(outcome, *of, *index)?,
            Measure::Waf => outcome.programs.waf(),
            Measure::WafBytes => outcome.waf_bytes(),
            Measure::Drift => 100.0 * drift(outcome)?,
            Measure::KeptUp => flag(outcome.backlog.is_none_or(|backlog| backlog.kept_up())),
            Measure::Drifting => flag(outcome.drift.is_some_and(|drift| drift.is_significant())),
            Measure::Erases => outcome.erases as f64,
            Measure::Simulated => outcome.simulated_ns as f64 / 1e9,
            Measure::ChannelUtilisation => mean(&outcome.channel_utilisation),
            Measure::DieUtilisation => mean(&outcome.die_utilisation),
            Measure::Limit { of, scale } => {
                let name = match of {
                    Direction::Write => "write_limit_bytes_per_second",
                    _ => "read_limit_bytes_per_second",
                };
                figure(outcome, name)? / scale.divisor
            }
            Measure::Figure(name) => figure(outcome, name)?,
            Measure::OfFlow { flow, measure } => {
                let found = outcome.flows.iter().find(|of| of.name == *flow);
                let known = || outcome.flows.iter().map(|of| of.name.as_str()).collect::<Vec<_>>();
                let missing = || match outcome.flows.is_empty() {
                    true => format!("the run has no flows, and so no flow `{flow}`"),
                    false => format!("the run has no flow `{flow}`; {}", suggestion(flow, known())),
                };
                measure.of(&found.ok_or_else(missing)?.as_run())?
            }
        })
    }
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Direction::Read => "read",
            Direction::Write => "write",
            Direction::Both => "read and write",
        }
    }
}

impl LatencyFigure {
    fn words(self) -> &'static str {
        match self {
            LatencyFigure::Mean => "mean",
            LatencyFigure::P50 => "median",
            LatencyFigure::P90 => "90th percentile",
            LatencyFigure::P95 => "95th percentile",
            LatencyFigure::P99 => "99th percentile",
            LatencyFigure::P999 => "99.9th percentile",
            LatencyFigure::P9999 => "99.99th percentile",
            LatencyFigure::Max => "longest",
            LatencyFigure::Stddev => "standard deviation",
        }
    }
}

fn figure(outcome: &Outcome, name: &str) -> Result<f64, String> {
    outcome.figures.get(name).copied().ok_or_else(|| {
        let known: Vec<&str> = outcome.figures.keys().map(String::as_str).collect();
        format!("the run gives no figure `{name}`; {}", suggestion(name, known))
    })
}

fn flag(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Latencies of a kind, with their standard deviation.
#[derive(Clone, Copy)]
struct Latencies<'a> {
    summary: &'a LatencySummary,
    stddev_ns: f64,
    slow: &'a [u64],
}

/// The latencies of the kinds of requests that the run has; the error is that there are none.
fn latencies(outcome: &Outcome, of: Direction) -> Result<Vec<Latencies<'_>>, String> {
    let [read_stddev_ns, write_stddev_ns] = outcome.latency_stddev_ns;
    let [slow_reads, slow_writes] = &outcome.slow;
    let (reads, writes) = (&outcome.read_latency, &outcome.write_latency);
    let reads = Latencies { summary: reads, stddev_ns: read_stddev_ns, slow: slow_reads };
    let writes = Latencies { summary: writes, stddev_ns: write_stddev_ns, slow: slow_writes };
    let (name, asked) = match of {
        Direction::Read => ("reads", vec![reads]),
        Direction::Write => ("writes", vec![writes]),
        Direction::Both => ("requests", vec![reads, writes]),
    };
    let made: Vec<_> = asked.into_iter().filter(|kind| kind.summary.count > 0).collect();
    match made.is_empty() {
        true => Err(format!("the run has no {name}, and so no latency of them")),
        false => Ok(made),
    }
}

fn drift(outcome: &Outcome) -> Result<f64, String> {
    let none = || {
        "the drift of write amplification is unknown: it needs block requests on a page-mapped \
         layout, at least 2048 of them, and writes in their first and last quarter"
            .to_owned()
    };
    outcome.drift.map(|drift| drift.change).ok_or_else(none)
}

fn slow_percent(outcome: &Outcome, of: Direction, index: usize) -> Result<f64, String> {
    let kinds = latencies(outcome, of)?;
    let all: u64 = kinds.iter().map(|kind| kind.summary.count).sum();
    let slow: u64 = kinds.iter().filter_map(|kind| kind.slow.get(index)).sum();
    Ok(slow as f64 * 100.0 / all as f64)
}

/// A latency of reads or of writes. Of both together: the mean is that of all requests, every other
/// figure the larger of the two, which no more of all requests exceed.
fn latency(outcome: &Outcome, of: Direction, what: LatencyFigure) -> Result<f64, String> {
    let kinds = latencies(outcome, of)?;
    if what == LatencyFigure::Mean {
        let sum = |of: fn(&LatencySummary) -> f64| kinds.iter().map(|kind| of(kind.summary)).sum();
        let (all, count): (f64, f64) =
            (sum(|it| it.mean_ns * it.count as f64), sum(|it| it.count as f64));
        return Ok(all / count);
    }
    Ok(kinds.into_iter().map(|kind| kind.figure(what)).fold(0.0, f64::max))
}

impl Latencies<'_> {
    fn figure(self, what: LatencyFigure) -> f64 {
        let summary = self.summary;
        match what {
            LatencyFigure::Mean => summary.mean_ns,
            LatencyFigure::P50 => summary.p50_ns as f64,
            LatencyFigure::P90 => summary.p90_ns as f64,
            LatencyFigure::P95 => summary.p95_ns as f64,
            LatencyFigure::P99 => summary.p99_ns as f64,
            LatencyFigure::P999 => summary.p999_ns as f64,
            LatencyFigure::P9999 => summary.p9999_ns as f64,
            LatencyFigure::Max => summary.max_ns as f64,
            LatencyFigure::Stddev => self.stddev_ns,
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Backlog, Drift};

    fn outcome() -> Outcome {
        Outcome {
            requests: 30,
            completed: 30,
            bytes_read: 3_000_000_000,
            bytes_written: 1_000_000_000,
            simulated_ns: 2_000_000_000,
            read_latency: LatencySummary {
                count: 30,
                mean_ns: 2e6,
                p90_ns: 3_000_000,
                p9999_ns: 9_000_000,
                ..LatencySummary::default()
            },
            programmed_bytes: 4_000_000_000,
            drift: Some(Drift { change: -0.015, noise: 0.0 }),
            latency_stddev_ns: [5e5, 0.0],
            slow: [vec![30, 27, 9, 8, 7, 6, 0, 0, 0, 0], vec![0; 10]],
            channel_utilisation: vec![0.5, 1.0],
            figures: [("capacity_share".to_owned(), 0.99)].into(),
            ..Outcome::default()
        }
    }

    #[test]
    fn names_lead_to_figures_in_their_units() {
        let cases = [
            ("throughput_gb_s", 2.0, "GB/s"),
            ("read_mb_s", 1500.0, "MB/s"),
            ("write_gb_s", 0.5, "GB/s"),
            ("iops", 15.0, "IOPS"),
            ("read_mean_ms", 2.0, "ms"),
            ("read_mean_us", 2000.0, "us"),
            ("read_stddev_share", 0.25, ""),
            ("read_p90_ms", 3.0, "ms"),
            ("read_p9999_ms", 9.0, "ms"),
            ("waf_bytes", 4.0, ""),
            ("drift_percent", -1.5, "%"),
            ("read_over_5_ms_percent", 30.0, "%"),
            ("read_over_50_ms_percent", 20.0, "%"),
            ("channel_utilisation", 0.75, ""),
            ("figures.capacity_share", 0.99, ""),
            ("simulated_s", 2.0, "s"),
        ];
        for (name, expected, unit) in cases {
            let measure = Measure::parse(name).unwrap();
            assert_eq!((measure.of(&outcome()), measure.unit()), (Ok(expected), unit), "{name}");
        }
    }

    #[test]
    fn a_flow_has_figures_of_its_own() {
        let flow = |name: &str, bytes_read| crate::outcome::FlowOutcome {
            name: name.to_owned(),
            bytes_read,
            active_ns: 1_000_000_000,
            ..Default::default()
        };
        let flows = vec![flow("a", 1_000_000), flow("b.c", 3_000_000)];
        let outcome = Outcome { flows, ..outcome() };
        let of = |name: &str| Measure::parse(name).and_then(|measure| measure.of(&outcome));
        assert_eq!((of("flow.a.read_mb_s"), of("flow.b.c.read_mb_s")), (Ok(1.0), Ok(3.0)));
        assert_eq!(Measure::parse("flow.a.read_p99_us").unwrap().unit(), "us");
        assert!(of("flow.d.read_mb_s").unwrap_err().contains("no flow `d`; known are a, b.c"));
        assert!(of("flow.a.waf").unwrap_err().contains("a figure of the device"));
        assert!(of("flow.iops").unwrap_err().contains("flow.NAME.MEASURE"));
    }

    #[test]
    fn a_latency_without_a_kind_is_that_of_all_requests_or_of_the_slower_kind() {
        let summary = |count, mean_ns, p999_ns| LatencySummary {
            count,
            mean_ns,
            p999_ns,
            ..LatencySummary::default()
        };
        let mixed = Outcome {
            read_latency: summary(30, 100.0, 900),
            write_latency: summary(10, 500.0, 700),
            slow: [vec![3], vec![1]],
            backlog: Some(Backlog { arrivals_ns: 1000, waiting: 99, lag_ns: 500 }),
            ..Outcome::default()
        };
        let cases = [
            ("p999_ns", 900.0),
            ("mean_ns", 200.0),
            ("write_p999_ns", 700.0),
            ("over_1_ms_percent", 10.0),
            ("kept_up", 0.0),
            ("drifting", 0.0),
        ];
        for (name, expected) in cases {
            assert_eq!(Measure::parse(name).unwrap().of(&mixed), Ok(expected), "{name}");
        }
        assert_eq!(Measure::parse("kept_up").unwrap().of(&Outcome::default()), Ok(1.0));
    }

    #[test]
    fn words_say_whether_it_is_of_reads_or_of_writes() {
        for (name, words) in [
            ("read_p99_us", "read latency, 99th percentile"),
            ("throughput_gb_s", "read and write throughput"),
            ("write_over_50_ms_percent", "write requests over 50 ms"),
            ("waf_bytes", "write amplification in bytes"),
            ("figures.capacity_share", "capacity share"),
        ] {
            assert_eq!(Measure::parse(name).unwrap().words(), words);
        }
    }

    #[test]
    fn what_is_not_there_is_named() {
        assert!(Measure::parse("read_gbs").unwrap_err().contains("`read_gb_s`"));
        let missing = Measure::parse("figures.capacity_shar").unwrap().of(&outcome());
        assert!(missing.unwrap_err().contains("`capacity_share`"));
        let writes = Measure::parse("write_mean_us").unwrap().of(&outcome());
        assert!(writes.unwrap_err().contains("no writes"));
        let all = Measure::parse("p99_us").unwrap().of(&Outcome::default());
        assert!(all.unwrap_err().contains("no requests"));
        let drift = Measure::parse("drift_percent").unwrap().of(&Outcome::default());
        assert!(drift.unwrap_err().contains("at least 2048 of them"));
    }
}
