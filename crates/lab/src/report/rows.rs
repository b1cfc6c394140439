//! The rows of an experiment, as a table and as lines.

use super::distribution;
use super::shown::Shown;
use crate::experiment::{Plot as Drawn, Requests};
use crate::results::{ExperimentResult, ResultRow};
use softflash_report::{Axis, Cell, Plot, Series, Table, Unit};

/// Ours beside the published figures and theory; of several directories beside each other.
pub(super) fn table(shown: &[Shown]) -> Table {
    match shown {
        [Shown { result, .. }] => of_one(result),
        _ => of_several(shown),
    }
    .without_empty_columns()
}

fn of_one(result: &ExperimentResult) -> Table {
    let columns = ["", "figure", "paper", "theory", "ours", "± 95 %", "ratio", "tolerance"];
    let listed = result.rows.iter().filter(|row| row.is_listed());
    listed.fold(Table::new("Figures", columns), |table, row| {
        let tolerance = match (row.reference(), row.bound) {
            (Some(_), None) => Cell::number(row.tolerance).unit(Unit::Share),
            (Some(_), Some(bound)) => Cell::text(bound.words()),
            (None, _) => Cell::Empty,
        };
        let ratio = match (row.reference(), row.agrees) {
            (None, _) => Cell::Empty,
            (_, Some(agrees)) if row.bound.is_some() => Cell::judged(row.ratio, agrees),
            (reference, _) => Cell::ratio(row.ours, reference, row.tolerance),
        };
        table.row([
            Cell::text(&*row.label),
            words(row),
            number(row, row.paper),
            number(row, row.theory),
            number(row, Some(row.ours)),
            number(row, row.spread.map(|spread| spread.ci95)),
            ratio,
            tolerance,
        ])
    })
}

/// The figures of rows with several measures: a line for each cell, a column for each measure.
/// Several directories stand side by side in the table of all figures instead.
pub(super) fn columns(shown: &[Shown]) -> Option<Table> {
    let [Shown { result: ExperimentResult { table, .. }, .. }] = shown else { return None };
    if table.is_empty() {
        return None;
    }
    let mut titles = vec![String::new()];
    for column in &table.columns {
        titles.extend([column.name.clone(), "± 95 %".to_owned()]);
    }
    let rows = table.rows.iter().fold(Table::new("Measures", titles), |drawn, row| {
        let mut cells = vec![Cell::text(&*row.label)];
        for (value, column) in row.values.iter().zip(&table.columns) {
            let cell = |number: Option<f64>| match number {
                Some(number) => Cell::number(number).unit(column.unit.as_str()).digits(4),
                None => Cell::Empty,
            };
            cells.push(cell(value.map(|value| value.ours)));
            cells.push(cell(value.and_then(|value| value.spread).map(|spread| spread.ci95)));
        }
        drawn.row(cells)
    });
    Some(rows.without_empty_columns())
}

/// The figures of each directory, and their ratio to those of the first.
fn of_several(shown: &[Shown]) -> Table {
    let mut columns = ["", "figure", "paper", "theory"].map(str::to_owned).to_vec();
    for (index, Shown { directory, .. }) in shown.iter().enumerate() {
        columns.extend([(*directory).to_owned(), "± 95 %".to_owned()]);
        if index > 0 {
            columns.push("ratio".to_owned());
        }
    }
    let title = match shown.first() {
        Some(first) => format!("Figures; ratios to {}", first.directory),
        None => String::new(),
    };
    let mut table = Table::new(title, columns);
    for (label, row) in labels(shown) {
        let mut cells =
            vec![Cell::text(label), words(row), number(row, row.paper), number(row, row.theory)];
        let first = shown.first().and_then(|first| row_of(first, label)).map(|row| row.ours);
        let first = first.filter(|first| *first != 0.0);
        for (index, beside) in shown.iter().enumerate() {
            let of_it = row_of(beside, label);
            cells.push(number(row, of_it.map(|row| row.ours)));
            cells.push(number(row, of_it.and_then(|row| row.spread).map(|spread| spread.ci95)));
            if index > 0 {
                let ratio = of_it.zip(first).map(|(row, first)| row.ours / first);
                cells.push(ratio.map_or(Cell::Empty, |ratio| Cell::number(ratio).digits(4)));
            }
        }
        table = table.row(cells);
    }
    table
}

/// The labels of all rows in the order of the first directory, then those of the others, each with
/// its first row.
fn labels<'a>(shown: &'a [Shown]) -> Vec<(&'a str, &'a ResultRow)> {
    let mut labels: Vec<(&str, &ResultRow)> = Vec::new();
    for row in shown.iter().flat_map(|shown| &shown.result.rows) {
        if labels.iter().all(|(label, _)| *label != row.label) {
            labels.push((&row.label, row));
        }
    }
    labels
}

fn row_of<'a>(shown: &'a Shown, label: &str) -> Option<&'a ResultRow> {
    shown.result.rows.iter().find(|row| row.label == label)
}

/// The name of the figure, where the label does not say all of it.
fn words(row: &ResultRow) -> Cell {
    if row.figure.is_empty() { Cell::Empty } else { Cell::text(&*row.figure) }
}

fn number(row: &ResultRow, value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty, |value| Cell::number(value).unit(row.unit.as_str()).digits(4))
}

/// Every plot that has points.
pub(super) fn plots(shown: &[Shown]) -> Vec<Plot> {
    let mut plots: Vec<&Drawn> = Vec::new();
    for plot in shown.iter().flat_map(|shown| &shown.result.plots) {
        if plots.iter().all(|known| known.name != plot.name) {
            plots.push(plot);
        }
    }
    let drawn = plots.into_iter().map(|plot| match plot.distribution {
        Some(of) => distributions(shown, plot, of),
        None => Some((plot, lines(shown, &plot.name)))
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(plot, lines)| draw(plot, lines)),
    });
    drawn.flatten().collect()
}

/// A line's name and its rows.
type Line<'a> = (String, Vec<(f64, &'a ResultRow)>);

/// The lines of a plot in the order of their first rows, each from left to right.
fn lines<'a>(shown: &'a [Shown], plot: &str) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = Vec::new();
    for Shown { directory, result, .. } in shown {
        for row in &result.rows {
            let Some(point) = row.point.as_ref().filter(|it| it.plot == plot) else { continue };
            let series = named(&point.series, directory);
            match lines.iter_mut().find(|(name, _)| *name == series) {
                Some((_, rows)) => rows.push((point.x, row)),
                None => lines.push((series, vec![(point.x, row)])),
            }
        }
    }
    for (_, rows) in &mut lines {
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    lines
}

fn named(series: &str, directory: &str) -> String {
    if directory.is_empty() { series.to_owned() } else { format!("{series}, {directory}") }
}

fn draw(plot: &Drawn, lines: Vec<Line>) -> Plot {
    let x = Axis::new(&*plot.x_label);
    let x = if plot.log_x { x.log2() } else { x };
    let last = plot.x.rsplit('.').next().unwrap_or_default();
    let is_size = last.ends_with("bytes") || last.ends_with("size");
    let x = if is_size { x.unit(Unit::Bytes) } else { x };
    let rows: Vec<&ResultRow> =
        lines.iter().flat_map(|(_, rows)| rows).map(|(_, row)| *row).collect();
    let unit = rows.first().map(|row| row.unit.as_str()).unwrap_or_default();
    let y = Axis::new(of_requests(&plot.y_label, &rows)).unit(unit);
    let y = if plot.log_y { y.log10() } else { y.including(0.0) };
    let is_theory = rows.iter().any(|row| row.theory.is_some());
    let empty = Plot::new(&*plot.title, x, y);
    let empty = if is_theory { empty.reference_name("theory") } else { empty };
    lines.into_iter().map(line).fold(empty, Plot::series)
}

fn line((name, rows): Line) -> Series {
    let reference = rows.iter().filter_map(|(x, row)| Some((*x, row.reference()?)));
    let reference: Vec<(f64, f64)> = reference.collect();
    let bars = rows.iter().filter_map(|(x, row)| {
        let ci95 = row.spread?.ci95;
        Some((*x, row.ours - ci95, row.ours + ci95))
    });
    let series = Series::new(name, rows.iter().map(|(x, row)| (*x, row.ours))).error_bars(bars);
    if reference.is_empty() { series } else { series.reference(reference) }
}

/// The label of an axis, which says whether it is of reads or of writes.
fn of_requests(label: &str, rows: &[&ResultRow]) -> String {
    let kind = |row: &&ResultRow| match row.figure.as_str() {
        figure if figure.starts_with("read and write ") => Some("reads and writes"),
        figure if figure.starts_with("write amplification") => None,
        figure if figure.starts_with("read ") => Some("reads"),
        figure if figure.starts_with("write ") => Some("writes"),
        _ => None,
    };
    let says = label.contains("read") || label.contains("write");
    match rows.first().and_then(kind).filter(|_| !says) {
        Some(first) if rows.iter().all(|row| kind(row) == Some(first)) => {
            format!("{label} of {first}")
        }
        _ => label.to_owned(),
    }
}

/// The distributions of the runs of a plot's rows.
fn distributions(shown: &[Shown], plot: &Drawn, of: Requests) -> Option<Plot> {
    let kind = if of == Requests::Read { "read latency" } else { "write latency" };
    let or = |given: &str, other: &str| if given.is_empty() { other } else { given }.to_owned();
    let x_label = or(&plot.x_label, kind);
    let y_label = or(&plot.y_label, "share of the requests, at most");
    let mut series = Vec::new();
    for Shown { directory, result, runs } in shown {
        for row in &result.rows {
            let point = row.point.as_ref().filter(|point| point.plot == plot.name);
            let run = runs.iter().find(|run| Some(&run.file.cell.key) == row.cell.as_ref());
            if let (Some(point), Some(run)) = (point, run) {
                let name = named(&point.series, directory);
                series.extend(distribution::line(&name, &run.file.outcome, of));
            }
        }
    }
    let empty = distribution::plot(&*plot.title, &x_label, &y_label);
    (!series.is_empty()).then(|| series.into_iter().fold(empty, Plot::series))
}
