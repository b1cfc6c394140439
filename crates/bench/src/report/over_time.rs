//! What happened in each second of a measurement.

use super::cases::Case;
use super::input::Turn;
use super::{Part, name};
use softflash_console::sizes::human_bytes;
use softflash_report::{Axis, Block, Plot, Series, Style, Unit};
use std::path::Path;

/// Throughput over time of the first round of each engine, a plot for each size of values.
pub fn plots(cases: &[&Case]) -> Vec<Plot> {
    let mut sizes: Vec<u64> = cases.iter().map(|case| case.first().value_bytes).collect();
    sizes.dedup();
    let of_size = |size: u64| {
        let title = format!("Throughput over time, values of {}", human_bytes(size));
        let plot = Plot::new(title, time(), Axis::new("operations/s").including(0.0));
        let cases = cases.iter().filter(|case| case.first().value_bytes == size);
        let lines: Vec<Series> =
            cases.filter_map(|case| operations(&case.engine(), case.first())).collect();
        (!lines.is_empty()).then(|| lines.into_iter().fold(plot, Plot::series))
    };
    sizes.into_iter().filter_map(of_size).collect()
}

/// A run of `bench kv`.
pub fn of_run(path: &Path, run: &Turn) -> Part {
    let mut blocks: Vec<Block> = Vec::new();
    if let Some(line) = operations("operations", run) {
        let axis = Axis::new("operations/s").including(0.0);
        blocks.push(Plot::new("Throughput over time", time(), axis).series(line).into());
    }
    let longest = |at: f64, longest_us: f64| (at, longest_us * 1000.0);
    let seconds = run.series.iter().flatten().enumerate();
    let line: Vec<(f64, f64)> =
        seconds.map(|(second, of)| longest(second as f64 + 0.5, of.longest_us)).collect();
    if !line.is_empty() {
        let axis = Axis::new("longest latency").unit(Unit::Nanoseconds).log10();
        let line = Series::new("longest", line).style(Style::Line);
        blocks.push(Plot::new("Longest latency of each second", time(), axis).series(line).into());
    }
    let number =
        |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    let text = format!(
        "Workload `{}`, {} keys, values of {}: {} operations/s, written {} times, slowest second {} of the mean, space {} of \
         the live data.{}",
        run.workload,
        run.keys,
        human_bytes(run.value_bytes),
        number(run.operations_per_second),
        number(run.write_amplification),
        number(run.slowest_second_ratio),
        number(run.space_used_ratio),
        if run.series.is_some() { "" } else { " With `--series` there would be plots over time." },
    );
    let file = name(path);
    let id: String =
        file.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    Part { id, title: file, text, blocks }
}

/// Operations of each whole second.
fn operations(engine: &str, turn: &Turn) -> Option<Series> {
    let seconds = turn.series.as_ref()?;
    // The last second is usually not whole.
    let whole = seconds.len().checked_sub(1).filter(|whole| *whole > 1)?;
    let points = seconds.iter().take(whole).enumerate();
    let points: Vec<(f64, f64)> =
        points.map(|(second, of)| (second as f64 + 0.5, of.operations as f64)).collect();
    Some(Series::new(engine, points).style(Style::Line))
}

fn time() -> Axis {
    Axis::new("time").unit("s")
}
