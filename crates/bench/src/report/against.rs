//! A comparison of stores: for each workload a table, and plots over the size of values.

use super::cases::Case;
use super::input::{Comparison, Script, Turn};
use super::{Part, amplification, over_time};
use serde::Deserialize;
use softflash_report::{Axis, Block, Cell, Plot, Series, Style, Table, Unit};

const COLUMNS: [&str; 13] = [
    "values",
    "engine",
    "rate",
    "operations/s",
    "written",
    "CPU an operation",
    "p50",
    "p99",
    "p99.9",
    "longest",
    "slowest second",
    "space",
    "memory",
];

/// The parts of a comparison; none if the script is another.
pub fn parts(script: &Script) -> Vec<Part> {
    let Ok(comparison) = Comparison::deserialize(&script.details) else { return Vec::new() };
    let cases = Case::all(&comparison.turns);
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for case in &cases {
        let of = (case.first().workload.as_str(), case.first().distribution.as_str());
        if !seen.contains(&of) {
            seen.push(of);
        }
    }
    let notes = comparison.settings.notes.join("\n\n");
    seen.into_iter()
        .map(|(workload, distribution)| {
            let of: Vec<&Case> =
                cases.iter().filter(|case| case.is_of(workload, distribution)).collect();
            part(workload, distribution, &of, &notes)
        })
        .collect()
}

fn part(workload: &str, distribution: &str, cases: &[&Case], notes: &str) -> Part {
    let mut blocks: Vec<Block> = vec![table(cases).into()];
    blocks.extend(plots(cases).into_iter().map(Block::from));
    blocks.extend(amplification::blocks(workload, distribution, cases));
    if workload == "overwrite" {
        blocks.extend(over_time::plots(cases).into_iter().map(Block::from));
    }
    Part {
        id: format!("{workload}-{distribution}"),
        title: format!("{workload}, {distribution}"),
        text: notes.to_owned(),
        blocks,
    }
}

fn table(cases: &[&Case]) -> Table {
    let mut table = Table::new("Medians", COLUMNS);
    for case in cases {
        let turn = case.first();
        let head =
            [Cell::number(turn.value_bytes as f64).unit(Unit::Bytes), Cell::text(case.engine())];
        let figures = match case.refused() {
            Some(why) => vec![Cell::text(why)],
            None => figures(case),
        };
        table = table.row(head.into_iter().chain(figures));
    }
    table.note(
        "`written`: bytes written to the device for each byte of the clients, with everything counted: logs, flushes, \
         compaction and garbage collection. `slowest second`: its operations as a share of the mean. `space`: bytes in use \
         at the end for each byte of live data.",
    )
}

fn figures(case: &Case) -> Vec<Cell> {
    let latency = |pick: fn(&softflash_console::measure::LatencySummary) -> f64| {
        let us = case.median(|turn| turn.latency.as_ref().map(pick));
        us.map_or(Cell::Empty, |us| Cell::number(us * 1000.0).unit(Unit::Nanoseconds))
    };
    vec![
        case.cell(megabytes).unit("MB/s"),
        case.cell(|turn| turn.operations_per_second),
        case.cell(|turn| turn.write_amplification),
        case.cell(|turn| turn.cpu_us_per_operation).unit("µs"),
        latency(|all| all.p50_us),
        latency(|all| all.p99_us),
        latency(|all| all.p999_us),
        latency(|all| all.max_us),
        case.cell(|turn| turn.slowest_second_ratio).unit(Unit::Share),
        case.cell(|turn| turn.space_used_ratio),
        case.cell(|turn| turn.peak_memory_bytes).unit(Unit::Bytes),
    ]
}

fn megabytes(turn: &Turn) -> Option<f64> {
    turn.bytes_per_second.map(|bytes| bytes / 1e6)
}

/// Rate, longest waits and write amplification over the size of values. A single size is a table.
fn plots(cases: &[&Case]) -> Vec<Plot> {
    let sizes = cases.iter().map(|case| case.first().value_bytes);
    if sizes.clone().max() == sizes.min() {
        return Vec::new();
    }
    let rate = Axis::new("keys and values").unit("MB/s").log10();
    let wait = Axis::new("99.9 % of the operations are faster").unit(Unit::Nanoseconds).log10();
    let written = Axis::new("bytes written, per byte of the clients").including(1.0);
    let p999_ns = |turn: &Turn| turn.latency.as_ref().map(|all| all.p999_us * 1000.0);
    [
        over_size("Throughput by size of values", rate, cases, megabytes),
        over_size("Latency by size of values", wait, cases, p999_ns),
        over_size("Write amplification by size of values", written, cases, |turn| {
            turn.write_amplification
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn over_size(
    title: &str,
    axis: Axis,
    cases: &[&Case],
    figure: impl Fn(&Turn) -> Option<f64>,
) -> Option<Plot> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for case in cases {
        let Some(value) = case.median(&figure) else { continue };
        let (name, point) = (case.engine(), (case.first().value_bytes as f64, value));
        match lines.iter_mut().find(|(known, _)| *known == name) {
            Some((_, points)) => points.push(point),
            None => lines.push((name, vec![point])),
        }
    }
    if lines.is_empty() {
        return None;
    }
    let size = Axis::new("size of values").unit(Unit::Bytes).log2();
    let draw = |(name, points): (String, Vec<(f64, f64)>)| {
        let style = if name == "fio" { Style::Dashed } else { Style::LineAndMarks };
        Series::new(name, points).style(style)
    };
    Some(lines.into_iter().map(draw).fold(Plot::new(title, size, axis), Plot::series))
}
