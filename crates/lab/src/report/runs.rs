//! Charts of runs: throughput and latency over time, programs by cause, utilisation of channels,
//! operations of dies.

use super::distribution;
use super::shown::Run;
use crate::outcome::{Outcome, Sample, Span};
use softflash_base::histogram::LatencySummary;
use softflash_nand::Activity;
use softflash_report::{Axis, Bars, Block, Gantt, Heat, Plot, Series, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of runs in a chart.
const SHOWN: usize = 40;
/// The maximum number of dies in a chart of operations.
const DIES: usize = 32;

/// Charts of all runs together, then the course of the first run of each device and layout.
pub(super) fn blocks(runs: &[&Run]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    blocks.extend(causes(runs).map(Block::Bars));
    blocks.extend(channels(runs).map(Block::Heat));
    let mut seen = BTreeSet::new();
    for run in runs {
        let cell = &run.file.cell;
        if seen.insert((cell.device.name.clone(), cell.layout_name.clone())) {
            blocks.extend(course(run));
        }
    }
    blocks
}

/// Pages programmed for each page of the application's, by cause.
fn causes(runs: &[&Run]) -> Option<Bars> {
    let written = runs.iter().filter(|run| run.file.outcome.programs.host > 0);
    let written: Vec<&&Run> = written.take(SHOWN).collect();
    if written.is_empty() {
        return None;
    }
    let categories = [
        "application",
        "garbage collection",
        "folding",
        "compaction",
        "parity",
        "logs and metadata",
    ];
    let axis = Axis::new("pages programmed for each page written");
    let mut bars = Bars::new("Write amplification by cause", axis, categories);
    for run in written {
        let programs = run.file.outcome.programs;
        let causes = [
            programs.host,
            programs.collection,
            programs.folding,
            programs.compaction,
            programs.parity,
            programs.metadata,
        ];
        let share = |pages: u64| pages as f64 / programs.host as f64;
        bars = bars.bar(&*run.label, causes.map(share));
    }
    Some(bars)
}

/// The share of the time that each channel was busy.
fn channels(runs: &[&Run]) -> Option<Heat> {
    let told = runs.iter().filter(|run| !run.file.outcome.channel_utilisation.is_empty());
    let told: Vec<&&Run> = told.take(SHOWN).collect();
    let width = told.iter().map(|run| run.file.outcome.channel_utilisation.len()).max()?;
    let names = (0..width).map(|channel| channel.to_string());
    let mut heat = Heat::new("Utilisation of channels", Unit::Share, names)
        .columns_title("channel")
        .range(0.0, 1.0);
    for run in told {
        heat = heat.row(&*run.label, run.file.outcome.channel_utilisation.iter().copied());
    }
    Some(heat)
}

/// A run over time.
fn course(run: &Run) -> Vec<Block> {
    let outcome = &run.file.outcome;
    let mut blocks = Vec::new();
    if !outcome.series.is_empty() {
        blocks.push(Block::Plot(throughput(&run.label, outcome)));
        let reads = latency(&run.label, "reads", outcome, |sample| &sample.read_latency);
        let writes = latency(&run.label, "writes", outcome, |sample| &sample.write_latency);
        blocks.extend([reads, writes].into_iter().flatten().map(Block::Plot));
    }
    blocks.extend(distribution::of_run(&run.label, outcome).map(Block::Plot));
    if !outcome.gantt.is_empty() {
        blocks.push(Block::Gantt(operations(&run.label, &outcome.gantt)));
    }
    blocks
}

fn throughput(label: &str, outcome: &Outcome) -> Plot {
    let rates = |bytes: fn(&Sample) -> u64| {
        let begins = std::iter::once(0).chain(outcome.series.iter().map(|sample| sample.at_ns));
        let rate = move |(begin_ns, sample): (u64, &Sample)| {
            let ns = sample.at_ns.saturating_sub(begin_ns).max(1);
            (sample.at_ns as f64, bytes(sample) as f64 * 1e3 / ns as f64)
        };
        begins.zip(&outcome.series).map(rate).collect::<Vec<_>>()
    };
    let x = Axis::new("time").unit(Unit::Nanoseconds);
    let y = Axis::new("throughput").unit("MB/s").including(0.0);
    Plot::new(format!("Throughput over time: {label}"), x, y)
        .series(Series::new("reads", rates(|sample| sample.bytes_read)))
        .series(Series::new("writes", rates(|sample| sample.bytes_written)))
}

/// A percentile of a sample's latencies, with its name.
type Percentile = (&'static str, fn(&LatencySummary) -> u64);

const PERCENTILES: [Percentile; 6] = [
    ("median", |latency| latency.p50_ns),
    ("90th percentile", |latency| latency.p90_ns),
    ("99th percentile", |latency| latency.p99_ns),
    ("99.9th percentile", |latency| latency.p999_ns),
    ("99.99th percentile", |latency| latency.p9999_ns),
    ("longest", |latency| latency.max_ns),
];

/// The percentiles of reads or of writes over time; none if there were none.
fn latency(
    label: &str,
    kind: &str,
    outcome: &Outcome,
    of: fn(&Sample) -> &LatencySummary,
) -> Option<Plot> {
    let samples = || outcome.series.iter().filter(move |sample| of(sample).count > 0);
    samples().next()?;
    let x = Axis::new("time").unit(Unit::Nanoseconds);
    let y = Axis::new("latency").unit(Unit::Nanoseconds).log10();
    let plot = Plot::new(format!("Latency of {kind} over time: {label}"), x, y);
    let all = PERCENTILES.iter().fold(plot, |plot, (name, percentile)| {
        let points = samples().map(|sample| (sample.at_ns as f64, percentile(of(sample)) as f64));
        plot.series(Series::new(*name, points))
    });
    Some(all)
}

fn operations(label: &str, spans: &[Span]) -> Gantt {
    let categories = ["read", "program", "erase", "move", "transfer"];
    let category = |activity| match activity {
        Activity::Sense => 0,
        Activity::Program => 1,
        Activity::Erase => 2,
        Activity::Move => 3,
        Activity::Transfer => 4,
    };
    let mut dies: BTreeMap<u32, Vec<(f64, f64, usize)>> = BTreeMap::new();
    for span in spans {
        let place = (span.begin_ns as f64, span.end_ns as f64, category(span.what));
        dies.entry(span.die).or_default().push(place);
    }
    let axis = Axis::new("time").unit(Unit::Nanoseconds);
    let gantt = Gantt::new(format!("Operations of dies: {label}"), axis, categories);
    let shown = dies.into_iter().take(DIES);
    shown.fold(gantt, |gantt, (die, spans)| gantt.row(format!("die {die}"), spans))
}
